/* requests: what an owner asks of a box's init, without waiting.
 *
 * A request hangs on its session until it is answered, cancelled or out of time, or the session is
 * closed. It is taken off and freed before its owner hears of it, so that whatever the owner does
 * then finds no half-finished request. Only `entry` of a list is called while its request lives on:
 * see on_entries in files.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "session/inside.h"

#define REQUESTS_MAX 64    /* under way in one session */
#define NO_SIZE UINT64_MAX /* of FILE_PUT_END: forget it */
/* Of an upload: so much goes between two turns of ours and init's. Where it may not be that much, it is
 * what it is. */
#define PIPE_SIZE (256 << 10)

/* ---- sending ---- */

static struct buf *put_head(struct session *s, uint32_t type, uint32_t req)
{
    struct buf *b = &s->vessel->frame;

    b->len = 0;
    msg_begin(b, type);
    fields_put_u32(b, req);
    return b;
}

static int post(struct session *s, const int *fd, struct err *e)
{
    if (s->sources[FROM_FILES].fd < 0)
        return err_set(e, EPIPE, "the box is gone");
    return msg_send(s->sources[FROM_FILES].fd, &s->vessel->frame, fd, fd ? 1 : 0, e);
}

void files_tell_same(struct session *s)
{
    struct err e;

    if (s->same.to == 0)
        return;
    struct buf *b = put_head(s, FILE_SAME, vessel_req(s->vessel));
    fields_put_u32(b, s->same.of);
    fields_put_u32(b, s->same.from);
    fields_put_u32(b, s->same.to);
    if (post(s, NULL, &e) == 0 || e.code != EAGAIN)
        s->same.to = 0;
}

/* Most cells that change nothing come one after the other, and to wake init for each would cost as much as a tenth of
 * the cell: nobody needs to know before init is asked for something. */
void files_note_same(struct session *s, uint32_t of, uint32_t n)
{
    if (s->same.to == 0 || s->same.to != of) {
        files_tell_same(s);
        s->same.of = of;
        s->same.from = n;
    }
    s->same.to = n;
}

static struct buf *begin(struct session *s, uint32_t type, uint32_t req)
{
    files_tell_same(s);
    return put_head(s, type, req);
}

uint32_t files_ask(struct session *s, unsigned type)
{
    uint32_t req = vessel_req(s->vessel);
    struct err e;

    begin(s, type, req);
    /* Full is as bad as gone: a sound init reads at once. */
    return post(s, NULL, &e) < 0 ? 0 : req;
}

uint32_t files_ask_restore(struct session *s, uint32_t n)
{
    uint32_t req = vessel_req(s->vessel);
    struct err e;

    fields_put_u32(begin(s, FILE_RESTORE, req), n);
    return post(s, NULL, &e) < 0 ? 0 : req;
}

void files_tell_keep(struct session *s, unsigned checkpoints)
{
    struct err ignored; /* then it is gone */

    struct buf *b = begin(s, FILE_KEEP, vessel_req(s->vessel));

    fields_put_u32(b, checkpoints);
    fields_put_u64(b, s->limits.memory);
    post(s, NULL, &ignored);
}

/* ---- the list of requests ---- */

void request_free(struct file_request *r)
{
    free(r->last);
    free(r);
}

static void take_off(struct file_request *r)
{
    struct file_request **p = &r->session->requests;

    while (*p != r)
        p = &(*p)->next;
    *p = r->next;
    if (!r->telling) /* else on_entries frees it */
        request_free(r);
}

struct file_request *request_find(struct session *s, uint32_t req)
{
    for (struct file_request *r = s->requests; r; r = r->next)
        if (r->req == req && !r->forgotten)
            return r;
    return NULL;
}

/* Tell an upload's end. What the socket does not take now goes when it can: init would keep the upload
 * for ever otherwise. */
