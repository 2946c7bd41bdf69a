/* owner: see owner.h. */
#include "guest/owner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

/* One session, and those that come and go while doctor looks; or all the branches of a repl (BRANCHES_MAX), and
 * what is left of those that died, which is fewer, because another has left each of them. As root, each has
 * devices made for it. */
#define FEW_BOXES 32u

/* Done after the keeper was started, so that no process below it inherits our mask. */
static int take_signals(struct owner *o, struct err *e)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGCONT);
    signal(SIGPIPE, SIG_IGN); /* a closed stdout is seen by write */
    if (sigprocmask(SIG_BLOCK, &set, &o->signals_before) < 0)
        return err_set(e, errno, "sigprocmask");
    o->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return o->signal_fd < 0 ? err_set(e, errno, "signalfd") : 0;
}

int owner_keep(const struct keeper_options *options, struct keeper *ret, struct vessel **ret_vessel,
               struct err *e)
{
    struct keeper k;

    if (keeper_start(options, &k, e) < 0)
        return -1;
    struct vessel *v = vessel_new(k.fd, e);
    if (!v) {
        fd_close(&k.fd);
        keeper_stop(&k);
        return -1;
    }
    *ret = k;
    *ret_vessel = v;
    return 0;
}

void owner_let_go(struct keeper *k, struct vessel *v)
{
    vessel_free(v);
    if (k->ground)
        keeper_stop(k);
}

int owner_start(struct owner *o, const struct environment *env, const struct limits *limits,
                struct err *e)
{
    struct keeper_options options = {.environments = env,
                                     .n_environments = 1,
                                     .limits = *limits,
                                     .boxes = FEW_BOXES,
                                     .few = true};

    *o = (struct owner){.signal_fd = -1, .wish.checkpoints = -1};
    if (owner_keep(&options, &o->keeper, &o->vessel, e) < 0)
        return -1;
    outlet_init(&o->out);
    if (take_signals(o, e) == 0)
        return 0;
    owner_stop(o);
    return -1;
}

int owner_connect(struct owner *o, const struct address *a, const struct wish *wish, struct err *e)
{
    *o = (struct owner){.signal_fd = -1, .wish = *wish};
    outlet_init(&o->out);
    /* Signals first: libcurl may start threads, which inherit our mask. */
    if (take_signals(o, e) == 0)
        o->client = client_new(a, "is \"retort serve\" running there?", e);
    if (o->client)
        return 0;
    owner_stop(o);
    return -1;
}

void owner_stop(struct owner *o)
{
    if (o->client)
        client_free(o->client);
    o->client = NULL;
    owner_let_go(&o->keeper, o->vessel);
    o->vessel = NULL;
    /* Last, and with the signals as they were: a reader that never reads must not keep boxes alive,
     * nor hold us against a Ctrl-C. */
    if (o->signal_fd >= 0)
        sigprocmask(SIG_SETMASK, &o->signals_before, NULL);
    fd_close(&o->signal_fd);
    outlet_flush(&o->out);
    outlet_done(&o->out);
}

static int read_signals(struct owner *o)
{
    struct signalfd_siginfo info;
    int turn = 0;

    while (read(o->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGINT) {
            turn |= TURN_SIGINT;
            o->out.midline = true; /* the terminal has shown "^C" */
        }
        if (info.ssi_signo == SIGWINCH)
            turn |= TURN_RESIZE;
        if (info.ssi_signo == SIGCONT)
            turn |= TURN_BACK;
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
            turn |= TURN_STOP;
    }
    return turn;
}

/* Where boxes are heard. */
static int boxes_fd(const struct owner *o)
{
    return o->client ? client_fd(o->client) : vessel_fd(o->vessel);
}

static int boxes_dispatch(struct owner *o, struct err *e)
{
    if (!o->client)
        return vessel_dispatch(o->vessel, e);
    client_dispatch(o->client);
    return 0;
}

void owner_listen(struct owner *o, struct client *other)
{
    o->other = other;
}

static int one_turn(struct owner *o, int input_fd, int timeout_ms, struct err *e)
{
    enum { BOXES, OTHER, SIGNALS, INPUT, OUT };
    int wants = outlet_wants(&o->out);
    struct pollfd p[] = {
        [BOXES] = {.fd = boxes_fd(o), .events = POLLIN},
        [OTHER] = {.fd = o->other ? client_fd(o->other) : -1, .events = POLLIN},
        [SIGNALS] = {.fd = o->signal_fd, .events = POLLIN},
        [INPUT] = {.fd = input_fd, .events = POLLIN},
        [OUT] = {.fd = wants ? wants : -1, .events = POLLOUT},
    };

    if (poll(p, sizeof(p) / sizeof(p[0]), timeout_ms) < 0)
        return errno == EINTR ? 0 : err_set(e, errno, "poll");
    int turn = 0;
    if (p[SIGNALS].revents)
        turn |= read_signals(o);
    if (p[OUT].revents)
        outlet_ready(&o->out);
    if (p[BOXES].revents && boxes_dispatch(o, e) < 0)
        return -1;
    if (p[OTHER].revents)
        client_dispatch(o->other);
    if (p[INPUT].revents)
        turn |= TURN_INPUT;
    if (o->out.closed)
        turn |= TURN_CLOSED;
    return turn;
}

/* How long a turn may take: -1, as long as it likes. */
static int until_tick_ms(const struct owner *o)
{
    int64_t left = o->ticked_ms + o->tick_ms - clock_now_ms();

    return o->tick_ms <= 0 ? -1 : left < 0 ? 0 : left > o->tick_ms ? o->tick_ms : (int)left;
}

int owner_turn(struct owner *o, int input_fd, struct err *e)
{
    int seen = o->seen;

    o->seen = 0;
    if (!o->lost && !seen)
        seen = one_turn(o, input_fd, until_tick_ms(o), e);
    if (seen >= 0 && until_tick_ms(o) == 0) {
        o->ticked_ms = clock_now_ms();
        seen |= TURN_TICK;
    }
    if (!o->lost)
        return seen;
    *e = o->why;
    return -1;
}

void owner_wait(struct owner *o, const bool *flag, int timeout_ms)
{
    int64_t until = clock_now_ms() + timeout_ms;
    struct err ignored;

    while (!*flag && !(o->seen & (TURN_SIGINT | TURN_STOP))) {
        int64_t left = until - clock_now_ms();
        int turn = left > 0 ? one_turn(o, -1, (int)left, &ignored) : -1;
        if (turn < 0)
            return;
        o->seen |= turn;
    }
}

void owner_lose(struct owner *o, const struct err *why)
{
    if (!o->lost)
        o->why = *why;
    o->lost = true;
}
