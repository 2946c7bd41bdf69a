/* transfer: requests that have to do with a session's files, and contents on their way in.
 *
 * A transfer hangs on its session and on its request. Whichever ends first takes it along: a client that
 * leaves gives its upload up, a session that ends closes the connections that read from its workspace, so
 * that nothing of it is held by a slow reader.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "gate/headers.h"
#include "gate/inside.h"
#include "gate/mcp/mcp.h"

static void unhook(struct transfer *t)
{
    struct live *l = t->live;

    if (!l)
        return;
    for (struct transfer **at = &l->transfers; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    t->live = NULL;
    live_touch(l);
}

static void end(struct transfer *t)
{
    if (t->asked)
        session_file_cancel(t->asked);
    t->asked = NULL;
    unhook(t);
    t->free(t);
}

static void on_abandoned(void *work)
{
    end(work);
}

void *transfer_new(struct live *l, struct request *r, size_t size, void (*free)(struct transfer *t))
{
    struct transfer *t = xcalloc(1, size);

    *t = (struct transfer){.next = l->transfers, .live = l, .request = r, .free = free};
    l->transfers = t;
    live_touch(l);
    request_work(r, on_abandoned, t);
    return t;
}

void transfer_over(struct transfer *t)
{
    if (t->request->work == t)
        request_unwork(t->request);
    end(t);
}

void transfer_sending(struct transfer *t)
{
    request_work(t->request, on_abandoned, t);
}

void live_end_transfers(struct live *l)
{
    struct transfer *t;

    while ((t = l->transfers)) {
        struct request *r = t->request;
        request_unwork(r);
        end(t);
        if (r->queued || r->response)
            request_kick(r); /* its answer is under way, and cannot be finished */
        else
            reply_error(r, 410, "session_ended", "the session has ended");
    }
}

void reply_file_failed(struct request *r, const struct err *e, bool writing)
{
    switch (e->code) {
    case ENOTDIR: /* a file is where a directory would have to be */
    case ENOENT:
        if (writing)
            reply_error(r, 400, "bad_path", "%s", e->text);
        else
            reply_error(r, 404, "not_found", "there is no such file in the workspace");
        break;
    case ENXIO: /* a socket */
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
    case ELOOP:
    case EXDEV:
    case EEXIST:
    case ENOTEMPTY:
        reply_error(r, 400, "bad_path", "%s", e->text);
        break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
        reply_error(r, 413, "no_space", "the workspace is full: %s", e->text);
        break;
    case EBUSY:
        reply_later(r, 429, 1, "too_many_uploads", "%s", e->text);
        break;
    case EACCES:
    case EPERM:
        reply_error(r, 409, "not_accessible", "%s", e->text);
        break;
    case EMFILE:
        reply_later(r, 503, 5, "busy", "%s", e->text);
        break;
    case ETIMEDOUT:
        reply_later(r, 503, 5, "no_answer", "%s", e->text);
        break;
    case EPIPE:
        reply_error(r, 410, "session_ended", "%s", e->text);
        break;
    default:
        reply_error(r, 409, "not_accessible", "%s", e->text);
        break;
    }
}

json_t *file_json(const char *path, uint64_t size, uint64_t mtime_ns)
{
    const char *type = header_media_type(path);

    return json_pack("{s:o,s:I,s:o,s:s%}", "path", text_json(path), "size", (json_int_t)size,
                     "modified_at", time_json((int64_t)(mtime_ns / 1000000)), "type", type,
                     strcspn(type, ";"));
}

void live_file_changed(const struct live *l, const char *path, const char *change)
{
    json_t *files = json_pack("[{s:o,s:s}]", "path", text_json(path), "change", change);

    mcp_files_changed(l->gate, l->holder, l->id, files);
    json_decref(files);
}

/* ---- contents ---- */

static void close_upload(struct upload *u)
{
    if (u->fd < 0)
        return;
    watch_clear(u->live->gate, &u->pipe);
    fd_close(&u->fd);
}

static void on_pipe(struct watch *w, uint32_t events)
{
    struct upload *u = (struct upload *)((char *)w - offsetof(struct upload, pipe));
    (void)events;

    watch_clear(u->live->gate, &u->pipe);
    u->writable(u->ctx);
}

static void on_answered(void *ctx, const struct file_answer *a)
{
    struct upload *u = ctx;

    u->asked = NULL;
    close_upload(u);
    u->done(u->ctx, a->e);
}

int upload_start(struct upload *u, struct live *l, const char *path, void (*writable)(void *ctx),
                 void (*done)(void *ctx, const struct err *e), void *ctx, struct err *e)
{
    *u = (struct upload){
        .pipe = {-1, on_pipe}, .live = l, .fd = -1, .writable = writable, .done = done, .ctx = ctx};
    u->asked = session_ask_put(l->session, path, &u->fd, on_answered, u, e);
    return u->asked ? 0 : -1;
}

size_t upload_write(struct upload *u, const char *data, size_t len)
{
    size_t at = 0;

    while (at < len && u->fd >= 0) {
        ssize_t n = write(u->fd, data + at, len - at); /* SIGPIPE is ignored here */
        if (n > 0) {
            at += (size_t)n;
            u->total += (size_t)n;
        } else if (errno == EAGAIN) {
            watch_set(u->live->gate, &u->pipe, u->fd, EPOLLOUT);
            return at;
        } else if (errno != EINTR) {
            session_put_all(u->asked, UINT64_MAX); /* init has closed it: its answer says why */
            close_upload(u);
            return len;
        }
    }
    return len;
}

void upload_finish(struct upload *u)
{
    if (u->fd < 0)
        return; /* it was refused: `done` was told, or will be */
    session_put_all(u->asked, u->total);
    close_upload(u);
}

void upload_cancel(struct upload *u)
{
    if (!u->live)
        return;
    if (u->asked)
        session_file_cancel(u->asked);
    u->asked = NULL;
    close_upload(u);
}
