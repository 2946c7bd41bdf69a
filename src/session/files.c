/* files: what an owner asks of a box's init, and init's answers.
 *
 * init opens paths inside the box and passes descriptors; nothing here resolves a guest's path.
 * init shares the box with hostile code, so what it says is checked like everything else from a
 * box: an answer that nobody asked for is dropped, with its descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "session/inside.h"
#include "session/utf8.h"

#define PATH_LONGEST 4095
#define NOTES_MAX 20000
#define TURN 32              /* messages in one turn of the loop */
#define PATIENCE_US 30000000 /* without any progress */
#define CHUNK (64u << 10)

bool files_path_ok(const char *path, size_t len)
{
    if (len == 0 || len > PATH_LONGEST || memchr(path, '\0', len))
        return false;
    for (size_t at = 0, next; at <= len; at = next + 1) {
        const char *slash = at < len ? memchr(path + at, '/', len - at) : NULL;
        next = slash ? (size_t)(slash - path) : len;
        size_t part = next - at;
        if (part == 0 || (part == 1 && path[at] == '.') ||
            (part == 2 && path[at] == '.' && path[at + 1] == '.'))
            return false;
    }
    return true;
}

/* ---- asking ---- */

static struct buf *begin(struct session *s, uint32_t type, uint32_t req)
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
        return err_set(e, 0, "the box is gone");
    return msg_send(s->sources[FROM_FILES].fd, &s->vessel->frame, fd, fd ? 1 : 0, e);
}

uint32_t files_ask(struct session *s, unsigned type)
{
    uint32_t req = vessel_req(s->vessel);
    struct err e;

    begin(s, type, req);
    /* Full is as bad as gone: a sound init reads at once. */
    return post(s, NULL, &e) < 0 ? 0 : req;
}

/* ---- answers ---- */

static struct file_request *request(struct session *s, uint32_t req)
{
    for (struct file_request *r = s->requests; r; r = r->next)
        if (r->req == req && !r->answered)
            return r;
    return NULL;
}

static int on_done(struct session *s, uint32_t req, struct fields *f)
{
    uint32_t error = fields_get_u32(f);
    size_t len;
    const char *reason = fields_get_bytes(f, &len);

    if (!fields_end(f))
        return -1;
    if (s->cell && req == s->course.changes_req) {
        s->course.changes_req = 0;
        course_answer(s, AWAIT_CHANGES);
        return 0;
    }
    struct file_request *r = request(s, req);
    if (!r)
        return 0;
    cleanup_free char *text = utf8_repaired(reason, len);
    size_t fits = utf8_fit(text, strlen(text), sizeof(r->reason) - 1);
    memcpy(r->reason, text, fits);
    r->reason[fits] = '\0';
    r->error = error > 0 && error < 4096 ? (int)error : error ? EIO : 0;
    r->answered = true;
    return 0;
}

static int on_change(struct session *s, uint32_t req, struct fields *f)
{
    struct file_note note = {.change = fields_get_u8(f)};
    size_t hash_len, len;

    note.size = fields_get_u64(f);
    note.mtime_ns = fields_get_u64(f);
    const char *hash = fields_get_bytes(f, &hash_len);
    const char *path = fields_get_bytes(f, &len);
    if (!fields_end(f) || note.change > FILE_DELETED ||
        (hash_len != 0 && hash_len != sizeof(note.sha256)) || !files_path_ok(path, len))
        return -1;
    if (!s->cell || req != s->course.changes_req || s->cell->n_files >= NOTES_MAX)
        return 0;
    note.has_sha256 = hash_len != 0;
    memcpy(note.sha256, hash, hash_len);
    note.path = xcalloc(1, len + 1);
    memcpy(note.path, path, len);
    cell_add_file(s->cell, &note);
    return 0;
}

static int on_opened(struct session *s, uint32_t req, struct fields *f, struct msg *m)
{
    struct stat st;

    fields_get_u64(f); /* size and time: fstat knows them without asking the box */
    fields_get_u64(f);
    if (!fields_end(f))
        return -1;
    struct file_request *r = request(s, req);
    cleanup_fd int fd = msg_take_fd(m, 0);
    if (!r)
        return 0;
    /* A pipe or a device in place of a file could hold its reader for ever. */
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
        return -1;
    r->fd = fd_steal(&fd);
    r->answered = true;
    return 0;
}

