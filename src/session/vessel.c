/* vessel: the loop that everything hangs on. Runs in the owner's process, without any privilege.
 *
 * One epoll descriptor for all sessions, watched level-triggered and changed only when a session
 * comes or goes, so that a cell costs no epoll_ctl. Each turn gives each session at most one read
 * of a pipe and one of its frames: a box that floods cannot starve the others.
 *
 * One timer: it is set only when something is due earlier than what it is set to, and when it goes
 * off everything is looked through. A cell with a minute's limit that takes a millisecond costs no
 * system call for its limit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "session/inside.h"

#define BATCH 64
#define STATE_MS 5000

/* ---- sources ---- */

void source_watch(struct vessel *v, struct source *s, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = s};
    int op = !s->watched ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

    if (s->fd < 0 || s->watched == events)
        return;
    /* Fails only for want of memory: then this source stays silent and its time limits catch it. */
    if (epoll_ctl(v->epoll, op, s->fd, &ev) == 0)
        s->watched = events;
}

void source_close(struct vessel *v, struct source *s)
{
    /* Explicitly: a process forked meanwhile may hold the same open file. */
    source_watch(v, s, 0);
    fd_close(&s->fd);
    s->watched = 0;
}

/* ---- life ---- */

struct vessel *vessel_new(int keeper_fd, struct err *e)
{
    cleanup_fd int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        err_set(e, errno, "cannot make an epoll descriptor");
        return NULL;
    }
    cleanup_fd int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0) {
        err_set(e, errno, "cannot make a timer");
        return NULL;
    }
    if (fd_set_nonblock(keeper_fd) < 0) {
        err_set(e, errno, "the keeper's socket cannot be used");
        return NULL;
    }
    struct vessel *v = xcalloc(1, sizeof(*v));
    v->epoll = fd_steal(&epoll);
    v->timer = fd_steal(&timer);
    v->armed_us = NEVER;
    v->keeper = (struct source){.kind = FROM_KEEPER, .fd = keeper_fd};
    v->ticker = (struct source){.kind = FROM_TIMER, .fd = v->timer};
    source_watch(v, &v->keeper, EPOLLIN);
    source_watch(v, &v->ticker, EPOLLIN);
    return v;
}

void vessel_free(struct vessel *v)
{
    if (!v)
        return;
    assert_that(v->depth == 0);
    while (v->sessions)
        session_close(v->sessions);
    link_flush(v);
    link_forget_ends(v);
    for (unsigned i = 0; i < v->n_outbox; i++)
        buf_done(&v->outbox[i]);
    free(v->outbox);
    buf_done(&v->frame);
    source_close(v, &v->keeper);
    source_close(v, &v->ticker);
    fd_close(&v->epoll);
    free(v);
}

int vessel_fd(const struct vessel *v)
{
    return v->epoll;
}

void vessel_enter(struct vessel *v)
{
    v->depth++;
}

void vessel_leave(struct vessel *v)
{
    struct session *next;

    assert_that(v->depth > 0);
    if (--v->depth > 0 || !v->sweep)
        return;
    v->sweep = false;
    for (struct session *s = v->sessions; s; s = next) {
        next = s->next;
        if (s->closed)
            session_free(s);
    }
}

uint32_t vessel_req(struct vessel *v)
{
    if (++v->last_req == 0)
        v->last_req = 1;
    return v->last_req;
}

int vessel_gone_err(const struct vessel *v, struct err *e)
{
    return err_set(e, 0, "retort's keeper is gone%s%s", v->why[0] ? ": " : "", v->why);
}

/* ---- the timer ---- */

void vessel_arm(struct vessel *v, int64_t at_us)
{
    struct itimerspec spec = {0};

    if (at_us >= v->armed_us)
        return;
    if (at_us < 1)
        at_us = 1; /* 0 would disarm it */
    spec.it_value.tv_sec = at_us / 1000000;
    spec.it_value.tv_nsec = at_us % 1000000 * 1000;
    if (timerfd_settime(v->timer, TFD_TIMER_ABSTIME, &spec, NULL) < 0)
        bug("timerfd_settime: %s", strerror(errno));
    v->armed_us = at_us;
}

