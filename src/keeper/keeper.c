/* keeper: the only privileged process, and the least talkative one.
 *
 * Rights: the capabilities that making boxes takes (box/identity.c), over a user namespace of its own,
 * and none on the host. Its uid there is one that nobody else has (where root started us) or the
 * user's own. It lives in a mount namespace with nothing in it but what boxes are made of, in a
 * network namespace with nothing in it at all, and is pid 1 of a pid namespace: when it dies, the
 * kernel ends every zygote and every box.
 *
 * It takes the requests of the table below from the owner, and from boxes only "done" and "failed".
 * It parses no HTTP, no JSON, no Python and no path that came from outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/steps.h"
#include "keeper/state.h"
#include "wire/limits_wire.h"
#include "wire/proto.h"

/* ---- the loop's means ---- */

int watch_add(struct state *s, struct watch *src, int fd, void (*ready)(struct state *s, void *ctx),
              void *ctx, struct err *e)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = src};

    *src = (struct watch){.fd = fd, .ready = ready, .ctx = ctx};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
        fd_close(&src->fd);
        return err_set(e, errno, "epoll_ctl");
    }
    return 0;
}

void watch_close(struct state *s, struct watch *src)
{
    if (src->fd >= 0)
        epoll_ctl(s->epoll, EPOLL_CTL_DEL, src->fd, NULL);
    fd_close(&src->fd);
}

void owner_tell(struct state *s, const struct buf *b, const int *fds, unsigned n_fds)
{
    struct err e;

    /* pid 1's exit ends every box: nobody is left who could use them. */
    if (msg_send(s->owner.fd, b, fds, n_fds, &e) < 0)
        _exit(0);
}

static void owner_tell_text(struct state *s, uint32_t type, const char *text)
{
    cleanup_buf struct buf m = {0};

    msg_begin(&m, type);
    if (text)
        fields_put_text(&m, text);
    owner_tell(s, &m, NULL, 0);
}

/* ---- the owner's requests ---- */

static void on_create(struct state *s, struct fields *f)
{
    struct limits l;

    uint32_t request = fields_get_u32(f);
    uint32_t environment = fields_get_u32(f);
    limits_get(f, &l);
    if (fields_end(f))
        box_create(s, request, environment, &l);
}

static void on_branch(struct state *s, struct fields *f)
{
    struct limits l;

    uint32_t request = fields_get_u32(f);
    uint32_t from = fields_get_u32(f);
    uint32_t n = fields_get_u32(f);
    bool present = fields_get_u8(f);
    limits_get(f, &l);
    if (fields_end(f))
        box_branch(s, request, from, n, present, &l);
}

static void on_signal(struct state *s, struct fields *f)
{
    struct box *b = box_find(s, fields_get_u32(f));
    uint32_t signal = fields_get_u32(f);

    if (fields_end(f) && b && b->phase == BOX_OUT && (signal == SIGINT || signal == SIGKILL))
        box_signal(s, b, (int)signal);
}

static void on_destroy(struct state *s, struct fields *f)
{
    struct box *b = box_find(s, fields_get_u32(f));

    if (!fields_end(f) || !b || b->phase != BOX_OUT)
        return;
    b->tell_end = true;
    box_end(s, b);
}

static void on_give_up(struct state *s, struct fields *f)
{
    uint32_t request = fields_get_u32(f);

    if (fields_end(f))
        box_branch_give_up(s, request);
}

static void on_status(struct state *s, struct fields *f)
{
    cleanup_buf struct buf m = {0};
    unsigned boxes = 0, ready = 0, blank = 0;
    uint32_t request = fields_get_u32(f);

    for (const struct box *b = s->boxes; b; b = b->next) {
        boxes++;
        ready += b->phase == BOX_READY;
        blank += b->phase == BOX_BLANK;
    }
    msg_begin(&m, KEEPER_STATE);
    fields_put_u32(&m, request);
    fields_put_u32(&m, boxes);
    fields_put_u32(&m, ready);
    fields_put_u32(&m, blank);
    fields_put_u32(&m, (uint32_t)s->zygotes[0].pid);
    fields_put_u32(&m, s->zygotes[0].started);
    owner_tell(s, &m, NULL, 0);
}

