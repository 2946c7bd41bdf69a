/* points: see points.h. What comes on the line is the guest's: it can ask for forks, which cost it its own
 * memory and its own points, and nothing else. Whoever is to wait is known by its number, which the kernel
 * tells us and which only a process that init has let in can have. */
#include "init/points.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/box.h"
#include "init/usage.h"
#include "wire/fields.h"
#include "wire/proto.h"

#define FORK_MS 5000 /* for a fork that we have made way for */
#define WAKE_MS 4000
#define WEIGH_MS 200
#define LATE_MAX 16
/* Copies of the workspace for going back. */
#define COPIED_SHARE 4
#define COPIED_MOST (1ULL << 30) /* where memory has no limit */
#define OLDEST_SCORE 1000
#define SCORE_STEP 4         /* more than what pages that are shared make of a difference */
#define AGED_SCORE_LEAST 300 /* more than the interpreter's */

/* ---- numbers ---- */

void points_open_last_pid(struct points *p)
{
    p->last_pid = open("/proc/sys/kernel/ns_last_pid", O_RDWR | O_CLOEXEC);
}

static int set_next(struct points *p, pid_t next)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%d", next - 1);

    return pwrite(p->last_pid, text, (size_t)len, 0) == len ? 0 : -1;
}

void points_begin_numbers(struct points *p)
{
    set_next(p, BOX_GUEST_PID + 2 * (pid_t)(clock_now_us() % 10000));
}

/* Back to where the guest's numbers were. */
static void close_range_of_pids(struct points *p)
{
    long before = strtol(p->before, NULL, 10);

    set_next(p, before + 1 < BOX_GUEST_PID ? BOX_GUEST_PID : (pid_t)before + 1);
    p->expected = 0;
}

/* A go-between comes first, so the one that waits has the second of two free numbers. */
static pid_t free_number(void)
{
    for (pid_t pid = BOX_WAITING_PID; pid < BOX_WAITING_PID + BOX_WAITING_PIDS; pid += 2)
        if (kill(pid, 0) < 0 && errno == ESRCH && kill(pid + 1, 0) < 0 && errno == ESRCH)
            return pid;
    return 0;
}

/* ---- words ---- */

static void reply(const struct points *p, uint32_t type)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, type);
    fields_put_u32(&b, p->seq);
    msg_send(p->line, &b, NULL, 0, &ignored);
}

static void tell_keeper(const struct points *p, pid_t pid, bool waits)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, SETUP_WAITS);
    fields_put_u32(&b, (uint32_t)pid);
    fields_put_u8(&b, waits);
    msg_send(p->setup, &b, NULL, 0, &ignored);
}

static void tell_died(const struct points *p, int status)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, SETUP_DIED);
    fields_put_u32(&b, (uint32_t)status);
    msg_send(p->setup, &b, NULL, 0, &ignored);
}

static void tell_score(struct point *x, unsigned score)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    if (x->score == score)
        return;
    x->score = score;
    msg_begin(&b, WAITING_SCORE);
    fields_put_u32(&b, score);
    msg_try_send(x->line, &b, NULL, 0, &ignored);
}

/* ---- the list ---- */

bool points_has(const struct points *p, pid_t pid)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->list[i].pid == pid)
            return true;
    return false;
}

/* It sleeps, unless it was killed: then it has that before it, or behind it. */
static bool is_dying(pid_t pid)
{
    char path[32], text[2048];
    struct err ignored;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (fd_get_text(AT_FDCWD, path, text, sizeof(text), &ignored) < 0)
        return true;
    const char *state = strstr(text, "\nState:\t"), *pending = strstr(text, "\nSigPnd:\t");
    bool killed = pending && strtoull(pending + 9, NULL, 16) & (1u << (SIGKILL - 1));
    return killed || (state && state[8] != 'S');
}

bool points_dying(const struct points *p)
{
    for (unsigned i = 0; i < p->n; i++)
        if (is_dying(p->list[i].pid))
            return true;
    return p->copies.holder > 0 && is_dying(p->copies.holder);
}

/* Does not change any more when it has a score: see sleep_on in zygote/keep.c. */
static uint64_t resident(const struct point *x)
{
    char pid[16];

    snprintf(pid, sizeof(pid), "%d", x->pid);
    return usage_resident(pid);
}

/* The kernel ends first what has the largest sum of its resident memory and its score, in thousandths of the limit:
 * so much less than the next older one's must its score be. */