static void tick(struct vessel *v)
{
    uint64_t times;

    if (read(v->timer, &times, sizeof(times)) < 0)
        return;
    int64_t now = clock_now_us();
    v->armed_us = NEVER;
    for (struct session *s = v->sessions; s; s = s->next) {
        if (!s->closed && (s->deadline_us <= now || s->cpu_check_us <= now))
            course_timer(s, now);
        if (!s->closed)
            requests_timer(s, now);
        if (!s->closed)
            checks_timer(s, now);
    }
    for (struct session *s = v->sessions; s; s = s->next) {
        if (s->closed)
            continue;
        vessel_arm(v, s->deadline_us);
        vessel_arm(v, s->cpu_check_us);
        vessel_arm(v, requests_due_us(s));
        vessel_arm(v, checks_due_us(s));
    }
}

/* ---- the loop ---- */

/* First note what is ready, then handle it session by session: so that within a session its output
 * comes before the frames that follow it, whatever epoll's order. */
static void note(const struct epoll_event *ev, unsigned *ready)
{
    struct source *s = ev->data.ptr;

    if (!s->session) {
        *ready |= 1u << s->kind;
        return;
    }
    s->session->ready |= 1u << s->kind;
}

static void handle(struct vessel *v, const struct epoll_event *events, int n)
{
    unsigned ready = 0;

    for (int i = 0; i < n; i++)
        note(&events[i], &ready);
    for (int i = 0; i < n; i++) {
        struct session *s = ((struct source *)events[i].data.ptr)->session;
        if (!s || !s->ready)
            continue;
        unsigned what = s->ready;
        s->ready = 0;
        if (!s->closed)
            channel_ready(s, what);
    }
    if (ready & (1u << FROM_KEEPER)) {
        link_flush(v);
        link_read(v);
    }
    if (ready & (1u << FROM_TIMER))
        tick(v);
}

int vessel_step(struct vessel *v, int timeout_ms, struct err *e)
{
    struct epoll_event events[BATCH];

    if (v->gone)
        return vessel_gone_err(v, e);
    int n = epoll_wait(v->epoll, events, BATCH, timeout_ms);
    if (n < 0 && errno != EINTR)
        return err_set(e, errno, "cannot wait for events");
    vessel_enter(v);
    handle(v, events, n);
    vessel_leave(v);
    return v->gone ? vessel_gone_err(v, e) : 0;
}

int vessel_dispatch(struct vessel *v, struct err *e)
{
    return vessel_step(v, 0, e);
}

int vessel_wait(struct vessel *v, const bool *flag, int timeout_ms, struct err *e)
{
    int64_t until = timeout_ms < 0 ? NEVER : clock_now_us() + (int64_t)timeout_ms * 1000;

    while (!*flag) {
        int wait_ms = -1;
        if (until != NEVER) {
            int64_t left = until - clock_now_us();
            if (left <= 0)
                return 0;
            wait_ms = (int)((left + 999) / 1000);
        }
        if (vessel_step(v, wait_ms, e) < 0)
            return *flag ? 1 : -1;
    }
    return 1;
}

int vessel_state(struct vessel *v, struct vessel_state *ret, struct err *e)
{
    struct state_request r = {.next = v->states, .req = vessel_req(v)};

    if (v->gone)
        return vessel_gone_err(v, e);
    v->states = &r; /* cppcheck-suppress autoVariables; taken back below */
    link_status(v, r.req);
    int got = vessel_wait(v, &r.answered, STATE_MS, e);
    for (struct state_request **p = &v->states; *p; p = &(*p)->next) {
        if (*p == &r) {
            *p = r.next;
            break;
        }
    }
    if (got == 0)
        return err_set(e, ETIMEDOUT, "the keeper does not answer");
    if (got < 0)
        return -1;
    *ret = r.state;
    return 0;
}

bool vessel_last_state(const struct vessel *v, struct vessel_state *ret)
{
    if (v->state_known)
        *ret = v->last_state;
    return v->state_known;
}

void vessel_ask_state(struct vessel *v)
{
    if (v->gone || v->state_req)
        return;
    v->state_req = vessel_req(v);
    link_status(v, v->state_req);
}
