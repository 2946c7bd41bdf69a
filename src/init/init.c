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
#include "init/changes.h"
#include "init/files.h"
#include "init/handover.h"
#include "init/points.h"
#include "init/snapshot.h"
#include "init/transfer.h"
#include "init/usage.h"
#include "wire/fields.h"
#include "wire/msg.h"
#include "wire/proto.h"

#define WATCH_MS 100
#define DYING_MS 500
#define SETUP_FD 3
#define FILES_FD 4
#define LINE_FD 5
#define HANDOVER_FD 6
#define LAST_PID_FD 7
#define LIST_BYTES (MSG_SIZE / 2) /* in one message of a list; one more path fits in any case */

/* A branch that is wanted of a state that is about to be kept. */
struct lend {
    uint32_t box, n;
    bool present; /* with the files of now */
    int to;       /* where they go */
    int64_t until_ms;
};
#define LENDS 64
#define LEND_MS 10000

struct init {
    int setup, files;
    const struct box_plan *plan;
    struct changes changes;
    struct transfers transfers;
    struct usage usage;
    struct points points;
    uint32_t restore_req;
    struct buf missing; /* that going back could not bring back, a line each */
    bool told_short;    /* the keeper knows that memory ran out */
    struct lend lends[LENDS];
    unsigned n_lends;
};

static void say_failed(int setup, const char *step, const struct err *why)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, SETUP_FAILED);
    fields_put_text(&b, step);
    fields_put_text(&b, why->text);
    msg_send(setup, &b, NULL, 0, &ignored);
}

