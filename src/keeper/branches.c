/* branches: a box that begins as another one was. Runs in the keeper, and in a maker that it forks for each.
 *
 * A process cannot be forked into namespaces that it has no right over, and a guest has none. But the maker of
 * a user namespace has every right in it: so a branch's is made inside the other box's, by its guest's uid,
 * and the process that waits there with the wanted state can enter it, with no capability of its own.
 *
 *     keeper ──LEND──▶ init ──LENT: its namespaces──▶ keeper ──fork──▶ maker ──▶ in them ──clone──▶ branch's init
 *                        └──────────────── the files ──────────────────────────────────────────────────▶ ┘
 *     keeper ──BRANCH──▶ init ──BRANCH──▶ one that waits ──fork──▶ kernel process ──HERE──▶ branch's init
 *
 * The branch's pid namespace lies in the other's too: a box with branches keeps its init, and nothing else,
 * until they are gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/identity.h"
#include "box/steps.h"
#include "init/init.h"
#include "keeper/state.h"
#include "wire/proto.h"

#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

/* For one to stand. Whoever is to become its kernel process may not do so, and the code that it runs then, which a
 * guest has registered for forks, may not come to an end. */
#define BRANCH_MS 60000

/* Of the other box, in the order in which SETUP_LENT has them and the maker enters them. */
enum { LENT_USER, LENT_PID, LENT_MNT, LENT };

/* ---- the maker ---- */

struct making {
    struct state *state;
    struct box *box;
    const int *lent;
    int last_pid; /* see points_open_last_pid; in the other box there is no such file */
    int user;     /* the branch's user namespace */
    pid_t first;  /* who was in it first, and has been killed */
    int ways[CGROUP_HIERARCHIES]; /* into the cgroup, for its kernel process */
    unsigned n_ways;
};

_Noreturn static void give_up(const struct making *m, const char *step, const struct err *why)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, SETUP_FAILED);
    fields_put_text(&b, step);
    fields_put_text(&b, why->text);
    msg_send(m->box->far.init_setup, &b, NULL, 0, &ignored);
    _exit(1);
}