static int on_used(struct session *s, uint32_t req, struct fields *f)
{
    uint64_t bytes = fields_get_u64(f);
    uint64_t files = fields_get_u64(f);

    if (!fields_end(f))
        return -1;
    if (!s->cell || req != s->course.space_req)
        return 0;
    s->course.space_req = 0;
    s->course.space_known = true;
    s->course.used_bytes = bytes;
    s->course.used_files = files;
    course_answer(s, AWAIT_SPACE);
    return 0;
}

static int on_usage(struct session *s, uint32_t req, struct fields *f)
{
    struct meter_reading r = {0};

    r.cpu_us = fields_get_u64(f);
    r.peak = fields_get_u64(f);
    r.pids_refused = fields_get_u64(f);
    if (!fields_end(f))
        return -1;
    if (req != s->usage_req)
        return 0;
    s->usage_req = 0;
    course_usage(s, &r);
    return 0;
}

int files_handle(struct session *s, struct msg *m)
{
    struct fields f;

    fields_init(&f, m->data, m->len);
    uint32_t req = fields_get_u32(&f);
    if (f.failed || req == 0)
        return -1;
    switch (m->type) {
    case FILE_DONE:
        return on_done(s, req, &f);
    case FILE_CHANGE:
        return on_change(s, req, &f);
    case FILE_OPENED:
        return on_opened(s, req, &f, m);
    case FILE_USED:
        return on_used(s, req, &f);
    case FILE_USAGE_IS:
        return on_usage(s, req, &f);
    default:
        return -1;
    }
}

/* init is gone, or is not init any more. */
static void lose_init(struct session *s)
{
    source_close(s->vessel, &s->sources[FROM_FILES]);
    for (struct file_request *r = s->requests; r; r = r->next) {
        if (r->answered)
            continue;
        r->error = EPIPE;
        r->answered = true;
    }
    course_init_gone(s);
}

void files_read(struct session *s)
{
    struct err e;

    for (unsigned i = 0; i < TURN && !s->closed && s->sources[FROM_FILES].fd >= 0; i++) {
        cleanup_msg struct msg m;
        int got = msg_recv(s->sources[FROM_FILES].fd, &m, &e);
        if (got < 0 && e.code == EAGAIN)
            return;
        if (got <= 0 || files_handle(s, &m) < 0) {
            if (!s->closed)
                lose_init(s);
            return;
        }
        /* Most of the time there is one answer, and asking again would be one call in vain. */
        if (!s->cell)
            return;
    }
}

/* ---- helpers that wait ---- */

static void put_request(struct session *s, struct file_request *r)
{
    *r = (struct file_request){.next = s->requests, .req = vessel_req(s->vessel), .fd = -1};
    s->requests = r;
    vessel_enter(s->vessel);
}

static void drop_request(struct session *s, struct file_request *r)
{
    for (struct file_request **p = &s->requests; *p; p = &(*p)->next) {
        if (*p == r) {
            *p = r->next;
            break;
        }
    }
    vessel_leave(s->vessel); /* *s may be freed by this */
}

static int usable(const struct session *s, const char *path, struct err *e)
{
    if (s->closed || s->sources[FROM_FILES].fd < 0)
        return err_set(e, 0, "the session has ended");
    if (!files_path_ok(path, strlen(path)))
        return err_set(e, 0,
                       "\"%.200s\" is not a path in the workspace: it must be relative, without "
                       "\".\", \"..\" or empty parts",
                       path);
    return 0;
}

/* What the answer means, once there is one. */
static int outcome(const struct session *s, const struct file_request *r, int got, struct err *e)
{
    if (got < 0)
        return -1;
    if (s->closed)
        return err_set(e, 0, "the session was closed");
    if (got == 0)
        return err_set(e, ETIMEDOUT, "the box does not answer");
    if (r->error && !r->reason[0])
        return err_set(e, r->error, "the box cannot do it");
    if (r->error) {
        err_set(e, 0, "%s", r->reason); /* which has the errno's text already */
        e->code = r->error;
        return -1;
    }
    return 0;
}

int session_get(struct session *s, const char *path, int *ret_fd, struct err *e)
{
    struct file_request r;

    if (usable(s, path, e) < 0)
        return err_wrap(e, "cannot read %.200s", path);
    put_request(s, &r);
    fields_put_text(begin(s, FILE_GET, r.req), path);
    int result = post(s, NULL, e);
    if (result == 0)
        result = outcome(s, &r, vessel_wait(s->vessel, &r.answered, PATIENCE_US / 1000, e), e);
    if (result == 0 && r.fd < 0)
        result = err_set(e, EIO, "the box sent no file");
    drop_request(s, &r);
    if (result < 0) {
        fd_close(&r.fd);
        return err_wrap(e, "cannot read %.200s", path);
    }
    *ret_fd = r.fd;
    return 0;
}

