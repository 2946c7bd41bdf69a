/* init: pid 1 of a box. C only; no capability but the one to choose process numbers in the box, its own uid
 * (where there is one to have), nearly the seccomp filter of user code, and none of its memory.
 *
 * It is the one process of ours that resolves the guest's paths, and it does so where a path can lead
 * nowhere else than into the guest's own workspace. It reaps what the guest leaves behind, and where
 * the host gives us no cgroup it watches how much memory the box uses.
 *
 * When it goes, the kernel ends every process of the box; when the keeper goes, init goes.
 */
#include "init/init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/cgroup.h"
#include "box/steps.h"
#include "init/files.h"
#include "init/handover.h"
#include "init/inside.h"
#include "wire/fields.h"
#include "wire/msg.h"
#include "wire/proto.h"

#define WATCH_MS 100
#define SETUP_FD 3
#define FILES_FD 4
#define LINE_FD 5
#define HANDOVER_FD 6
#define LAST_PID_FD 7
#define LEND_MS 10000

static void say_failed(int setup, const char *step, const struct err *why)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, SETUP_FAILED);
    fields_put_text(&b, step);
    fields_put_text(&b, why->text);
    msg_send(setup, &b, NULL, 0, &ignored);
}

/* With the workspace, for its owner, who can count what is in it by such a descriptor and nothing else; and with the
 * namespaces that it has made, for the kernel process. */
static void say_done(int setup, struct box_init *b, bool has_files)
{
    cleanup_buf struct buf m = {0};
    cleanup_fd int workspace = open(BOX_WORKSPACE, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int fds[] = {b->network_fd, workspace, b->cgroup_fd};
    struct err e;

    if (workspace < 0) {
        err_set(&e, errno, "cannot open %s", BOX_WORKSPACE);
        say_failed(setup, "init-workspace", &e);
        _exit(1);
    }
    msg_begin(&m, SETUP_DONE);
    fields_put_u8(&m, has_files);
    if (msg_send(setup, &m, fds, b->branch ? 3 : 2, &e) < 0)
        _exit(1); /* the keeper is gone */
    fd_close(&b->network_fd);
    if (b->branch)
        fd_close(&b->cgroup_fd);
}

static void say(int to, uint32_t type, int fd)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    msg_begin(&b, type);
    if (msg_send(to, &b, &fd, fd >= 0, &e) < 0)
        _exit(1); /* the keeper is gone */
}

/* ---- processes ---- */

void init_reap(struct init *in)
{
    int status;

    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        points_reaped(&in->points, pid, status);
}

/* One round of init_end_guests. */
static bool end_those_seen(const struct init *in)
{
    bool any = false;

    kill(-1, SIGSTOP);
    DIR *d = opendir("/proc");
    for (struct dirent *entry; d && (entry = readdir(d));) {
        pid_t pid = atoi(entry->d_name);
        if (pid > 1 && !points_has(&in->points, pid) && !usage_of_branch(entry->d_name) &&
            kill(pid, SIGKILL) == 0)
            any = true;
    }
    if (d)
        closedir(d);
    kill(-1, SIGCONT);
    return any;
}

/* Stopped, nobody can fork any more; those that wait do not notice. One that was just about to continue
 * another is met in the next round, and the dead are seen until they are reaped. */
void init_end_guests(struct init *in)
{
    for (int round = 0; round < 20 && end_those_seen(in); round++)
        init_reap(in);
}

/* ---- branches ---- */

static void answer_lent(struct init *in, uint32_t box, const char *why_not, const int *fds,
                        unsigned n)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    msg_begin(&b, SETUP_LENT);
    fields_put_u32(&b, box);
    fields_put_text(&b, why_not);
    if (msg_send(in->setup, &b, fds, n, &e) < 0)
        _exit(1);
}

/* The keeper could not open them: we let nobody look. The way to the one that waits with the state stays here: it came
 * from the guest, and whoever closes a descriptor last may have to wait for it. */