/* Its ids are those of the other box: they are one session's, and nobody else's. */
static int map_ids(const struct making *m, pid_t pid, struct err *e)
{
    char path[64], map[64];

    if (m->state->own_ids)
        snprintf(map, sizeof(map), "%d %d 1\n%d %d 1\n", BOX_INIT_ID, BOX_INIT_ID, BOX_USER_ID,
                 BOX_USER_ID);
    else
        snprintf(map, sizeof(map), "%d %d 1\n", BOX_USER_ID, BOX_USER_ID);
    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    if (fd_put_text(AT_FDCWD, path, map, e) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
    return fd_put_text(AT_FDCWD, path, map, e);
}

static int hold_user(struct making *m, pid_t pid, struct err *e)
{
    char path[64];

    if (map_ids(m, pid, e) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
    m->user = open(path, O_RDONLY | O_CLOEXEC);
    return m->user < 0 ? err_set(e, errno, "cannot open %s", path) : 0;
}

/* The branch's user namespace, made by a process that is there for nothing else. Whoever made one may look at all
 * who are in it, and the guest has that uid; this one must let itself be looked at, or its uid_map would belong to
 * the host's root. So it is where no guest can see it, and the others, which can be seen, let nobody look. */
static int make_user(struct making *m, struct err *e)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};

    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_set(e, errno, "cannot become dumpable");
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return err_set(e, errno, "clone3");
    while (pid == 0)
        pause();
    int result = hold_user(m, (pid_t)pid, e);
    kill((pid_t)pid, SIGKILL);
    m->first = (pid_t)pid; /* its end can wait */
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_set(e, errno, "cannot become undumpable");
    return result;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The keeper's own are every box's: none of them goes to where a guest is. */
static int close_others(const struct making *m, struct err *e)
{
    const struct far_ends *far = &m->box->far;
    int kept[7 + CGROUP_HIERARCHIES] = {far->init_setup,  far->files,  far->init_line,
                                        far->handover,    m->last_pid, m->user,
                                        m->lent[LENT_MNT]};
    unsigned n = 7, from = 0;

    for (unsigned i = 0; i < m->n_ways; i++)
        kept[n++] = m->ways[i];
    qsort(kept, n, sizeof(*kept), ascending);
    for (unsigned i = 0; i < n; i++) {
        if (kept[i] < 0)
            continue;
        if (from < (unsigned)kept[i] && close_range(from, (unsigned)kept[i] - 1, 0) < 0)
            return err_set(e, errno, "cannot close descriptors");
        from = (unsigned)kept[i] + 1;
    }
    return close_range(from, ~0U, 0) < 0 ? err_set(e, errno, "cannot close descriptors") : 0;
}

/* The keeper could not open its namespaces: it lets nobody look. */
static int tell_born(const struct making *m, struct err *e)
{
    static const char *const names[BOX_BORN_INTO] = {"/proc/self/ns/user", "/proc/self/ns/pid",
                                                     "/proc/self/ns/mnt", "/proc/self/ns/ipc",
                                                     "/proc/self/ns/uts"};
    int fds[BOX_BORN_INTO + CGROUP_HIERARCHIES];
    cleanup_buf struct buf b = {0};

    for (int i = 0; i < BOX_BORN_INTO; i++) {
        fds[i] = open(names[i], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0)
            return err_set(e, errno, "cannot open %s", names[i]);
    }
    memcpy(fds + BOX_BORN_INTO, m->ways, m->n_ways * sizeof(*fds));
    msg_begin(&b, SETUP_BORN);
    return msg_send(m->box->far.init_setup, &b, fds, BOX_BORN_INTO + m->n_ways, e);
}

_Noreturn static void become_init(const struct making *m)
{
    const struct box *b = m->box;
    struct box_init init = {
        .plan = &b->plan, .view = &m->state->view, .filter = &m->state->filter, .branch = true};
    struct err e = {0};

    init_begin_numbers(m->last_pid);
    if (tell_born(m, &e) < 0)
        give_up(m, "branch-enter", &e);
    init_run(&init, &(struct init_ends){b->far.init_setup, b->far.files, b->far.init_line,
                                        b->far.handover, m->last_pid});
}

/* In version 1 as a thread that moves itself: see cgroup_ways. */
static int attach(const struct making *m, struct err *e)
{
    for (unsigned i = 0; m->box->plan.attaches && i < m->box->n_ways; i++)
        if (write(m->box->ways[i], "0", 1) != 1)
            return err_set(e, errno, "cannot enter the cgroup");
    return 0;
}

static int open_ways(struct making *m, struct err *e)
{
    if (m->state->cgroups.version != 1)
        return 0;
    int n = cgroup_ways(&m->state->cgroups, m->box->id, m->ways, e);
    m->n_ways = n > 0 ? (unsigned)n : 0;
    return n < 0 ? -1 : 0;
}

/* With every right in the other box's namespaces, as its guest's uid, and in the branch's own user namespace. Until
 * the last line no guest can see us. */
static int enter(struct making *m, struct err *e)
{
    if (setns(m->lent[LENT_USER], CLONE_NEWUSER) < 0)
        return err_set(e, errno, "setns");
    if (identity_become(BOX_USER_ID, BOX_USER_ID, m->state->own_ids, e) < 0)
        return -1;
    /* What we open now, its kernel process may use, which has this uid. */
    if (open_ways(m, e) < 0 || make_user(m, e) < 0)
        return -1;
    if (setns(m->lent[LENT_PID], CLONE_NEWPID) < 0)
        return err_set(e, errno, "setns");
    if (close_others(m, e) < 0)
        return -1;
    if (setns(m->lent[LENT_MNT], CLONE_NEWNS) < 0 || setns(m->user, CLONE_NEWUSER) < 0)
        return err_set(e, errno, "setns");
    return 0;
}

/* A fork of the keeper's. It waits for a second one, which is in the other's pid namespace and so can make one
 * in it; when both are gone, the new init is the keeper's child. */
_Noreturn static void maker_main(struct making *m)
{
    const struct clone_args args = {.flags = NAMESPACES | CLONE_PARENT};
    struct err e = {0};

    m->last_pid = open("/proc/sys/kernel/ns_last_pid", O_RDWR | O_CLOEXEC);
    if (attach(m, &e) < 0)
        give_up(m, "box-attach", &e);
    if (enter(m, &e) < 0)
        give_up(m, "branch-enter", &e);
    pid_t inside = vfork(); /* with our memory: only init needs a copy of it */
    if (inside == 0) {
        long init = syscall(SYS_clone3, &args, sizeof(args));
        if (init == 0)
            become_init(m);
        if (init < 0) {
            err_set(&e, errno, "clone3");
            give_up(m, "branch-enter", &e);
        }
        _exit(0);
    }
    if (inside < 0) {
        err_set(&e, errno, "fork");
        give_up(m, "branch-enter", &e);
    }
    waitpid(inside, NULL, 0);
    waitpid(m->first, NULL, 0);
    _exit(0);
}

static int fork_maker(struct state *s, struct box *b, const int *lent, struct err *e)
{
    bool born_in = s->cgroups.version == 2;
    struct clone_args args = {
        .flags = born_in ? CLONE_INTO_CGROUP : 0,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)(born_in ? b->ways[0] : 0),
    };
    struct making m = {.state = s, .box = b, .lent = lent, .user = -1};

    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return err_set(e, errno, "clone3");
    if (pid == 0)
        maker_main(&m);
    b->maker_pid = (pid_t)pid;
    /* With these in our hands its death would go unheard. */
    fd_close(&b->far.init_setup);
    fd_close(&b->far.files);
    fd_close(&b->far.init_line);
    fd_close(&b->far.handover);
    while (b->n_ways > 0)
        fd_close(&b->ways[--b->n_ways]);
    return 0;
}