static void send_end(struct file_request *r)
{
    struct session *s = r->session;
    struct err e;

    fields_put_u64(begin(s, FILE_PUT_END, r->req), r->size);
    r->end_due = post(s, NULL, &e) < 0 && e.code == EAGAIN;
    if (r->end_due)
        source_watch(s->vessel, &s->sources[FROM_FILES], EPOLLIN | EPOLLOUT);
}

/* Nobody waits for it any more. */
static void forget(struct file_request *r)
{
    r->forgotten = true;
    r->deadline_us = NEVER;
    if (r->type == FILE_PUT && r->size != NO_SIZE) {
        r->size = NO_SIZE;
        send_end(r);
    }
    if (!r->end_due)
        take_off(r);
}

void requests_send_ends(struct session *s)
{
    struct file_request *next;

    source_watch(s->vessel, &s->sources[FROM_FILES], EPOLLIN);
    for (struct file_request *r = s->requests; r; r = next) {
        next = r->next;
        if (r->end_due)
            send_end(r);
        if (r->forgotten && !r->end_due)
            take_off(r);
    }
}

/* What a cell finds is not undone with it. Noted when it is asked for, as nobody may wait for the answer, and once
 * more with that: what was under way when a cell began is news to the next. */
static void note_new_files(struct file_request *r)
{
    if (r->type == FILE_PUT)
        workspace_fills(&r->session->workspace);
    if ((r->type == FILE_PUT && r->whole) || r->type == FILE_DELETE)
        r->session->new_files = true;
}

void request_answer(struct file_request *r, const struct file_answer *a)
{
    file_answered *done = r->done;
    void *ctx = r->ctx;

    note_new_files(r);
    r->size = NO_SIZE; /* init knows the end of it */
    r->end_due = false;
    forget(r);
    done(ctx, a);
}

/* ---- the end of asking ---- */

void requests_lost(struct session *s)
{
    struct file_request *r;
    struct err e;

    source_close(s->vessel, &s->sources[FROM_FILES]);
    err_set(&e, EPIPE, "the box does not answer any more");
    while (!s->closed && (r = s->requests)) {
        if (r->forgotten)
            take_off(r);
        else
            request_answer(r, &(struct file_answer){.e = &e, .fd = -1});
    }
}

void requests_close(struct session *s)
{
    struct file_request *r;

    while ((r = s->requests)) {
        s->requests = r->next;
        r->forgotten = true;
        if (!r->telling)
            request_free(r);
    }
}

int64_t requests_due_us(const struct session *s)
{
    int64_t due = NEVER;

    for (const struct file_request *r = s->requests; r; r = r->next)
        if (r->deadline_us < due)
            due = r->deadline_us;
    return due;
}

void requests_timer(struct session *s, int64_t now_us)
{
    struct err e;

    err_set(&e, ETIMEDOUT, "the box does not answer");
    while (!s->closed && requests_due_us(s) <= now_us) {
        struct file_request *r = s->requests;
        while (r->deadline_us > now_us)
            r = r->next;
        file_answered *done = r->done;
        void *ctx = r->ctx;
        forget(r); /* and not request_answer(): init may still be at it */
        done(ctx, &(struct file_answer){.e = &e, .fd = -1});
    }
}

/* ---- asking ---- */

static int refuse(struct err *e, int code, const char *sentence)
{
    err_set(e, 0, "%s", sentence);
    e->code = code;
    return -1;
}

/* `path` may be NULL, where the question has none. */
static int must_be_askable(const struct session *s, const char *path, struct err *e)
{
    unsigned n = 0;

    if (s->closed || s->sources[FROM_FILES].fd < 0)
        return refuse(e, EPIPE,
                      s->state == OPENING ? "the session is not open yet"
                                          : "the session has ended");
    for (const struct file_request *r = s->requests; r; r = r->next)
        n++;
    if (n >= REQUESTS_MAX)
        return refuse(e, EBUSY,
                      "too many requests for files are under way in this session; wait for one");
    if (path && path_check(path, strlen(path))) {
        err_set(e, 0,
                "\"%.200s\" is not a path in the workspace: it must be relative, without \".\", "
                "\"..\" or empty parts",
                path);
        e->code = EINVAL;
        return -1;
    }
    return 0;
}

