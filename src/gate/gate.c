/* gate: the loop. One thread; one epoll set with libmicrohttpd's own, the vessel's own, a timer, signals, and
 * the few sockets and pipes that are watched by themselves.
 *
 * SIGTERM drains: no connection is taken any more, requests are refused, what waits in queues is refused,
 * running cells get their time; then every session ends, the last answers go out, and we leave. A second
 * signal leaves now.
 */
#include "gate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "gate/inner.h"
#include "gate/inside.h"
#include "gate/mcp/server.h"

#define EVENTS 64
#define IDLE_TURNS 16
#define FAREWELL_MS 3000    /* for the last answers to go out */
#define EXPIRE_AGAIN_MS 100 /* while there is more to forget: most of the time is for others */

/* What one epoll_wait gave. A watch that is cleared meanwhile is taken out, since it may be freed. */
static struct epoll_event batch[EVENTS];
static int n_batch, n_last;

void watch_set(struct gate *g, struct watch *w, int fd, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};

    if (epoll_ctl(g->epoll, w->fd == fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) < 0)
        bug("epoll_ctl: %s", strerror(errno));
    w->fd = fd;
}

void watch_clear(struct gate *g, struct watch *w)
{
    if (w->fd < 0)
        return;
    epoll_ctl(g->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    w->fd = -1;
    for (int i = 0; i < n_batch; i++)
        if (batch[i].data.ptr == w)
            batch[i].data.ptr = NULL;
}

static struct gate *gate_of(struct watch *w, size_t offset)
{
    return (struct gate *)((char *)w - offset);
}

void gate_arm(struct gate *g, int64_t at_ms)
{
    int64_t in_ms = at_ms - clock_wall_ms();

    if (at_ms >= g->armed_ms)
        return;
    g->armed_ms = at_ms;
    if (in_ms < 1)
        in_ms = 1;
    struct itimerspec t = {.it_value = {in_ms / 1000, in_ms % 1000 * 1000000}};
    timerfd_settime(g->timer_watch.fd, 0, &t, NULL);
}

/* ---- what is due ---- */

static void check_tokens(struct gate *g)
{
    struct err e;

    for (struct holder *h = g->holders; h; h = h->next)
        if ((h->sessions > 0 || mcp_has(g, h)) &&
            store_token_alive(g->store, h->token.id, &e) == 0) {
            mcp_end_of(g, h);
            runs_refuse_of(h);
            lives_end_of(g, h, "deleted");
        }
}

static int64_t expire_every_ms(const struct gate *g)
{
    double ms = g->config->retention_s * 500;

    return !(ms < 60000) ? 60000 : ms < 500 ? 500 : (int64_t)ms;
}

/* Also where nothing expires: what clients and "retort token revoke" had forgotten is finished here. */
static void expire(struct gate *g, int64_t now_ms)
{
    double retention_s = g->config->retention_s;
    int64_t before_ms = isfinite(retention_s) ? now_ms - (int64_t)(retention_s * 1000) : 0;
    struct err e;
    int worked = store_expire(g->store, before_ms, &e);

    if (worked < 0)
        log_line("store error=\"%s\"", e.text);
    g->expire_ms = now_ms + (worked > 0 ? EXPIRE_AGAIN_MS : expire_every_ms(g));
}

void gate_expire_soon(struct gate *g)
{
    g->expire_ms = clock_wall_ms() + EXPIRE_AGAIN_MS;
    gate_arm(g, g->expire_ms);
}

/* Also a clock that was set does not matter for more than a minute. */
static void tick(struct gate *g)
{
    int64_t now = clock_wall_ms(), next = now + 60000, at;

    g->armed_ms = INT64_MAX;
    if (g->n_lives > 0 || mcp_has(g, NULL)) {
        if (now >= g->token_check_ms || now < g->token_check_ms - TOKENS_MS) {
            check_tokens(g);
            g->token_check_ms = now + TOKENS_MS;
        }
        next = g->token_check_ms;
    }
    if (now >= g->expire_ms || now < g->expire_ms - 60000)
        expire(g, now);
    next = g->expire_ms < next ? g->expire_ms : next;
    at = lives_tick(g, now);
    next = at < next ? at : next;
    at = clients_tick(g, now);
    next = at < next ? at : next;
    at = mcp_tick(g, now);
    next = at < next ? at : next;
    at = streams_tick(now);
    next = at < next ? at : next;
    at = mcp_runs_tick(now);
    next = at < next ? at : next;
    if (g->draining)
        next = now + 50;
    gate_arm(g, next);
}

static void on_timer(struct watch *w, uint32_t events)
{
    struct gate *g = gate_of(w, offsetof(struct gate, timer_watch));
    uint64_t times;
    (void)events;

    if (read(w->fd, &times, sizeof(times)) < 0)
        return;
    tick(g);
}

/* ---- the end ---- */

static void drain(struct gate *g)
{
    double drain_s = g->config->drain_s;

    g->draining = true;
    g->drain_until_ms =
        isfinite(drain_s) ? clock_wall_ms() + (int64_t)(drain_s * 1000) : INT64_MAX - FAREWELL_MS;
    http_stop_accepting(g);
    log_line("draining sessions=%u", g->n_lives);
    runs_refuse(g);
    environments_refuse();
    questions_refuse();
    mcp_drain(g);
    for (struct live *l = g->lives; l; l = l->next)
        jobs_refuse(l, 503, "draining", "the server is about to stop; try again soon");
    gate_arm(g, clock_wall_ms() + 1);
}

static void on_signal(struct watch *w, uint32_t events)
{
    struct gate *g = gate_of(w, offsetof(struct gate, signal_watch));
    struct signalfd_siginfo info;
    (void)events;

    while (read(w->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (g->draining || !g->http)
            g->stopping = true; /* nobody waits for whoever speaks with one program alone */
        else
            drain(g);
    }
}

static bool any_running(const struct gate *g)
{
    for (const struct live *l = g->lives; l; l = l->next)
        if (l->running || (l->once && !l->ending))
            return true;
    return false;
}

/* Is it time to leave? Called in every turn. */
static bool drained(struct gate *g)
{
    int64_t now = clock_wall_ms();

    if (g->stopping || mcp_stdio_is_over(g))
        return true;
    if (!g->draining)
        return false;
    if (any_running(g) && now < g->drain_until_ms)
        return false;
    lives_end_all(g, "restart");
    if (g->drain_until_ms > now)
        g->drain_until_ms = now; /* that was for cells: the last answers have less */
    return (g->n_lives == 0 && g->n_requests == 0) || now > g->drain_until_ms + FAREWELL_MS;
}

/* ---- the loop ---- */

static void on_http(struct watch *w, uint32_t events)
{
    (void)w;
    (void)events; /* http_turn is called in every turn */
}

static void on_vessel(struct watch *w, uint32_t events)
{
    struct gate *g = gate_of(w, offsetof(struct gate, vessel_watch));
    struct err e = {0};
    (void)events;

    if (vessel_dispatch(g->vessel, &e) < 0) {
        snprintf(g->keeper_gone, sizeof(g->keeper_gone), "%.255s", e.text);
        g->stopping = true;
    }
}

int gate_turn(struct gate *g, int most_ms, struct err *e)
{
    g->idle_turns++;
    requests_go_on(g);
    inner_turn(g); /* before HTTP, which sends what comes of it */
    int wait_ms = http_turn(g);
    bool more = mcp_stdio_turn(g);
    if (more || g->inner_due || g->yielding) {
        wait_ms = 0;
        g->idle_turns = 0; /* they work, though nothing may come of it for a while */
    }

    /* libmicrohttpd says "at once" for as long as a client leaves it in the middle of some lines. When that
     * brings nothing, it can wait for a moment. Bodies that come and go make no events, but are something. */
    if (wait_ms != 0 || n_last != 0)
        g->idle_turns = 0;
    if (g->idle_turns > IDLE_TURNS && !http_is_sending(g))
        wait_ms = 5;
    if (most_ms >= 0 && (wait_ms < 0 || wait_ms > most_ms))
        wait_ms = most_ms;
    n_batch = epoll_wait(g->epoll, batch, EVENTS, drained(g) ? 0 : wait_ms);
    if (n_batch < 0 && errno != EINTR)
        return err_set(e, errno, "cannot wait");
    for (int i = 0; i < n_batch; i++) {
        struct watch *w = batch[i].data.ptr;
        if (w)
            w->ready(w, batch[i].events);
    }
    n_last = n_batch;
    n_batch = 0;
    if (g->keeper_gone[0])
        return err_set(e, 0, "the keeper is gone: %s", g->keeper_gone);
    return drained(g) ? 0 : 1;
}

/* ---- the beginning ---- */

static int open_watches(struct gate *g, struct err *e)
{
    sigset_t set;

    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (g->epoll < 0 || timer < 0 || signals < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_set(e, errno, "cannot make the loop's descriptors");
    signal(SIGPIPE, SIG_IGN);
    watch_set(g, &g->timer_watch, timer, EPOLLIN);
    watch_set(g, &g->signal_watch, signals, EPOLLIN);
    watch_set(g, &g->vessel_watch, vessel_fd(g->vessel), EPOLLIN);
    return 0;
}

void gate_close(struct gate *g)
{
    lives_end_all(g, "restart");
    if (g->http)
        http_stop(g);
    mcp_close(g);
    inner_close(g);
    while (g->lives) /* cells that were still running */
        live_ended(g->lives);
    close(g->timer_watch.fd);
    close(g->signal_watch.fd);
    close(g->epoll);
    for (struct holder *h; (h = g->holders);) {
        g->holders = h->next;
        free(h);
    }
    store_close(g->store);
    fd_close(&g->asker_fd);
    fd_close(&g->state_fd);
}

static int open_store(struct gate *g, struct err *e)
{
    /* The lock goes with the process. "retort token" does not ask for it. */
    g->state_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->state_fd < 0 || flock(g->state_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_set(e, 0, "another server uses this state; give this one its own --state")
                   : err_set(e, errno, "cannot lock the state");
    if (store_open(NULL, &g->store, e) < 0)
        return -1;
    if (store_sessions_restarted(g->store, clock_wall_ms(), e) < 0) {
        store_close(g->store);
        return -1;
    }
    return 0;
}

/* Nothing that is said on standard input is kept for longer than we live: the records are in memory. The program at
 * the other end may do what the person who started it may. */
static int open_stdio(struct gate *g, const struct gate_start *start, struct err *e)
{
    char text[TOKEN_TEXT_MAX];
    struct token token;

    if (store_token_local(g->store, text, e) < 0 ||
        store_token_find(g->store, text, strlen(text), &token, e) < 0)
        return -1;
    mcp_stdio_open(g, holder_get(g, &token), start->in_fd, start->out_fd);
    return 0;
}

int gate_open(struct gate *g, const struct gate_start *start, struct err *e)
{
    bool http = start->listen_fd >= 0;

    *g = (struct gate){
        .config = start->config,
        .environments = start->environments,
        .vessel = start->vessel,
        .asker_fd = start->asker_fd,
        .state_fd = -1,
        .files = start->files,
        .n_files = start->n_files,
        .armed_ms = INT64_MAX,
        .http_watch = {-1, on_http},
        .vessel_watch = {-1, on_vessel},
        .signal_watch = {-1, on_signal},
        .timer_watch = {-1, on_timer},
    };
    if ((http ? open_store(g, e) : store_open_memory(&g->store, e)) < 0)
        return -1;
    mcp_open(g);
    if (open_watches(g, e) < 0 ||
        (http ? http_start(g, start->listen_fd, e) : open_stdio(g, start, e)) < 0) {
        gate_close(g);
        return -1;
    }
    gate_arm(g, clock_wall_ms() + 1);
    vessel_ask_state(g->vessel); /* for the first who looks */
    return 0;
}

int gate_serve(const struct gate_start *start, struct err *e)
{
    static struct gate gate;
    int r = gate_open(&gate, start, e);

    if (r < 0)
        return -1;
    if (start->ready)
        start->ready(start->ctx);
    while ((r = gate_turn(&gate, -1, e)) > 0)
        ;
    gate_close(&gate);
    return r;
}
