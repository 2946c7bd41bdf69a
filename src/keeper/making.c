/* making: a box from its request to the moment it is ready, in answers to messages. Runs in the keeper.
 *
 * Two halves are made side by side, init by us and the kernel process by a zygote; ARCHITECTURE draws it.
 * Nothing that a box says is more than "done" or "failed, because": the keeper reads no content.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/steps.h"
#include "init/init.h"
#include "keeper/state.h"
#include "wire/proto.h"

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

#define ASKED_MAX 8 /* answers that one zygote owes: of these, so many are asked for at a time */

/* ---- set-up messages from the two halves ---- */

void box_say_go(struct state *s, struct box *b, int to, const int *fds, unsigned n)
{
    cleanup_buf struct buf m = {0};
    struct err e;

    msg_begin(&m, SETUP_GO);
    if (msg_send(to, &m, fds, n, &e) < 0)
        box_fail(s, b, e.text);
}

/* The kernel process goes in when the root stands. */
static void kernel_go(struct state *s, struct box *b)
{
    if (!b->init_stands || !b->kernel_pid || b->phase != BOX_MAKING)
        return;
    cleanup_fd int network = fd_steal(&b->network_fd);
    box_say_go(s, b, b->kernel_setup.fd, &network, 1);
}

/* It goes to the owner as it is. An init that a guest has found a way into could send a socket with others in it, which
 * cannot be sent on, and with a message that cannot be sent to the owner the keeper ends. */
static int take_workspace(struct msg *m)
{
    cleanup_fd int fd = msg_take_fd(m, 1);
    int flags = fd < 0 ? 0 : fcntl(fd, F_GETFL);

    return flags > 0 && flags & O_PATH ? fd_steal(&fd) : -1;
}