struct copy {
    int from, to;
    char *chunk;
    size_t at, len; /* what of the chunk is not written yet */
    uint64_t total;
    bool ended;   /* the source */
    bool refused; /* the box closed its end: its answer says why */
};

/* Move on as far as it goes without waiting. 1: moved; 0: would wait; -1: failed. */
static int copy_some(struct copy *c, struct err *e)
{
    if (c->at == c->len) {
        ssize_t n = read(c->from, c->chunk, CHUNK);
        if (n < 0)
            return errno == EINTR || errno == EAGAIN ? 0 : err_set(e, errno, "cannot read it");
        c->ended = n == 0;
        c->at = 0;
        c->len = (size_t)n;
        return 1;
    }
    ssize_t n = fd_write_quietly(c->to, c->chunk + c->at, c->len - c->at);
    if (n >= 0) {
        c->at += (size_t)n;
        c->total += (uint64_t)n;
        return 1;
    }
    c->refused = errno == EPIPE;
    if (c->refused || errno == EINTR || errno == EAGAIN)
        return 0;
    return err_set(e, errno, "cannot write to a pipe");
}

/* Copy to the end, and drive the vessel meanwhile. Stops early when init has answered: it refused.
 */
static int copy_all(struct session *s, struct copy *c, const bool *answered, struct err *e)
{
    int64_t moved_us = clock_now_us();

    while (!*answered && !c->refused && !(c->ended && c->at == c->len)) {
        bool reading = c->at == c->len;
        struct pollfd polls[2] = {
            {.fd = vessel_fd(s->vessel), .events = POLLIN},
            {.fd = reading ? c->from : c->to, .events = reading ? POLLIN : POLLOUT},
        };
        if (poll(polls, 2, 1000) < 0 && errno != EINTR)
            return err_set(e, errno, "cannot wait");
        if (polls[0].revents && vessel_dispatch(s->vessel, e) < 0)
            return -1;
        if (s->closed)
            return err_set(e, 0, "the session was closed");
        int moved = polls[1].revents ? copy_some(c, e) : 0;
        if (moved < 0)
            return -1;
        if (moved > 0 || reading) /* a slow source is not the box's fault */
            moved_us = clock_now_us();
        else if (clock_now_us() - moved_us > PATIENCE_US)
            return err_set(e, ETIMEDOUT, "the box does not read");
    }
    return 0;
}

/* Send the contents. 0: what init says is the result; -1: failed before. *ret_whole: it was given
 * everything, so that it may say that all is well. */
static int put_contents(struct session *s, struct file_request *r, const char *path, int fd,
                        bool *ret_whole, struct err *e)
{
    cleanup_free char *chunk = xcalloc(1, CHUNK);
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, errno, "cannot make a pipe");
    cleanup_fd int to_read = ends[0];
    cleanup_fd int to_write = ends[1];
    if (fd_set_nonblock(to_write) < 0)
        return err_set(e, errno, "cannot use a pipe");
    fields_put_text(begin(s, FILE_PUT, r->req), path);
    if (post(s, &to_read, e) < 0)
        return -1;
    fd_close(&to_read);
    struct copy c = {.from = fd, .to = to_write, .chunk = chunk};
    struct err ignored;
    int copied = copy_all(s, &c, &r->answered, e);
    if (copied < 0 && !s->closed && !r->answered) {
        fields_put_u64(begin(s, FILE_PUT_END, r->req), UINT64_MAX);
        post(s, NULL, &ignored);
    }
    if (copied < 0 || r->answered)
        return r->answered ? 0 : -1;
    *ret_whole = !c.refused;
    fields_put_u64(begin(s, FILE_PUT_END, r->req), c.refused ? UINT64_MAX : c.total);
    return post(s, NULL, e);
}

int session_put(struct session *s, const char *path, int fd, struct err *e)
{
    struct file_request r;
    bool whole = false;

    if (usable(s, path, e) < 0)
        return err_wrap(e, "cannot write %.200s", path);
    put_request(s, &r);
    int result = put_contents(s, &r, path, fd, &whole, e);
    if (result == 0)
        result = outcome(s, &r, vessel_wait(s->vessel, &r.answered, PATIENCE_US / 1000, e), e);
    if (result == 0 && !whole)
        result = err_set(e, EPIPE, "the box stopped reading");
    drop_request(s, &r);
    return result < 0 ? err_wrap(e, "cannot write %.200s", path) : 0;
}