/* ---- the keeper's side ---- */

static int ask_to_lend(struct box *b, uint32_t n, bool present, struct err *e)
{
    cleanup_buf struct buf m = {0};
    const int on = 1;
    int pair[2];

    /* The kernel process may speak before init listens, and must be known by its number. So must init. */
    if (setsockopt(b->far.init_line, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
        setsockopt(b->init_setup.fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return err_set(e, errno, "setsockopt");
    if (msg_pair(pair, e) < 0)
        return -1;
    b->far.handover = pair[0];
    cleanup_fd int theirs = pair[1];
    msg_begin(&m, SETUP_LEND);
    fields_put_u32(&m, b->id);
    fields_put_u32(&m, n);
    fields_put_u8(&m, present);
    return msg_send(b->parent->init_setup.fd, &m, &theirs, 1, e);
}

void box_branch(struct state *s, uint32_t request, uint32_t from, uint32_t n, bool present,
                const struct limits *l)
{
    struct box *parent = box_find(s, from);
    struct err e = {0};

    if (!parent || parent->phase != BOX_OUT || parent->init_setup.fd < 0) {
        box_tell_failed(s, request, "the session has ended");
        return;
    }
    if (parent->depth >= BOX_DEPTH_MAX) {
        box_tell_failed(s, request,
                        "a branch of a branch of a branch: no further one is possible; run its "
                        "cells in a new session");
        return;
    }
    struct box *b = box_new(s, parent->plan.environment, l);
    if (!b) {
        box_tell_failed(s, request, "too many sessions are open; end one first");
        return;
    }
    b->request = request;
    b->requested = b->plan.awaited = true;
    b->parent = parent;
    b->depth = parent->depth + 1;
    b->at = n;
    b->until_ms = clock_now_ms() + BRANCH_MS;
    parent->branches++;
    /* init looks while we make the cgroup. */
    if (step_fails("branch-lend", &e) < 0 || box_make_channels(s, b, &e) < 0 ||
        ask_to_lend(b, n, present, &e) < 0)
        box_fail_step(s, b, "branch-lend", &e);
    else if (step_fails("branch-cgroup", &e) < 0 || box_make_cgroup(s, b, &e) < 0 ||
             cgroup_open_to_all(&s->cgroups, b->id, true, &e) < 0)
        box_fail_step(s, b, "branch-cgroup", &e);
}

void box_lent(struct state *s, const struct box *by, struct msg *m)
{
    char why[256];
    struct fields f;
    struct err e = {0};

    fields_init(&f, m->data, m->len);
    struct box *b = box_find(s, fields_get_u32(&f));
    fields_get_text(&f, why, sizeof(why));
    if (!b || b->parent != by || b->phase != BOX_MAKING || b->maker_pid || b->init_pid)
        return; /* given up meanwhile, or no branch of the one who answers */
    if (!fields_end(&f) || m->n_fds != LENT)
        box_fail(s, b, why);
    else if (step_fails("branch-enter", &e) < 0 || fork_maker(s, b, m->fds, &e) < 0)
        box_fail_step(s, b, "branch-enter", &e);
}

/* The one that waits forks while the branch's init builds the root. */
static int ask_for_kernel(struct box *b, struct err *e)
{
    cleanup_buf struct buf m = {0};
    int fds[BRANCH_FD_WAYS + CGROUP_HIERARCHIES] = {
        [BRANCH_FD_STDOUT] = b->far.out,
        [BRANCH_FD_STDERR] = b->far.err,
        [BRANCH_FD_CELL_OUT] = b->far.cell_out,
        [BRANCH_FD_CELL_IN] = b->far.cell_in,
        [BRANCH_FD_LINE] = b->far.kernel_line,
        [BRANCH_FD_SETUP] = b->far.kernel_setup,
        [BRANCH_FD_USER] = b->namespaces[BOX_NS_USER],
        [BRANCH_FD_PID] = b->namespaces[BOX_NS_PID],
        [BRANCH_FD_MNT] = b->namespaces[BOX_NS_MNT],
        [BRANCH_FD_IPC] = b->namespaces[BOX_NS_IPC],
        [BRANCH_FD_UTS] = b->namespaces[BOX_NS_UTS],
    };

    if (b->parent->init_setup.fd < 0)
        return err_set(e, ESRCH, "the session has ended");
    memcpy(fds + BRANCH_FD_WAYS, b->ways, sizeof(b->ways));
    msg_begin(&m, SETUP_BRANCH);
    fields_put_u32(&m, b->at);
    if (msg_send(b->parent->init_setup.fd, &m, fds, BRANCH_FD_WAYS + b->n_ways, e) < 0)
        return -1;
    box_close_far_ends(b);
    return 0;
}

static int on_born(struct state *s, struct box *b, struct msg *m, struct err *e)
{
    b->init_pid = m->from;
    for (unsigned i = 0; i < BOX_BORN_INTO; i++)
        b->namespaces[i] = msg_take_fd(m, i);
    for (unsigned i = BOX_BORN_INTO; i < m->n_fds && b->n_ways < CGROUP_HIERARCHIES; i++)
        b->ways[b->n_ways++] = msg_take_fd(m, i);
    if (!b->init_pid)
        return err_set(e, ESRCH, "init died at once");
    if (b->given_up)
        return err_set(e, ECANCELED, "nobody waits for it any more");
    if (ask_for_kernel(b, e) < 0)
        return -1;
    box_say_go(s, b, b->init_setup.fd, NULL, 0);
    /* Its maker has opened it; other users of the host have no business there. Nobody waits for this, so it comes last;
     * init is not reaped yet, so the box is there whatever became of our word. */
    if (cgroup_open_to_all(&s->cgroups, b->id, false, e) < 0)
        return -1;
    return b->phase == BOX_MAKING ? box_open_meters(s, b, e) : 0;
}

/* Both halves are there. The kernel process is still the other box's in all that is counted, where version 2 does
 * that. */
static int on_both(struct state *s, struct box *b, struct msg *m, struct err *e)
{
    box_live(b, m);
    if (!b->live_pid)
        return err_set(e, ESRCH, "the kernel process died at once");
    if (cgroup_move(&s->cgroups, b->id, b->live_pid, e) < 0)
        return -1;
    const int fds[] = {b->network_fd, b->cgroup_fd};
    box_say_go(s, b, b->kernel_setup.fd, fds, 2);
    fd_close(&b->network_fd);
    fd_close(&b->cgroup_fd);
    return 0;
}

void box_branch_hear(struct state *s, struct box *b, struct msg *m)
{
    struct err e = {0};

    if (m->type == SETUP_BORN && !b->init_pid &&
        (step_fails("branch-fork", &e) < 0 || on_born(s, b, m, &e) < 0))
        box_fail_step(s, b, "branch-fork", &e);
    else if (m->type == SETUP_LIVE && b->init_stands &&
             (step_fails("branch-join", &e) < 0 || on_both(s, b, m, &e) < 0))
        box_fail_step(s, b, "branch-join", &e);
}

void box_branch_give_up(struct state *s, uint32_t request)
{
    struct box *b = s->boxes;

    while (b && !(b->parent && b->phase == BOX_MAKING && b->requested && b->request == request))
        b = b->next;
    if (!b)
        return;
    b->requested = false;
    if (b->maker_pid && !b->init_pid)
        b->given_up = true; /* its init is on the way: on_born ends it */
    else
        box_end(s, b);
}

int64_t branches_next_ms(const struct state *s)
{
    int64_t next = 0;

    for (const struct box *b = s->boxes; b; b = b->next)
        if (b->parent && b->phase == BOX_MAKING && (!next || b->until_ms < next))
            next = b->until_ms;
    return next;
}

/* What a guest has stopped goes too: all of it is in the branch's cgroup, or dies with its maker. */
static void end_overdue(struct state *s, struct box *b)
{
    const struct cgroup_spared nobody = {0};

    cgroup_end_others(&s->cgroups, b->id, &nobody);
    if (b->maker_pid)
        kill(b->maker_pid, SIGKILL);
    box_fail(s, b, "the branch did not come to stand in time");
}

void branches_check(struct state *s)
{
    int64_t now = clock_now_ms();
    struct box *next;

    for (struct box *b = s->boxes; b; b = next) {
        next = b->next;
        if (b->parent && b->phase == BOX_MAKING && b->until_ms <= now) {
            end_overdue(s, b);
            next = s->boxes; /* with it, those may have gone that it lay in */
        }
    }
}

void box_linger(struct state *s, struct box *b)
{
    const struct cgroup_spared init = {.init = b->init_pid};
    cleanup_buf struct buf m = {0};
    struct err ignored;

    msg_begin(&m, SETUP_LEAVE);
    msg_send(b->init_setup.fd, &m, NULL, 0, &ignored);
    cgroup_end_others(&s->cgroups, b->id, &init);
}