bool box_setup_speaks(const struct watch *from)
{
    char first;
    return from->fd >= 0 && recv(from->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* One message of a half. SETUP_FAILED ends the box. */
uint32_t box_setup_recv(struct state *s, struct box *b, struct watch *from, const char *half)
{
    char step[64], why[512];
    struct fields f;
    struct err e = {0};

    if (msg_recv(from->fd, &s->in, &e) <= 0) {
        err_set(&e, 0, "%s ended before it was ready", half);
        box_fail_step(s, b, "box-fork", &e);
        return 0;
    }
    if (s->in.type == SETUP_DONE && from == &b->init_setup && !b->init_stands) {
        b->network_fd = msg_take_fd(&s->in, 0);
        b->workspace_fd = take_workspace(&s->in);
        b->cgroup_fd = msg_take_fd(&s->in, 2);
        fields_init(&f, s->in.data, s->in.len);
        b->has_files = fields_get_u8(&f) != 0;
    }
    if (b->parent && from == &b->init_setup)
        box_branch_hear(s, b, &s->in);
    /* The kernel process has said that it is ready, and then had somebody wait: this may be read first. */
    if (from == &b->init_setup && s->in.type == SETUP_WAITS)
        box_hear(s, b, &s->in);
    msg_done(&s->in);
    if (s->in.type != SETUP_FAILED)
        return s->in.type;
    fields_init(&f, s->in.data, s->in.len);
    fields_get_text(&f, step, sizeof(step));
    fields_get_text(&f, why, sizeof(why));
    err_set(&e, 0, "%s", why);
    box_fail_step(s, b, step, &e);
    return 0;
}

static void ask_for_kernel(struct state *s, struct box *b);

static void on_init_setup(struct state *s, void *ctx)
{
    struct box *b = ctx;

    if (b->phase != BOX_MAKING) {
        struct err e;
        if (msg_recv(b->init_setup.fd, &s->in, &e) <= 0 || box_hear(s, b, &s->in) < 0)
            watch_close(s, &b->init_setup);
        msg_done(&s->in);
        return;
    }
    if (box_setup_recv(s, b, &b->init_setup, "init") != SETUP_DONE)
        return;
    b->init_stands = true;
    if (b->parent)
        return; /* for its kernel process */
    if (b->stay_blank)
        ask_for_kernel(s, b);
    else
        kernel_go(s, b);
}

/* Whoever waits for it gets another: this one has lost its zygote, or its usher. */
static void begin_again(struct state *s, struct box *b)
{
    bool again = b->requested;
    uint32_t request = b->request, environment = b->plan.environment;
    struct limits limits = b->limits;

    b->requested = false;
    box_end(s, b);
    if (again)
        box_create(s, request, environment, &limits);
}

/* A fork that was born sealed may be ready before we know of it, and before its usher is gone. As long as that one
 * has the zygote's memory nobody may send user code. */
static void use_when_made(struct state *s, struct box *b)
{
    if (!b->kernel_stands || b->asked_zygote)
        return;
    if (b->requested) {
        box_hand_over(s, b, false);
    } else {
        b->phase = BOX_READY;
        s->refill_at_ms = clock_now_ms() + 1; /* is it full now? */
    }
}

static void on_kernel_setup(struct state *s, void *ctx)
{
    struct box *b = ctx;

    bool unknown = b->asked_zygote || b->usher == USHER_WAITS;
    if (unknown && (b->usher == USHER_NONE || !box_setup_speaks(&b->kernel_setup))) {
        /* A fork that we do not know of cannot speak, unless it was born sealed, and an usher does not: this is its
         * end, or the zygote's. Which of them it was we hear when it is reaped, or answers. */
        watch_close(s, &b->kernel_setup);
        if (!b->asked_zygote)
            begin_again(s, b);
        return;
    }
    uint32_t said = box_setup_recv(s, b, &b->kernel_setup, "the kernel process");
    if (said == 0)
        return;
    /* A branch's is the guest's from its beginning. */
    if (said != SETUP_DONE || (b->parent && !b->live_pid)) {
        box_fail(s, b, "the kernel process does not keep to the rules");
        return;
    }
    watch_close(s, &b->kernel_setup);
    b->kernel_stands = true;
    use_when_made(s, b);
}

/* ---- making ---- */

static int map_ids(struct state *s, struct box *b, struct err *e)
{
    char path[64], map[128];

    /* Two host ids for each slot: no other box has them. */
    if (s->own_ids)
        snprintf(map, sizeof(map), "%d %u 1\n%d %u 1\n", BOX_INIT_ID, 1 + 2 * b->plan.slot,
                 BOX_USER_ID, 2 + 2 * b->plan.slot);
    else
        snprintf(map, sizeof(map), "%d 0 1\n", BOX_USER_ID);
    snprintf(path, sizeof(path), "/proc/%d/uid_map", b->init_pid);
    if (fd_put_text(AT_FDCWD, path, map, e) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/gid_map", b->init_pid);
    return fd_put_text(AT_FDCWD, path, map, e);
}

/* While init is still like us: later on it lets nobody look at it. */
static int hold_namespaces(struct box *b, struct err *e)
{
    static const char *const names[BOX_BORN_INTO] = {"user", "pid", "mnt", "ipc", "uts"};
    char path[64];

    for (int i = 0; i < BOX_BORN_INTO; i++) {
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", b->init_pid, names[i]);
        b->namespaces[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (b->namespaces[i] < 0)
            return err_set(e, errno, "cannot open %s", path);
    }
    return 0;
}

static int clone_init(struct state *s, struct box *b, struct err *e)
{
    bool born_in = s->cgroups.version == 2;
    struct clone_args args = {
        .flags = NAMESPACES | (born_in ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)(born_in ? b->ways[0] : 0),
    };

    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return err_set(e, errno, "clone3");
    if (pid == 0) {
        struct box_init init = {.plan = &b->plan,
                                .view = &s->view,
                                .filter = &s->filter,
                                .ways = {b->ways, b->plan.attaches ? b->n_ways : 0}};
        init_run(&init,
                 &(struct init_ends){b->far.init_setup, b->far.files, b->far.init_line, -1, -1});
    }
    b->init_pid = (pid_t)pid;
    /* With these in our hands its death would go unheard. */
    fd_close(&b->far.init_setup);
    fd_close(&b->far.files);
    fd_close(&b->far.init_line);
    return 0;
}

static int make_pipe(int *ret_read, int *ret_write, struct err *e)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, errno, "cannot make a pipe");
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

/* A channel on which one half speaks of its set-up. */
static int make_setup(struct state *s, struct box *b, struct watch *ours,
                      void (*ready)(struct state *, void *), int *ret_theirs, struct err *e)
{
    int pair[2];

    if (msg_pair(pair, e) < 0)
        return -1;
    *ret_theirs = pair[1];
    /* One that does not read, because a guest of the box that it lies in has stopped it, keeps nobody waiting. */
    if (fd_set_nonblock(pair[0]) < 0) {
        close(pair[0]);
        return err_set(e, errno, "cannot use a socket");
    }
    return watch_add(s, ours, pair[0], ready, b, e);
}

int box_make_channels(struct state *s, struct box *b, struct err *e)
{
    struct far_ends *far = &b->far;
    int pair[2];

    if (make_setup(s, b, &b->init_setup, on_init_setup, &far->init_setup, e) < 0 ||
        make_setup(s, b, &b->kernel_setup, on_kernel_setup, &far->kernel_setup, e) < 0)
        return -1;
    if (msg_pair(pair, e) < 0)
        return -1;
    b->files_fd = pair[0];
    far->files = pair[1];
    if (msg_pair(pair, e) < 0)
        return -1;
    far->init_line = pair[0];
    far->kernel_line = pair[1];
    if (make_pipe(&b->cell_out_fd, &far->cell_out, e) < 0 ||
        make_pipe(&far->cell_in, &b->cell_in_fd, e) < 0 ||
        make_pipe(&b->stdout_fd, &far->out, e) < 0 || make_pipe(&b->stderr_fd, &far->err, e) < 0)
        return -1;
    return 0;
}

/* A step by its name: on purpose or in earnest, it fails the same way. */
#define TRY(step, call)                                                                            \
    do {                                                                                           \
        if (step_fails(step, &e) < 0 || (call) < 0) {                                              \
            box_fail_step(s, b, step, &e);                                                         \
            return;                                                                                \
        }                                                                                          \
    } while (0)

int box_make_cgroup(struct state *s, struct box *b, struct err *e)
{
    b->has_cgroup = true; /* even a half-made one is removed */
    if (cgroup_make(&s->cgroups, b->id, &b->limits, e) < 0)
        return -1;
    int n = cgroup_ways(&s->cgroups, b->id, b->ways, e);
    b->n_ways = n > 0 ? (unsigned)n : 0;
    return n < 0 ? -1 : 0;
}

int box_open_meters(struct state *s, struct box *b, struct err *e)
{
    int n = cgroup_meters(&s->cgroups, b->id, b->meters, e);

    b->n_meters = n > 0 ? (unsigned)n : 0;
    return n < 0 ? -1 : 0;
}

static unsigned asked_count(const struct state *s, unsigned environment)
{
    unsigned n = 0;

    for (const struct box *b = s->boxes; b; b = b->next)
        n += b->asked_zygote && b->plan.environment == environment;
    return n;
}

/* The other half, as soon as there is a zygote to fork from. Not too many at once: what waits in a
 * zygote's socket is lost with it. */
static void ask_for_kernel(struct state *s, struct box *b)
{
    struct err e = {0};

    if ((b->stay_blank && !b->init_stands) || !zygote_can_fork(s, b->plan.environment) ||
        asked_count(s, b->plan.environment) >= ASKED_MAX)
        return; /* on_init_setup and boxes_ask come back to it */
    int r = step_fails("box-fork", &e) < 0 ? -1 : zygote_ask(s, b, &e);
    /* A zygote that has just died is not the box's fault: boxes_zygote_lost begins again. */
    if (r < 0 && e.code != EPIPE && e.code != ECONNRESET) {
        box_fail_step(s, b, "box-fork", &e);
        return;
    }
    if (asked_count(s, b->plan.environment) == 0)
        zygote_owes(s, b->plan.environment, true);
    b->asked_zygote = true;
    box_close_far_ends(b);
    if (b->stay_blank)
        fd_close(&b->network_fd);
}

void box_make(struct state *s, struct box *b)
{
    struct err e = {0};

    TRY("box-cgroup", box_make_cgroup(s, b, &e));
    TRY("box-namespaces", box_make_channels(s, b, &e));
    if (clone_init(s, b, &e) < 0) {
        box_fail_step(s, b, "box-namespaces", &e);
        return;
    }
    TRY("box-hold", hold_namespaces(b, &e));
    /* From here on both halves are made side by side. */
    ask_for_kernel(s, b);
    if (b->phase != BOX_MAKING)
        return;
    TRY("box-identity", map_ids(s, b, &e));
    box_say_go(s, b, b->init_setup.fd, NULL, 0);
    if (b->phase != BOX_MAKING)
        return; /* init is gone already: nobody would close the meters */
    TRY("box-meters", box_open_meters(s, b, &e));
}

void box_fill(struct state *s, struct box *b)
{
    b->stay_blank = false;
    b->phase = BOX_MAKING;
    ask_for_kernel(s, b);
}

static int take_slot(struct state *s, uint32_t *ret)
{
    for (unsigned i = SLOT_ZYGOTE + 1; i < s->slots; i++)
        if (!s->slot_used[i]) {
            s->slot_used[i] = true;
            *ret = i;
            return 0;
        }
    return -1;
}

void box_set_limits(struct box *b, const struct limits *l)
{
    b->limits = *l;
    b->plan.disk = l->disk;
    b->plan.files = l->files;
    b->plan.memory = l->memory;
    b->plan.pids = l->pids;
    b->plan.cpus_milli = l->cpus_milli == LIMIT_NONE ? UINT32_MAX : (uint32_t)l->cpus_milli;
}

struct box *box_new(struct state *s, uint32_t environment, const struct limits *l)
{
    uint32_t slot;

    if (take_slot(s, &slot) < 0)
        return NULL;
    struct box *b = xcalloc(1, sizeof(*b));
    *b = (struct box){
        .id = ++s->last_id,
        .phase = BOX_MAKING,
        .plan = {.environment = environment,
                 .slot = slot,
                 .has_cgroup = s->cgroups.version != 0,
                 .attaches = s->cgroups.version == 1,
                 .own_ids = s->own_ids},
        .init_setup.fd = -1,
        .kernel_setup.fd = -1,
        .cell_out_fd = -1,
        .cell_in_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
        .files_fd = -1,
        .workspace_fd = -1,
        .network_fd = -1,
        .live_fd = -1,
        .cgroup_fd = -1,
        .far = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
        .namespaces = {-1, -1, -1, -1, -1},
        .next = s->boxes,
    };
    box_set_limits(b, l);
    s->boxes = b;
    return b;
}

/* ---- forks ---- */

/* `b` may be gone afterwards. */
static void box_fork_failed(struct state *s, struct box *b, const char *why)
{
    struct err e;

    err_set(&e, 0, "%s", why);
    if (b->phase == BOX_ENDING)
        box_free_when_gone(s, b);
    else
        box_fail_step(s, b, "box-fork", &e);
}

static void take_fork(struct state *s, struct box *b, pid_t pid)
{
    for (unsigned i = 0; i < s->n_early; i++)
        if (s->early[i] == pid) {
            s->early[i] = s->early[--s->n_early];
            if (b->phase == BOX_MAKING && box_setup_speaks(&b->kernel_setup) &&
                box_setup_recv(s, b, &b->kernel_setup, "the kernel process") == 0)
                return; /* it has said why */
            box_fork_failed(s, b, "the kernel process died at once");
            return;
        }
    b->kernel_pid = pid;
    if (b->phase != BOX_MAKING)
        return; /* it was ended meanwhile; pid 1's death takes this one along */
    if (b->kernel_setup.fd < 0 && !b->kernel_stands)
        box_fork_failed(s, b, "the kernel process died at once");
    else if (b->usher == USHER_GONE)
        use_when_made(s, b);
    else
        kernel_go(s, b);
}

/* The box that was waiting for an answer, and no longer does. */
static struct box *take_answer(struct state *s, uint32_t id)
{
    struct box *b = box_find(s, id);

    if (!b || !b->asked_zygote)
        return NULL; /* cannot be */
    b->asked_zygote = false;
    if (b->usher == USHER_WAITS)
        b->usher = USHER_GONE; /* whatever it was asked */
    b->usher_pid = 0;
    zygote_owes(s, b->plan.environment, asked_count(s, b->plan.environment) > 0);
    return b;
}

void box_answered(struct state *s, uint32_t id, pid_t pid)
{
    struct box *b = take_answer(s, id);

    if (!b)
        return;
    unsigned environment = b->plan.environment;
    if (pid <= 0)
        box_fork_failed(s, b, "no process was made");
    else
        take_fork(s, b, pid);
    boxes_ask(s, environment);
}

void box_posted(struct state *s, uint32_t id, pid_t usher)
{
    struct box *b = take_answer(s, id);

    if (!b)
        return;
    unsigned environment = b->plan.environment;
    b->usher = USHER_WAITS;
    b->usher_pid = usher;
    if (b->phase != BOX_MAKING) /* it was ended meanwhile */
        zygote_dismiss(s, b);
    else if (b->kernel_setup.fd < 0) /* so was the usher */
        box_end(s, b);
    else
        b->phase = BOX_BLANK;
    boxes_ask(s, environment);
}

void box_dismissed(struct state *s, uint32_t id)
{
    struct box *b = take_answer(s, id);

    if (!b)
        return;
    unsigned environment = b->plan.environment;
    box_free_when_gone(s, b);
    boxes_ask(s, environment);
}

void box_refused(struct state *s, uint32_t id, const char *why)
{
    struct box *b = take_answer(s, id);

    if (!b)
        return;
    unsigned environment = b->plan.environment;
    /* An usher that was dead before it could fork. */
    if (b->phase == BOX_MAKING && b->usher == USHER_GONE && b->kernel_setup.fd < 0)
        begin_again(s, b);
    else
        box_fork_failed(s, b, why);
    boxes_ask(s, environment);
}

/* The one that has waited longest: new ones are at the head of the list. */
static struct box *next_to_ask(const struct state *s, unsigned environment)
{
    struct box *last = NULL;

    for (struct box *b = s->boxes; b; b = b->next)
        if (b->phase == BOX_MAKING && b->plan.environment == environment &&
            (!b->stay_blank || b->init_stands) && !b->parent && !b->asked_zygote && !b->kernel_pid)
            last = b;
    return last;
}

void boxes_ask(struct state *s, unsigned environment)
{
    struct box *b;

    boxes_forget_early(s);
    /* Each turn either asks for it or fails it, so this ends. */
    while (zygote_can_fork(s, environment) && asked_count(s, environment) < ASKED_MAX &&
           (b = next_to_ask(s, environment)))
        ask_for_kernel(s, b);
    s->refill_at_ms = clock_now_ms() + 1;
}

void boxes_forget_early(struct state *s)
{
    for (const struct box *b = s->boxes; b; b = b->next)
        if (b->asked_zygote)
            return;
    s->n_early = 0;
}

/* Its ushers are about to die, as our children; or it had reaped one, and could not say so any more. */
static void lose_ushers(struct state *s, unsigned environment)
{
    struct box *next;

    for (struct box *b = s->boxes; b; b = next) {
        siginfo_t ignored;
        next = b->next;
        if (b->plan.environment != environment || b->usher != USHER_WAITS)
            continue;
        b->usher = USHER_GONE;
        if (waitid(P_PID, (id_t)b->usher_pid, &ignored, WEXITED | WNOHANG | WNOWAIT) < 0)
            b->usher_pid = 0;
        if (b->phase == BOX_BLANK)
            box_end(s, b);
    }
}

/* With no reason the boxes in the making are made anew from the next zygote; those whose fork may
 * have happened, or was to come from an usher, are ended and their requests begin again. */
void boxes_zygote_lost(struct state *s, unsigned environment, const char *why)
{
    struct box *next;

    lose_ushers(s, environment); /* before a blank box is taken for a request */
    for (struct box *b = s->boxes; b; b = next) {
        next = b->next;
        if (b->plan.environment != environment || b->parent)
            continue;
        bool asked = b->asked_zygote;
        bool lost = asked || (b->usher == USHER_GONE && !b->kernel_pid);
        b->asked_zygote = false;
        if (b->phase == BOX_MAKING && why)
            box_fail(s, b, why);
        else if (b->phase == BOX_MAKING && lost)
            begin_again(s, b);
        else if (asked)
            box_free_when_gone(s, b);
    }
    boxes_forget_early(s);
}