static unsigned score_after(const struct points *p, unsigned i)
{
    if (i == 0)
        return OLDEST_SCORE;
    const struct point *older = &p->list[i - 1];
    uint64_t its = resident(&p->list[i]), olders = resident(older);
    uint64_t more = its > olders ? its - olders : 0;
    double part = p->memory == LIMIT_NONE ? 0 : (double)more / (double)p->memory * 1000;
    double score = older->score - part - SCORE_STEP;

    return score > AGED_SCORE_LEAST ? (unsigned)score : AGED_SCORE_LEAST;
}

/* Who is ended first when memory is short: the oldest, then the next; the newest after the interpreter, which has
 * LIVE_OOM_SCORE (zygote/keep.c): none goes before the oldest unless it has more than eight tenths of the limit for
 * itself. Each takes its score itself, in its own time, so that one which has a score keeps it when an older one
 * goes: while some had moved up and others not, their order would be wrong. */
static void set_scores(struct points *p)
{
    bool again =
        p->n > 1 && p->list[p->n - 2].score == 0 && score_after(p, p->n - 2) == AGED_SCORE_LEAST;

    for (unsigned i = 0; i + 1 < p->n; i++)
        if (again || p->list[i].score == 0)
            tell_score(&p->list[i], score_after(p, i));
    if (p->n)
        tell_score(&p->list[p->n - 1], 0);
}

/* It sees its line's end, and leaves. */
static void drop(struct points *p, unsigned i)
{
    fd_close(&p->list[i].line);
    free(p->list[i].lost);
    past_done(&p->list[i].past);
    tell_keeper(p, p->list[i].pid, false);
    p->n--;
    memmove(p->list + i, p->list + i + 1, (p->n - i) * sizeof(*p->list));
    set_scores(p);
}

static void on_want(struct points *p, struct fields *f, const struct msg *m)
{
    uint32_t seq = fields_get_u32(f);

    fields_get_u32(f); /* n: the one that waits says it again */
    if (!fields_end(f) || m->from != p->live || p->expected)
        return;
    p->seq = seq;
    pid_t pid = p->max > 0 ? free_number() : 0;
    ssize_t len = p->last_pid < 0 ? -1 : pread(p->last_pid, p->before, sizeof(p->before) - 1, 0);
    if (pid == 0 || len <= 0 || set_next(p, pid) < 0) {
        reply(p, LINE_NO);
        return;
    }
    p->before[len] = '\0';
    p->expected = pid + 1;
    p->until_ms = clock_now_ms() + FORK_MS;
    reply(p, LINE_GO);
}

/* One has to go, neither the newest nor the oldest: the one whose neighbours are closest to each other, for its
 * age. What is left is dense near the present and thin far from it. */
static void thin(struct points *p)
{
    unsigned worst = p->n > 2;
    double least = INFINITY;

    for (unsigned i = 1; i + 1 < p->n; i++) {
        double gap = (double)p->list[i + 1].n - p->list[i - 1].n;
        double age = (double)p->list[p->n - 1].n - p->list[i].n + 1;
        if (gap / age < least) {
            least = gap / age;
            worst = i;
        }
    }
    drop(p, worst);
}

/* One that has died while it worked: its death counts before the next cell does. */
static void reap_holder(struct points *p)
{
    pid_t pid = p->copies.ended;
    int status;

    if (pid > 0 && waitpid(pid, &status, 0) == pid)
        points_reaped(p, pid, status);
}