/* Ask; path and fd as the question has them. */
static struct file_request *ask(struct session *s, const struct file_request *about,
                                const char *path, const int *fd, struct err *e)
{
    if (must_be_askable(s, path, e) < 0)
        return NULL;
    uint32_t req = vessel_req(s->vessel);
    struct buf *b = begin(s, about->type, req);
    if (path)
        fields_put_text(b, path);
    if (post(s, fd, e) < 0) {
        if (e->code == EAGAIN)
            refuse(e, EBUSY, "the box has more to do than it can; try again");
        return NULL;
    }
    struct file_request *r = xcalloc(1, sizeof(*r));
    *r = *about;
    r->session = s;
    r->req = req;
    r->deadline_us = r->type == FILE_PUT ? NEVER : clock_now_us() + FILES_PATIENCE_US;
    r->next = s->requests;
    s->requests = r;
    note_new_files(r);
    vessel_arm(s->vessel, r->deadline_us);
    return r;
}

struct file_request *session_ask_get(struct session *s, const char *path, file_answered *done,
                                     void *ctx, struct err *e)
{
    return ask(s, &(struct file_request){.type = FILE_GET, .done = done, .ctx = ctx}, path, NULL,
               e);
}

struct file_request *session_ask_put(struct session *s, const char *path, int *ret_pipe,
                                     file_answered *done, void *ctx, struct err *e)
{
    const struct file_request about = {.type = FILE_PUT, .done = done, .ctx = ctx};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        err_set(e, errno, "cannot make a pipe");
        return NULL;
    }
    cleanup_fd int to_read = ends[0];
    cleanup_fd int to_write = ends[1];
    if (fd_set_nonblock(to_write) < 0) {
        err_set(e, errno, "cannot use a pipe");
        return NULL;
    }
    fcntl(to_write, F_SETPIPE_SZ, PIPE_SIZE);
    struct file_request *r = ask(s, &about, path, &to_read, e);
    if (r)
        *ret_pipe = fd_steal(&to_write);
    return r;
}

void session_put_all(struct file_request *r, uint64_t size)
{
    if (r->whole || r->size == NO_SIZE)
        return;
    r->whole = size != NO_SIZE;
    r->size = size;
    note_new_files(r);
    send_end(r);
    r->deadline_us = clock_now_us() + FILES_PATIENCE_US;
    vessel_arm(r->session->vessel, r->deadline_us);
}

struct file_request *session_ask_list(struct session *s, file_listed *entry, file_answered *done,
                                      void *ctx, struct err *e)
{
    const struct file_request about = {.type = FILE_LIST, .entry = entry, .done = done, .ctx = ctx};

    return ask(s, &about, NULL, NULL, e);
}

struct file_request *session_ask_points(struct session *s, point_listed *point, file_answered *done,
                                        void *ctx, struct err *e)
{
    const struct file_request about = {
        .type = FILE_POINTS, .point = point, .done = done, .ctx = ctx};

    return ask(s, &about, NULL, NULL, e);
}

struct file_request *session_ask_delete(struct session *s, const char *path, file_answered *done,
                                        void *ctx, struct err *e)
{
    return ask(s, &(struct file_request){.type = FILE_DELETE, .done = done, .ctx = ctx}, path, NULL,
               e);
}

struct file_request *session_ask_space(struct session *s, file_answered *done, void *ctx,
                                       struct err *e)
{
    return ask(s, &(struct file_request){.type = FILE_SPACE, .done = done, .ctx = ctx}, NULL, NULL,
               e);
}

void session_file_cancel(struct file_request *r)
{
    forget(r);
}