/* With the namespaces that it has made, for the kernel process. */
static void say_done(int setup, struct box_init *b)
{
    cleanup_buf struct buf m = {0};
    const int fds[] = {b->network_fd, b->cgroup_fd};
    struct err e;

    msg_begin(&m, SETUP_DONE);
    if (msg_send(setup, &m, fds, b->branch ? 2 : 1, &e) < 0)
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

static void answer(struct init *in, const struct buf *b, int fd)
{
    struct err e;

    /* Waits while the owner does not read: that holds up this box and no other. */
    if (msg_send(in->files, b, &fd, fd >= 0, &e) < 0)
        in->files = -1; /* it let go; the keeper will end us */
}

static void answer_done(struct init *in, uint32_t req, int error, const char *reason)
{
    cleanup_buf struct buf b = {0};

    msg_begin(&b, FILE_DONE);
    fields_put_u32(&b, req);
    fields_put_u32(&b, (uint32_t)error);
    fields_put_text(&b, reason);
    answer(in, &b, -1);
}

/* ---- processes ---- */

static void reap(struct init *in)
{
    int status;

    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        points_reaped(&in->points, pid, status);
}

/* One round of end_guests. */
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

/* What a cell has started does not outlive the interpreter. Where there is a cgroup the keeper sees to it.
 * Stopped, nobody can fork any more; those that wait do not notice. One that was just about to continue
 * another is met in the next round, and the dead are seen until they are reaped. */
static void end_guests(struct init *in)
{
    for (int round = 0; round < 20 && end_those_seen(in); round++)
        reap(in);
}

/* ---- requests ---- */

/* The path, with which the request ends. false: there is none, and that has been answered. */
static bool get_path(struct init *in, struct fields *f, uint32_t req, char ret[FILES_PATH])
{
    fields_get_text(f, ret, FILES_PATH);
    if (!fields_end(f))
        answer_done(in, req, EINVAL, "the path is too long or not a path");
    return fields_end(f);
}

static void on_put(struct init *in, struct fields *f, struct msg *m)
{
    char path[FILES_PATH];
    struct err e;

    uint32_t req = fields_get_u32(f);
    cleanup_fd int pipe = msg_take_fd(m, 0);
    if (!get_path(in, f, req, path))
        return;
    if (pipe < 0)
        answer_done(in, req, EINVAL, "there is no pipe with it");
    else if (transfers_begin(&in->transfers, req, path, &pipe, &e) < 0)
        answer_done(in, req, e.code, e.text);
}

static void on_put_end(struct init *in, struct fields *f, struct msg *m)
{
    (void)m;
    uint32_t req = fields_get_u32(f);
    uint64_t size = fields_get_u64(f);
    if (fields_end(f))
        transfers_end(&in->transfers, req, size);
}

static void on_get(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    char path[FILES_PATH];
    struct err e;
    (void)m;

    uint32_t req = fields_get_u32(f);
    if (!get_path(in, f, req, path))
        return;
    cleanup_fd int fd = files_open(path, &e);
    if (fd < 0) {
        answer_done(in, req, e.code, e.text);
        return;
    }
    msg_begin(&b, FILE_OPENED);
    fields_put_u32(&b, req);
    answer(in, &b, fd);
}

struct change_ctx {
    struct init *in;
    uint32_t req;
};

static void tell_change(void *ctx, const struct change *c)
{
    struct change_ctx *x = ctx;
    cleanup_buf struct buf b = {0};

    x->in->points.touched = true;
    msg_begin(&b, FILE_CHANGE);
    fields_put_u32(&b, x->req);
    fields_put_u8(&b, (uint8_t)c->kind);
    fields_put_u64(&b, c->size);
    fields_put_bytes(&b, c->sha256, c->has_sha256 ? sizeof(c->sha256) : 0);
    fields_put_text(&b, c->path);
    answer(x->in, &b, -1);
}

static void on_changes(struct init *in, struct fields *f, struct msg *m)
{
    (void)m;
    struct change_ctx x = {in, fields_get_u32(f)};
    struct err e = {0};

    if (changes_report(&in->changes, tell_change, &x, &e) < 0)
        answer_done(in, x.req, e.code ? e.code : EIO, e.text);
    else
        answer_done(in, x.req, 0, "");
}

static void on_space(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    uint64_t bytes, inodes;
    (void)m;

    uint32_t req = fields_get_u32(f);
    files_space(&bytes, &inodes);
    msg_begin(&b, FILE_USED);
    fields_put_u32(&b, req);
    fields_put_u64(&b, bytes);
    fields_put_u64(&b, inodes);
    answer(in, &b, -1);
}

static void on_usage(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    (void)m;

    uint32_t req = fields_get_u32(f);
    usage_sample(&in->usage, in->plan->pids, &in->points);
    msg_begin(&b, FILE_USAGE_IS);
    fields_put_u32(&b, req);
    fields_put_u64(&b, in->usage.cpu_us);
    fields_put_u64(&b, in->usage.peak);
    fields_put_u64(&b, in->usage.crowded);
    answer(in, &b, -1);
}

static void on_list(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    struct snapshot now;
    struct err e;
    (void)m;

    uint32_t req = fields_get_u32(f);
    if (snapshot_take(&now, NULL, NULL, &e) < 0) {
        answer_done(in, req, e.code, e.text);
        return;
    }
    for (unsigned i = 0; i < now.n; i++) {
        const struct entry *x = &now.list[i];
        if (b.len == 0) {
            msg_begin(&b, FILE_ENTRIES);
            fields_put_u32(&b, req);
        }
        fields_put_u64(&b, x->size);
        fields_put_u64(&b, x->mtime_ns);
        fields_put_text(&b, x->path);
        if (b.len < LIST_BYTES && i + 1 < now.n)
            continue;
        answer(in, &b, -1);
        b.len = 0;
    }
    bool cut = now.cut;
    snapshot_done(&now);
    if (cut)
        answer_done(in, req, E2BIG, "the workspace has more files than retort lists");
    else
        answer_done(in, req, 0, "");
}

static void on_delete(struct init *in, struct fields *f, struct msg *m)
{
    char path[FILES_PATH];
    struct err e;
    (void)m;

    uint32_t req = fields_get_u32(f);
    if (!get_path(in, f, req, path))
        return;
    int result = files_delete(path, &e);
    changes_forget(&in->changes, path); /* what is gone now was not a cell's doing */
    in->points.touched = true;
    if (result < 0)
        answer_done(in, req, e.code ? e.code : EIO, e.text);
    else
        answer_done(in, req, 0, "");
}

/* The interpreter is dead, and (where there is a cgroup) all that it had started. */
static void on_restore(struct init *in, struct fields *f, struct msg *m)
{
    struct err e;
    (void)m;

    in->restore_req = fields_get_u32(f);
    in->told_short = false;
    uint32_t n = fields_get_u32(f);
    if (!fields_end(f))
        return;
    if (!in->plan->has_cgroup)
        end_guests(in);
    int found = points_find(&in->points, n);
    in->missing.len = 0;
    if (n != POINT_NEWEST && found >= 0) {
        /* What cannot be brought back is told; the rest is worth having. */
        if (past_restore(&in->points.list[found].past, &in->missing, &e) < 0)
            buf_add_text(&in->missing, "the workspace");
        in->points.touched = true;
        changes_accept_all(&in->changes);
    }
    if (points_wake(&in->points, n, &e) < 0)
        answer_done(in, in->restore_req, e.code ? e.code : EIO, e.text);
}

static void on_points(struct init *in, struct fields *f, struct msg *m)
{
    uint32_t req = fields_get_u32(f);
    bool weigh = m->type == FILE_POINTS;

    for (unsigned i = 0; i < in->points.n; i++) {
        const struct point *x = &in->points.list[i];
        cleanup_buf struct buf b = {0}, lost = {0};
        uint64_t shared = 0, weight = weigh ? points_weigh(x, &shared) : 0;
        buf_add_text(&lost, x->lost);
        if (shared)
            buf_add_fmt(&lost, "%s" POINT_SHARED, lost.len ? "\n" : "", (size_t)(shared >> 10));
        msg_begin(&b, FILE_POINT);
        fields_put_u32(&b, req);
        fields_put_u32(&b, x->n);
        fields_put_u32(&b, x->up_to);
        fields_put_u32(&b, x->undone_from);
        fields_put_u32(&b, x->undone_to);
        fields_put_u64(&b, (uint64_t)x->taken_ms);
        fields_put_u64(&b, weight);
        fields_put_text(&b, buf_text(&lost));
        answer(in, &b, -1);
    }
    answer_done(in, req, 0, "");
}

static void on_keep(struct init *in, struct fields *f, struct msg *m)
{
    fields_get_u32(f);
    uint32_t n = fields_get_u32(f);
    uint64_t memory = fields_get_u64(f);
    (void)m;
    if (!fields_end(f))
        return;
    points_limit(&in->points, n);
    points_memory(&in->points, memory);
}

static void on_evictions(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    uint32_t req = fields_get_u32(f);
    (void)m;

    for (int ms = 0; ms < DYING_MS && points_dying(&in->points); ms++) {
        usleep(1000);
        reap(in);
    }
    msg_begin(&b, FILE_EVICTED);
    fields_put_u32(&b, req);
    fields_put_u32(&b, in->points.evicted);
    answer(in, &b, -1);
}

/* Is somebody awake by now? */
static void tell_restored(struct init *in)
{
    cleanup_buf struct buf b = {0};
    int fds[4];
    uint32_t n;
    struct err e;

    int woke = points_woke(&in->points, &n, fds, &e);
    if (woke < 0)
        answer_done(in, in->restore_req, e.code ? e.code : EIO, e.text);
    if (woke <= 0)
        return;
    msg_begin(&b, FILE_RESTORED);
    fields_put_u32(&b, in->restore_req);
    fields_put_u32(&b, n);
    fields_put_bytes(&b, in->missing.data, in->missing.len);
    if (msg_send(in->files, &b, fds, 4, &e) < 0)
        in->files = -1;
    for (unsigned i = 0; i < 4; i++)
        fd_close(&fds[i]);
}

static void on_message(struct init *in, struct msg *m)
{
    static void (*const handlers[])(struct init *, struct fields *, struct msg *) = {
        [FILE_PUT] = on_put,
        [FILE_PUT_END] = on_put_end,
        [FILE_GET] = on_get,
        [FILE_CHANGES] = on_changes,
        [FILE_SPACE] = on_space,
        [FILE_USAGE] = on_usage,
        [FILE_LIST] = on_list,
        [FILE_DELETE] = on_delete,
        [FILE_RESTORE] = on_restore,
        [FILE_STATES] = on_points,
        [FILE_POINTS] = on_points,
        [FILE_KEEP] = on_keep,
        [FILE_EVICTIONS] = on_evictions,
    };
    struct fields f;

    fields_init(&f, m->data, m->len);
    if (m->type < sizeof(handlers) / sizeof(*handlers) && handlers[m->type])
        handlers[m->type](in, &f, m);
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

/* The keeper could not open them: we let nobody look. */
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

/* Those whose state is kept by now, and those that have waited long enough. */
static void serve_lends(struct init *in)
{
    for (unsigned i = 0; i < in->n_lends;) {
        struct lend *l = &in->lends[i];
        int found = points_find(&in->points, l->n);
        if (found >= 0) {
            lend(in, l, &in->points.list[found]);
        } else if (clock_now_ms() >= l->until_ms) {
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
        end_guests(in);
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
        end_guests(in);
}

/* Where no cgroup holds the sum: look at it ten times a second, and end what is over it. The keeper
 * is told first, so that the session's owner learns the truth. */
static void watch_memory(void *ctx)
{
    struct init *in = ctx;

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
    end_guests(in);
}

static void on_transfer_over(void *ctx, uint32_t req, const char *path, const struct err *why)
{
    struct init *in = ctx;

    if (why) {
        answer_done(in, req, why->code ? why->code : EIO, why->text);
        return;
    }
    changes_accept(&in->changes, path); /* an upload is not a change that a cell made */
    in->points.touched = true;
    answer_done(in, req, 0, "");
}

static void serve_owner(struct init *in)
{
    static struct msg m;
    struct err e;
    int r = msg_recv(in->files, &m, &e);

    if (r == 0 || (r < 0 && e.code != EBADMSG))
        in->files = -1; /* the owner let go */
    if (r > 0)
        on_message(in, &m);
    msg_done(&m);
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
        /* SIGCHLD gets in here only: a child that died after reap() is not slept over. */
        int ready = ppoll(fds, FIXED + moving, patience, &none);
        reap(in);
        tell_restored(in);
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
            tell_restored(in);
        }
        serve_lends(in);
        if (fds[0].revents)
            serve_owner(in);
        transfers_move(&in->transfers, fds + FIXED, moving, on_transfer_over, in);
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
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
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
    points_begin(&in.points, in.setup, LINE_FD, b->plan->has_cgroup, b->plan->memory);
    if (b->branch)
        changes_accept_all(&in.changes); /* no cell of this session has made them */
    say_done(in.setup, b);
    loop(&in);
}