static void on_waits(struct points *p, struct fields *f, struct msg *m)
{
    uint32_t n = fields_get_u32(f);
    size_t len;
    const char *lost = fields_get_bytes(f, &len);
    struct err ignored;

    cleanup_fd int line = msg_take_fd(m, 0);
    if (!p->expected)
        return;
    /* With another number anybody could end it: somebody else's fork came in between. */
    bool sound = fields_end(f) && line >= 0 && len <= POINT_LOST && m->from == p->expected;
    close_range_of_pids(p);
    if (!sound || p->max == 0) {
        reply(p, LINE_NO);
        return;
    }
    /* The owner has changed files since, or the guest plays with us. */
    bool once_more = p->n > 0 && p->list[p->n - 1].n == n;
    if (once_more)
        drop(p, p->n - 1);
    else if (p->n >= p->max)
        thin(p);
    struct point *last = p->n > 0 ? &p->list[p->n - 1] : NULL;
    struct point *x = &p->list[p->n];
    *x = (struct point){.pid = m->from,
                        .n = n,
                        .up_to = n,
                        .line = fd_steal(&line),
                        .taken_ms = clock_wall_ms(),
                        /* the numbers of a branch may go on beyond what was undone in the other */
                        .gone_back = p->branch && p->n == 0,
                        .lost = strndup(lost, len)};
    p->n++;
    set_scores(p); /* copying may be what makes memory short */
    /* Before the interpreter goes on. A workspace that cannot be copied comes back as far as it was. */
    /* With many files, looking at them takes longer than the fork. But what a cell did to them is told when its owner
     * asks, who may be slower than the interpreter is to be kept. */
    if (last && !p->touched && !once_more && p->watch && watch_quiet(p->watch))
        past_share(&x->past, &last->past);
    else
        past_take(&x->past, last ? &last->past : NULL, &p->copies, &ignored);
    reap_holder(p);
    p->touched = false;
    tell_keeper(p, x->pid, true);
    reply(p, LINE_TAKEN);
}

static void on_failed(struct points *p, struct fields *f, const struct msg *m)
{
    uint32_t seq = fields_get_u32(f);

    if (fields_end(f) && p->expected && m->from == p->live && seq == p->seq)
        close_range_of_pids(p);
}

/* With a number that no guest can signal, as those that wait have. */
static pid_t fork_holder(void *ctx)
{
    struct points *p = ctx;
    pid_t pid = free_number();
    ssize_t len = p->last_pid < 0 ? -1 : pread(p->last_pid, p->before, sizeof(p->before) - 1, 0);

    if (pid == 0 || len <= 0 || p->expected || set_next(p, pid) < 0)
        return -1;
    p->before[len] = '\0';
    pid_t made = fork();
    if (made == 0)
        return 0;
    close_range_of_pids(p);
    if (made > 0 && made != pid) /* somebody else's fork came in between */
        kill(made, SIGKILL);
    if (made != pid)
        return -1;
    tell_keeper(p, made, true);
    return made;
}

void points_limit(struct points *p, unsigned max)
{
    p->max = p->counted || max == 0 ? max : 1;
    p->max = p->max < POINTS ? p->max : POINTS;
    while (p->n > p->max)
        thin(p);
}

void points_memory(struct points *p, uint64_t memory)
{
    p->memory = memory;
    p->copies.most = memory == LIMIT_NONE ? COPIED_MOST : memory / COPIED_SHARE;
}

