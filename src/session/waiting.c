/* waiting: the calls for files of session.h that wait: they ask as everybody does, and drive the
 * vessel until the answer comes. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "session/inside.h"

#define CHUNK (256u << 10)

/* What the answer was, once there is one. */
struct outcome {
    bool answered;
    int fd;
    struct err e; /* e.text is empty: it is done */
};

static void note(void *ctx, const struct file_answer *a)
{
    struct outcome *o = ctx;

    o->answered = true;
    o->fd = a->fd;
    if (a->e)
        o->e = *a->e;
}

/* Wait for the answer, which every request gets; a callback may close the session meanwhile. */
static int await(struct session *s, const struct outcome *o, struct err *e)
{
    while (!o->answered && !s->closed)
        if (vessel_step(s->vessel, -1, e) < 0 && !o->answered)
            return -1;
    if (!o->answered)
        return err_set(e, 0, "the session was closed");
    if (!o->e.text[0])
        return 0;
    *e = o->e;
    return -1;
}

int session_get(struct session *s, const char *path, int *ret_fd, struct err *e)
{
    struct vessel *v = s->vessel;
    struct outcome o = {.fd = -1};
    int result = -1;

    vessel_enter(v); /* *s stays in memory */
    struct file_request *r = session_ask_get(s, path, note, &o, e);
    if (r) {
        result = await(s, &o, e);
        if (!o.answered && !s->closed)
            session_file_cancel(r);
    }
    vessel_leave(v);
    if (result < 0)
        return err_wrap(e, "cannot read %.200s", path);
    *ret_fd = o.fd;
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
        if (polls[0].revents && vessel_dispatch(s->vessel, e) < 0 && !*answered)
            return -1;
        if (s->closed)
            return err_set(e, 0, "the session was closed");
        int moved = polls[1].revents ? copy_some(c, e) : 0;
        if (moved < 0)
            return -1;
        if (moved > 0 || reading) /* a slow source is not the box's fault */
            moved_us = clock_now_us();
        else if (clock_now_us() - moved_us > FILES_PATIENCE_US)
            return err_set(e, ETIMEDOUT, "the box does not read");
    }
    return 0;
}

/* `r` is gone as soon as o->answered is true, or the session is closed. */
static int put_contents(struct session *s, struct file_request *r, struct copy *c,
                        struct outcome *o, struct err *e)
{
    int result = copy_all(s, c, &o->answered, e);

    fd_close(&c->to);
    if (result == 0) {
        if (!o->answered)
            session_put_all(r, c->refused ? UINT64_MAX : c->total);
        result = await(s, o, e);
    } else if (o->answered) {
        result = await(s, o, e); /* says it better */
    }
    if (result < 0 && !o->answered && !s->closed)
        session_file_cancel(r);
    return result;
}

int session_put(struct session *s, const char *path, int fd, struct err *e)
{
    cleanup_buf struct buf chunk = {0};
    struct copy c = {.from = fd, .to = -1, .chunk = buf_room(&chunk, CHUNK)};
    struct vessel *v = s->vessel;
    struct outcome o = {.fd = -1};
    int result = -1;

    vessel_enter(v); /* *s stays in memory */
    struct file_request *r = session_ask_put(s, path, &c.to, note, &o, e);
    if (r)
        result = put_contents(s, r, &c, &o, e);
    vessel_leave(v);
    return result < 0 ? err_wrap(e, "cannot write %.200s", path) : 0;
}