static void on_owner(struct state *s, void *ctx)
{
    static void (*const requests[])(struct state *, struct fields *) = {
        [KEEPER_CREATE] = on_create, [KEEPER_SIGNAL] = on_signal, [KEEPER_DESTROY] = on_destroy,
        [KEEPER_STATUS] = on_status, [KEEPER_BRANCH] = on_branch, [KEEPER_GIVE_UP] = on_give_up,
    };
    struct fields f;
    struct err e;
    (void)ctx;

    int r = msg_recv(s->owner.fd, &s->in, &e);
    if (r == 0)
        _exit(0);
    if (r < 0)
        return;
    msg_done(&s->in); /* no request carries a descriptor */
    fields_init(&f, s->in.data, s->in.len);
    if (s->in.type < sizeof(requests) / sizeof(*requests) && requests[s->in.type])
        requests[s->in.type](s, &f);
}

/* ---- deaths ---- */

static void on_signals(struct state *s, void *ctx)
{
    struct signalfd_siginfo info;
    siginfo_t died;
    (void)ctx;

    if (read(s->signals.fd, &info, sizeof(info)) < 0 && errno != EAGAIN)
        bug("signalfd: %s", strerror(errno));
    for (;;) {
        died.si_pid = 0;
        if (waitid(P_ALL, 0, &died, WEXITED | WNOHANG | WNOWAIT) < 0 || died.si_pid == 0)
            return;
        int status;
        pid_t pid = waitpid(died.si_pid, &status, 0);
        if (box_child_died(s, pid, status) || zygote_died(s, pid, status))
            continue;
        /* A fork of a zygote's whose name we have not heard yet: take_fork looks here. */
        if (s->n_early < sizeof(s->early) / sizeof(*s->early))
            s->early[s->n_early++] = pid;
        boxes_forget_early(s);
    }
}

/* ---- the loop ---- */

static int watch_signals(struct state *s, struct err *e)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_SETMASK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_set(e, errno, "signalfd");
    return watch_add(s, &s->signals, fd, on_signals, NULL, e);
}

/* Libraries tell a fork by getpid() when they guard their random states: OpenSSL does, and so do those
 * that bring an OpenSSL of their own. In every box the interpreter is process 2. No zygote may be, or
 * they would see the same number before and after, and all boxes would draw the same numbers. */
static void pass_over_kernel_pid(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static int begin(struct state *s, int owner_fd, struct err *e)
{
    pass_over_kernel_pid();
    s->owner.fd = owner_fd;
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll < 0)
        return err_set(e, errno, "epoll_create1");
    if (watch_add(s, &s->owner, owner_fd, on_owner, NULL, e) < 0 || watch_signals(s, e) < 0)
        return -1;
    for (unsigned i = 0; i < s->options->n_environments; i++) {
        s->zygotes[i].control.fd = s->zygotes[i].log.fd = -1;
        if (zygote_start(s, i, e) < 0)
            return -1;
    }
    return 0;
}

/* Until something is to be done without anybody's word, in ms; -1: nothing. */
static int time_to_act(const struct state *s)
{
    const int64_t others[] = {zygotes_next_ms(s), branches_next_ms(s)};
    int64_t next = s->refill_at_ms;

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (others[i] && (!next || others[i] < next))
            next = others[i];
    if (!next)
        return -1;
    int64_t left = next - clock_now_ms();
    return left > 0 ? (int)left : 0;
}

void keeper_run(struct state *s, int owner_fd)
{
    struct epoll_event event;
    struct err e;

    prctl(PR_SET_NAME, "keeper");
    if (begin(s, owner_fd, &e) < 0) {
        owner_tell_text(s, KEEPER_GONE, e.text);
        _exit(1);
    }
    owner_tell_text(s, KEEPER_STANDS, NULL);
    for (;;) {
        /* One event at a time: what it does may free what the next one belongs to. */
        int n = epoll_wait(s->epoll, &event, 1, time_to_act(s));
        if (n < 0 && errno != EINTR)
            bug("epoll_wait: %s", strerror(errno));
        if (n == 1) {
            struct watch *src = event.data.ptr;
            src->ready(s, src->ctx);
        }
        if (s->refill_at_ms && clock_now_ms() >= s->refill_at_ms)
            stock_refill(s);
        zygotes_check(s);
        branches_check(s);
    }
}