void points_begin(struct points *p, int setup, int line, bool counted, uint64_t memory)
{
    const int on = 1;

    p->counted = counted;
    copies_init(&p->copies, 0, counted ? fork_holder : NULL, p);
    points_memory(p, memory);
    points_limit(p, CHECKPOINTS_DEFAULT);
    p->setup = setup;
    p->line = line;
    memset(p->near, -1, sizeof(p->near));
    if (setsockopt(line, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        fd_close(&p->last_pid); /* nobody can be kept: sessions end with their interpreter */
}

static int tell_live(const struct points *p, struct err *e)
{
    cleanup_buf struct buf b = {0};

    cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, p->live, 0);
    if (pidfd < 0)
        return err_set(e, errno, "pidfd_open");
    msg_begin(&b, SETUP_LIVE);
    return msg_send(p->setup, &b, &pidfd, 1, e);
}

/* The kernel process is the first in the box; what it starts has numbers beyond those that wait. It has not
 * begun yet. Should it be faster than we are, its first few are below them. */
static void on_here(struct points *p, pid_t pid)
{
    bool first = !p->waking;
    struct err ignored;

    p->begun = true;
    p->live = pid;
    if (first && p->branch) {
        p->adopted = true;
        tell_live(p, &ignored); /* should it be gone, the keeper hears of that too */
        return;
    }
    if (first && p->last_pid >= 0 && set_next(p, BOX_GUEST_PID) < 0)
        fd_close(&p->last_pid);
}

void points_hear(struct points *p)
{
    static struct msg m;
    struct fields f;
    struct err e;
    int r = msg_recv(p->line, &m, &e);

    if (r == 0 || (r < 0 && e.code != EBADMSG)) {
        fd_close(&p->line); /* all who had its other end are gone */
        return;
    }
    fields_init(&f, m.data, r > 0 ? m.len : 0);
    if (r > 0 && m.type == LINE_HERE && p->live == 0)
        on_here(p, m.from);
    else if (r > 0 && m.type == LINE_WANT)
        on_want(p, &f, &m);
    else if (r > 0 && m.type == LINE_WAITS)
        on_waits(p, &f, &m);
    else if (r > 0 && m.type == LINE_FAILED)
        on_failed(p, &f, &m);
    msg_done(&m);
}

void points_reaped(struct points *p, pid_t pid, int status)
{
    if (p->adopted && pid == p->live) {
        p->adopted = false;
        tell_died(p, status);
        return;
    }
    if (p->expected && pid == p->expected) { /* it could not get as far as to wait */
        close_range_of_pids(p);
        reply(p, LINE_NO);
        return;
    }
    bool waited = points_has(p, pid), held = copies_reaped(&p->copies, pid);
    if (held)
        tell_keeper(p, pid, false);
    p->evicted += (waited || held) && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    for (unsigned i = 0; i < p->n; i++)
        if (p->list[i].pid == pid) {
            if (p->waking && i == p->n - 1)
                fd_close(&p->line); /* points_woke sees it */
            else
                drop(p, i);
            return;
        }
}

int points_tick(struct points *p)
{
    if (!p->expected)
        return p->waking ? WAKE_MS : -1;
    int64_t left = p->until_ms - clock_now_ms();
    if (left > 0)
        return (int)left;
    close_range_of_pids(p);
    reply(p, LINE_NO);
    return -1;
}

/* ---- waking ---- */

struct ends {
    int near[4]; /* frames, orders, stdout, stderr */
    int far[WAITING_FDS];
};

static void ends_done(struct ends *x)
{
    for (unsigned i = 0; i < 4; i++)
        fd_close(&x->near[i]);
    for (unsigned i = 0; i < WAITING_FDS; i++)
        fd_close(&x->far[i]);
}

static int make_ends(struct ends *x, int *ret_line, struct err *e)
{
    enum { FRAMES, ORDERS, OUT, ERR };
    static const struct {
        unsigned near, far; /* which pipe is whose, and at which end the guest is */
        bool guest_writes;
    } pipes[] = {{FRAMES, 2, true}, {ORDERS, 3, false}, {OUT, 0, true}, {ERR, 1, true}};
    int pair[2];

    *x = (struct ends){{-1, -1, -1, -1}, {-1, -1, -1, -1, -1}};
    for (size_t i = 0; i < sizeof(pipes) / sizeof(*pipes); i++) {
        if (pipe2(pair, O_CLOEXEC) < 0)
            return err_set(e, errno, "cannot make a pipe");
        x->near[pipes[i].near] = pair[pipes[i].guest_writes ? 0 : 1];
        x->far[pipes[i].far] = pair[pipes[i].guest_writes ? 1 : 0];
    }
    if (msg_pair(pair, e) < 0)
        return -1;
    *ret_line = pair[0];
    x->far[4] = pair[1];
    return 0;
}

static int ask_for_successor(struct points *p, struct err *e)
{
    __attribute__((cleanup(ends_done))) struct ends ends;
    cleanup_buf struct buf b = {0};
    cleanup_fd int line = -1;
    const int on = 1;

    if (make_ends(&ends, &line, e) < 0)
        return -1;
    if (setsockopt(line, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return err_set(e, errno, "setsockopt");
    msg_begin(&b, WAITING_WAKE);
    fields_put_u32(&b, p->list[p->n - 1].up_to);
    if (msg_try_send(p->list[p->n - 1].line, &b, ends.far, WAITING_FDS, e) < 0)
        return -1;
    fd_close(&p->line);
    p->line = fd_steal(&line);
    memcpy(p->near, ends.near, sizeof(ends.near));
    memset(ends.near, -1, sizeof(ends.near));
    return 0;
}

/* The newest that can be asked. */
static int wake_one(struct points *p, struct err *e)
{
    for (; p->n > 0; drop(p, p->n - 1)) {
        if (ask_for_successor(p, e) < 0)
            continue;
        p->live = 0;
        p->adopted = false;
        p->waking = true;
        p->waking_n = p->list[p->n - 1].up_to;
        p->awake_ms = clock_now_ms() + WAKE_MS;
        return 0;
    }
    return err_set(e, ENOENT, "no process waits to take its place");
}

bool point_has(const struct point *x, uint32_t n)
{
    bool undone = x->undone_to && x->undone_from <= n && n <= x->undone_to;

    return x->n <= n && n <= x->up_to && !undone;
}

/* It is gone back to there. One gap is remembered: what is before an older one is given up. */
static void point_go_back(struct point *x, uint32_t n)
{
    if (x->undone_to && n > x->undone_to)
        x->n = x->undone_to + 1;
    x->undone_from = x->undone_to = 0;
    x->up_to = n;
    x->gone_back = true;
}

int points_find(const struct points *p, uint32_t n)
{
    for (unsigned i = p->n; i-- > 0;)
        if (n == POINT_NEWEST || point_has(&p->list[i], n))
            return (int)i;
    return -1;
}

void points_same(struct points *p, uint32_t of, uint32_t from, uint32_t to)
{
    int found = points_find(p, of);
    unsigned next = (unsigned)found + 1;

    /* The interpreter says it, through the owner: what it says may be wrong, but not turn their order round. It is
     * late where the next state is kept already. */
    if (found < 0 || from > to || from <= p->list[found].up_to ||
        (next < p->n && to >= p->list[next].n))
        return;
    struct point *x = &p->list[found];
    if (x->gone_back && from > x->up_to + 1) {
        x->undone_from = x->up_to + 1;
        x->undone_to = from - 1;
    }
    x->gone_back = false;
    x->up_to = to;
}

int points_wake(struct points *p, uint32_t n, struct err *e)
{
    int found = points_find(p, n);

    if (p->waking)
        return err_set(e, EBUSY, "one is being woken");
    if (found < 0)
        return err_set(e, ENOENT, "no process waits that has this state");
    if (p->expected)
        close_range_of_pids(p);
    while (p->n > (unsigned)found + 1)
        drop(p, p->n - 1);
    if (n != POINT_NEWEST)
        point_go_back(&p->list[found], n);
    return wake_one(p, e);
}

/* It sleeps, so it answers at once, or is dying. */
uint64_t points_weigh(const struct point *x, uint64_t *ret_shared)
{
    static struct msg m;
    cleanup_buf struct buf b = {0};
    struct pollfd line = {.fd = x->line, .events = POLLIN};
    struct fields f;
    struct err e;

    *ret_shared = 0;
    msg_begin(&b, WAITING_WEIGH);
    /* An answer that came too late for the last question is no answer to this one. */
    for (unsigned i = 0; i < LATE_MAX && poll(&line, 1, 0) > 0 && msg_recv(x->line, &m, &e) > 0;
         i++)
        msg_done(&m);
    if (msg_try_send(x->line, &b, NULL, 0, &e) < 0 || poll(&line, 1, WEIGH_MS) <= 0 ||
        msg_recv(x->line, &m, &e) <= 0)
        return 0;
    fields_init(&f, m.data, m.len);
    uint64_t bytes = m.type == WAITING_WEIGHT ? fields_get_u64(&f) : 0;
    uint64_t shared = fields_get_u64(&f);
    bool good = fields_end(&f);
    msg_done(&m);
    *ret_shared = good ? shared : 0;
    return good ? bytes + past_weight(&x->past) : 0;
}

void points_branch(struct points *p, uint32_t n, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;
    int found = points_find(p, n);

    msg_begin(&b, WAITING_BRANCH);
    fields_put_u32(&b, n);
    if (found >= 0)
        msg_try_send(p->list[found].line, &b, m->fds, m->n_fds, &ignored);
}

void points_drop_all(struct points *p)
{
    while (p->n > 0)
        drop(p, p->n - 1);
}

static void near_done(struct points *p)
{
    for (unsigned i = 0; i < 4; i++)
        fd_close(&p->near[i]);
}

int points_woke(struct points *p, uint32_t *ret_n, int ret_fds[4], struct err *e)
{
    if (!p->waking)
        return 0;
    if (p->live && tell_live(p, e) == 0) {
        p->waking = false;
        p->adopted = true;
        *ret_n = p->waking_n;
        memcpy(ret_fds, p->near, sizeof(p->near));
        memset(p->near, -1, sizeof(p->near));
        return 1;
    }
    if (!p->live && p->line >= 0 && clock_now_ms() < p->awake_ms)
        return 0;
    /* The one that should have forked is dead, or its successor is: the one before it, then. */
    near_done(p);
    p->waking = false;
    drop(p, p->n - 1);
    return wake_one(p, e) < 0 ? -1 : 0;
}