static int lend_namespaces(struct init *in, uint32_t box)
{
    enum { LENT = 3 };
    static const char *const paths[LENT] = {"/proc/self/ns/user", "/proc/self/ns/pid",
                                            "/proc/self/ns/mnt"};
    int fds[LENT];
    unsigned n = 0;

    while (n < LENT && (fds[n] = open(paths[n], O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    answer_lent(in, box, n == LENT ? "" : "its namespaces cannot be opened", fds, n);
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
    return n == LENT ? 0 : -1;
}

/* The state is there. */
static void lend(struct init *in, const struct lend *l, const struct point *x)
{
    struct past now = {0};
    struct copies no_room;
    struct err ignored;

    if (lend_namespaces(in, l->box) < 0)
        return;
    copies_init(&no_room, 0, NULL, NULL); /* the files themselves will do */
    no_room.life = UINT32_MAX;            /* and what others have is not in it */
    if (l->present && past_take(&now, &x->past, &no_room, &ignored) == 0)
        handover_send(&now, l->to, &ignored);
    else
        handover_send(&x->past, l->to, &ignored);
    past_done(&now);
}

/* The owner may have said of a state that it is the same as another, before it asked the keeper for a branch of it: that
 * lies there unread. */
static bool owner_has_said_more(const struct init *in)
{
    struct pollfd files = {.fd = in->files, .events = POLLIN};

    return poll(&files, 1, 0) > 0;
}

/* Those whose state is kept by now, and those that have waited long enough. */
static void serve_lends(struct init *in)
{
    for (unsigned i = 0; i < in->n_lends;) {
        struct lend *l = &in->lends[i];
        int found = points_find(&in->points, l->n);
        if (found >= 0) {
            lend(in, l, &in->points.list[found]);
        } else if (clock_now_ms() >= l->until_ms && !owner_has_said_more(in)) {
            answer_lent(in, l->box, LENT_NOT_KEPT, NULL, 0);
        } else {
            i++;
            continue;
        }
        fd_close(&l->to);
        *l = in->lends[--in->n_lends];
    }
}

static void on_lend(struct init *in, struct fields *f, struct msg *m)
{
    struct lend l = {.box = fields_get_u32(f),
                     .n = fields_get_u32(f),
                     .present = fields_get_u8(f),
                     .to = msg_take_fd(m, 0)};

    if (!fields_end(f) || l.to < 0 || in->n_lends == LENDS) {
        fd_close(&l.to);
        answer_lent(in, l.box, "too many branches are being made of this session", NULL, 0);
        return;
    }
    /* One that is newer than all is about to be kept: a moment after the cell's answer. */
    bool to_come = in->points.n == 0 || l.n > in->points.list[in->points.n - 1].up_to;
    l.until_ms = to_come ? clock_now_ms() + LEND_MS : 0;
    in->lends[in->n_lends++] = l;
    serve_lends(in);
}

static void on_branch(struct init *in, struct fields *f, struct msg *m)
{
    uint32_t n = fields_get_u32(f);

    /* Should it not come to it, the descriptors are closed, and the keeper sees that. */
    if (fields_end(f))
        points_branch(&in->points, n, m);
}

static void on_leave(struct init *in)
{
    points_drop_all(&in->points);
    if (!in->plan->has_cgroup)
        init_end_guests(in);
    fd_close(&in->files);
    files_delete_all();
}

static void serve_keeper(struct init *in)
{
    static struct msg m;
    struct fields f;
    struct err e;

    if (msg_recv(in->setup, &m, &e) <= 0)
        _exit(0); /* it has nothing more to say but goodbye */
    fields_init(&f, m.data, m.len);
    if (m.type == SETUP_LEND)
        on_lend(in, &f, &m);
    else if (m.type == SETUP_BRANCH)
        on_branch(in, &f, &m);
    else if (m.type == SETUP_LEAVE)
        on_leave(in);
    msg_done(&m);
}

/* ---- the loop ---- */

static void watch_kernel(struct init *in)
{
    if (in->points.live && kill(in->points.live, 0) < 0 && errno == ESRCH)
        init_end_guests(in);
}

/* Where no cgroup holds the sum: look at it ten times a second, and end what is over it. The keeper
 * is told first, so that the session's owner learns the truth. */
static void watch_memory(void *ctx)
{
    struct init *in = ctx;

    /* A fork on its way in lets nobody look at it, and would count with all that it shares. */
    if (!in->points.begun)
        return;
    usage_sample(&in->usage, in->plan->pids, &in->points);
    if (in->plan->memory == LIMIT_NONE || in->usage.now <= in->plan->memory)
        return;
    if (in->points.copies.used > 0) { /* that goes first, and may be enough */
        copies_forget(&in->points.copies);
        return;
    }
    if (!in->told_short)
        say(in->setup, SETUP_SHORT, -1);
    in->told_short = true;
    init_end_guests(in);
}

_Noreturn static void loop(struct init *in)
{
    const struct timespec watch = {.tv_nsec = WATCH_MS * 1000000L}, while_watching = {.tv_sec = 1};
    enum { FIXED = 3 };
    struct pollfd fds[FIXED + TRANSFERS];
    sigset_t none;

    sigemptyset(&none);
    for (;;) {
        fds[0] = (struct pollfd){.fd = in->files, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = in->setup, .events = POLLIN};
        fds[2] = (struct pollfd){.fd = in->points.line, .events = POLLIN};
        nfds_t moving = transfers_poll(&in->transfers, fds + FIXED);
        bool due = points_tick(&in->points) >= 0 || in->n_lends > 0;
        const struct timespec *patience = !in->plan->has_cgroup || due ? &watch
                                          : in->changes.watch.started  ? &while_watching
                                                                       : NULL;
        /* SIGCHLD gets in here only: a child that died after init_reap() is not slept over. */
        int ready = ppoll(fds, FIXED + moving, patience, &none);
        init_reap(in);
        requests_tell_restored(in);
        if (in->changes.watch.started)
            changes_idle(&in->changes);
        if (!in->plan->has_cgroup) {
            watch_memory(in);
            watch_kernel(in);
        }
        serve_lends(in);
        if (ready <= 0)
            continue;
        if (fds[1].revents)
            serve_keeper(in);
        if (fds[2].revents) {
            points_hear(&in->points);
            requests_tell_restored(in);
        }
        if (fds[0].revents)
            requests_serve(in);
        serve_lends(in); /* the state may be kept by now, or said to be the same */
        transfers_move(&in->transfers, fds + FIXED, moving, requests_transfer_over, in);
    }
}

static void on_signal(int signal)
{
    (void)signal; /* only there to interrupt ppoll */
}

/* Descriptors: only the three we talk on, and until we are attached the ways into the cgroup. */
static void arrange_descriptors(const struct init_ends *ends, struct box_ways *ways,
                                struct init *in)
{
    enum { ENDS = 5 };
    static int placed[CGROUP_HIERARCHIES];
    int from[ENDS + CGROUP_HIERARCHIES] = {ends->setup, ends->files, ends->line, ends->handover,
                                           ends->last_pid};

    for (unsigned i = 0; i < ways->n; i++) {
        from[ENDS + i] = ways->fds[i];
        placed[i] = LAST_PID_FD + 1 + (int)i;
    }
    if (fd_place(from, ENDS + ways->n, SETUP_FD, 0) < 0)
        _exit(1);
    close_range(0, 2, 0);
    close_range(LAST_PID_FD + 1 + ways->n, ~0U, 0);
    ways->fds = placed;
    in->setup = SETUP_FD;
    in->files = FILES_FD;
}

void init_begin_numbers(int last_pid)
{
    struct points p = {.last_pid = last_pid};

    if (last_pid >= 0)
        points_begin_numbers(&p);
}

void init_run(struct box_init *b, const struct init_ends *ends)
{
    static struct init in;
    static struct msg m;
    const char *failed;
    struct err e = {0};
    struct sigaction action = {.sa_handler = on_signal};

    in.plan = b->plan;
    if (!b->plan->has_cgroup) {
        in.changes.meanwhile = watch_memory;
        in.changes.ctx = &in;
    }
    arrange_descriptors(ends, &b->ways, &in);
    if (b->branch)
        in.points.last_pid = ends->last_pid < 0 ? -1 : LAST_PID_FD;
    else
        points_open_last_pid(&in.points);
    prctl(PR_SET_NAME, "init");
    sigaction(SIGCHLD, &action, NULL);
    sigset_t deaths;
    sigemptyset(&deaths);
    sigaddset(&deaths, SIGCHLD);
    sigprocmask(SIG_SETMASK, &deaths, NULL);
    if (msg_recv(in.setup, &m, &e) <= 0 || m.type != SETUP_GO)
        _exit(1);
    if (box_init_enter(b, &failed, &e) < 0) {
        say_failed(in.setup, failed, &e);
        _exit(1);
    }
    if (files_init(BOX_WORKSPACE, &e) < 0) {
        say_failed(in.setup, "init-workspace", &e);
        _exit(1);
    }
    if (b->branch &&
        (step_fails("branch-files", &e) < 0 || handover_receive(HANDOVER_FD, &e) < 0)) {
        say_failed(in.setup, "branch-files", &e);
        _exit(1);
    }
    if (b->branch)
        close(HANDOVER_FD);
    in.points.branch = b->branch;
    in.points.watch = &in.changes.watch;
    points_begin(&in.points, in.setup, LINE_FD, b->plan->has_cgroup, b->plan->memory);
    if (b->branch)
        changes_accept_all(&in.changes); /* no cell of this session has made them */
    say_done(in.setup, b, in.changes.known.n > 0);
    loop(&in);
}
