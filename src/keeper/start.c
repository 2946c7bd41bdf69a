/* start: from the process that wants sessions to a keeper in namespaces of its own.
 *
 * Runs with the rights of whoever started retort. As root it does the few things that only root can
 * do, all of them here: a range of uids that no other retort uses, device nodes of their own for the
 * boxes, cgroups. Then the keeper is cloned into a user namespace and has no right on the host any
 * more. An ordinary user's retort takes the same way with one uid and without the device nodes.
 *
 *     starter ──clone3──▶ keeper (pid 1 of its own pid namespace)
 *        └─────fork─────▶ sweeper: waits for the keeper's end, then removes our cgroups. It is there
 *                         so that even a starter that was killed leaves nothing behind.
 */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/identity.h"
#include "box/landlock.h"
#include "box/steps.h"
#include "keeper/state.h"
#include "wire/proto.h"

/* Host uids: above everything that distributions and container managers hand out (systemd's last
 * container uid is 1879048191), below 2^31. Each keeper takes one range of 65536. */
#define UID_FIRST 1879048192u
#define UID_RANGE 65536u
#define UID_RANGES 2048u

#define BOXES_UNASKED 1000u

struct ground {
    struct cgroup_ground cgroups;
    int uid_lock; /* held by the keeper: the range is ours while it lives */
    uid_t uid_base;
    int device_sets;
    pid_t sweeper;
};

/* A name in the abstract socket space is a lock that vanishes with its holder and leaves no file. */
static int lock_uid_range(struct ground *g, struct err *e)
{
    for (unsigned i = 0; i < UID_RANGES; i++) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "retort-uids-%u", i);
        cleanup_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return err_set(e, errno, "cannot make a socket");
        socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
        if (bind(fd, (struct sockaddr *)&name, len) == 0) {
            g->uid_lock = fd_steal(&fd);
            g->uid_base = UID_FIRST + i * UID_RANGE;
            return 0;
        }
    }
    return err_set(e, EUSERS, "no range of user ids is free");
}

static unsigned slots(const struct keeper_options *o)
{
    unsigned boxes = o->boxes ? o->boxes : BOXES_UNASKED;
    return SLOT_ZYGOTE + 1 + (boxes < KEEPER_MAX_BOXES ? boxes : KEEPER_MAX_BOXES);
}

static int make_device_set(int dir, unsigned slot, struct err *e)
{
    static const struct {
        const char *name;
        unsigned minor;
    } nodes[] = {{"null", 3}, {"zero", 5}, {"full", 7}, {"random", 8}, {"urandom", 9}};
    static const char *const links[][2] = {{"fd", "/proc/self/fd"},
                                           {"stdin", "/proc/self/fd/0"},
                                           {"stdout", "/proc/self/fd/1"},
                                           {"stderr", "/proc/self/fd/2"}};
    char name[16];

    snprintf(name, sizeof(name), "%u", slot);
    if (mkdirat(dir, name, 0755) < 0)
        return err_set(e, errno, "mkdir");
    cleanup_fd int set = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (set < 0 || mkdirat(set, "shm", 0755) < 0)
        return err_set(e, errno, "mkdir");
    for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
        if (mknodat(set, nodes[i].name, S_IFCHR | 0666, makedev(1, nodes[i].minor)) < 0 ||
            fchmodat(set, nodes[i].name, 0666, 0) < 0)
            return err_set(e, errno, "mknod %s", nodes[i].name);
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
        if (symlinkat(links[i][1], set, links[i][0]) < 0)
            return err_set(e, errno, "symlink");
    return 0;
}

/* Harmless devices, but each box its own inodes: a lock on a shared /dev/null would be a wire between
 * sessions. On a mount that hangs nowhere; only a real root can make it. */
static int make_device_sets(struct ground *g, unsigned n, struct err *e)
{
    cleanup_fd int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "755", 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_set(e, errno, "cannot make a tmpfs");
    cleanup_fd int dir =
        (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    if (dir < 0)
        return err_set(e, errno, "fsmount");
    for (unsigned i = 0; i < n; i++)
        if (make_device_set(dir, i, e) < 0)
            return -1;
    g->device_sets = fd_steal(&dir);
    return 0;
}

/* ---- the keeper's side of the clone ---- */

/* Where boot.py and the extension are: beside the binary in a build, in lib/retort when installed. */
static int find_runner(char *ret, size_t size, struct err *e)
{
    static const char *const places[] = {"src/zygote", "../lib/retort"};
    char exe[PATH_MAX], path[PATH_MAX + 64];

    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (n < 0)
        return err_set(e, errno, "cannot find my own binary");
    exe[n] = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        for (char *at = exe + n; at; at = memrchr(exe, '/', (size_t)(at - exe))) {
            if (*at != '/')
                continue;
            /* A test or benchmark may lie deeper in the build than the binary itself. */
            snprintf(path, sizeof(path), "%.*s/%s/boot.py", (int)(at - exe), exe, places[i]);
            if (access(path, R_OK) == 0) {
                snprintf(ret, size, "%.*s/%s", (int)(at - exe), exe, places[i]);
                return 0;
            }
        }
    }
    return err_set(e, ENOENT, "cannot find retort's own Python files near %s", exe);
}

struct cloned {
    const struct keeper_options *options;
    struct ground *ground;
    const char *runner;
    int runner_fd;
    bool root;
    int owner;
    struct state *state;
    /* the environments' directories, opened; or -errno */
    int paths[ROOT_ENVIRONMENTS][ENVIRONMENT_PATHS];
    int wheels[ROOT_ENVIRONMENTS];
};

static int open_directory(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* While we still have the starter's uid: his home may be closed to everybody else, and naming a
 * directory in it was his decision. */
static void open_paths(struct cloned *c)
{
    c->runner_fd = open(c->runner, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < c->options->n_environments && i < ROOT_ENVIRONMENTS; i++) {
        const struct environment *env = &c->options->environments[i];
        for (unsigned k = 0; k < ENVIRONMENT_PATHS && env->paths[k]; k++)
            c->paths[i][k] = open_directory(env->paths[k]);
        if (env->wheels)
            c->wheels[i] = open_directory(env->wheels);
    }
}

/* What the kernel put above our stack, which nothing here points to any more. */
static void wipe(unsigned long start, unsigned long end)
{
    memset((void *)start, 0, end - start); /* NOLINT: an address as the kernel writes it */
}

/* Our command line has paths of the host, and our environment may have keys of whoever started us; whoever is
 * cloned from us has both in its memory: every init would show the one to its guest in /proc/1/cmdline, and a
 * guest that finds a way into its init would find the other. So they are written over before the first box. */
static int step_command_line(void *ctx, struct err *e)
{
    static const char name[] = "retort";
    unsigned long arg_start = 0, arg_end = 0, env_start = 0, env_end = 0;
    const char *injected = getenv("RETORT_FAULT");
    cleanup_free char *fault = injected ? xstrdup(injected) : NULL;
    char text[1024];
    (void)ctx;

    if (fd_get_text(AT_FDCWD, "/proc/self/stat", text, sizeof(text), e) < 0)
        return -1;
    const char *at = strrchr(text, ')'); /* the name before it may have anything in it */
    for (unsigned field = 2; at && field < 48; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, "%lu %lu %lu %lu", &arg_start, &arg_end, &env_start, &env_end) != 4 ||
        arg_start == 0 || arg_end <= arg_start || env_end < env_start)
        return err_set(e, 0, "/proc/self/stat does not say where the arguments are");
    clearenv();
    wipe(env_start, env_end);
    wipe(arg_start, arg_end);
    size_t room = arg_end - arg_start;
    memcpy((void *)arg_start, name, room < sizeof(name) ? room - 1 : sizeof(name)); /* NOLINT */
    if (fault && setenv("RETORT_FAULT", fault, 1) < 0)
        return err_set(e, errno, "setenv");
    return 0;
}

static int step_filter(void *ctx, struct err *e)
{
    struct cloned *c = ctx;
    return filter_compile(c->ground->cgroups.version != 0, &c->state->filter, e);
}

static int step_root(void *ctx, struct err *e)
{
    struct cloned *c = ctx;
    struct root_source source = {
        .runner = c->runner, .runner_fd = c->runner_fd, .device_sets_fd = c->ground->device_sets};

    if (root_begin(&source, &c->state->view, e) < 0)
        return -1;
    for (unsigned i = 0; i < c->options->n_environments; i++) {
        const struct environment *env = &c->options->environments[i];
        if (root_add_environment(&c->state->view, &source, env->paths, c->paths[i],
                                 env->wheels ? &c->wheels[i] : NULL, e) < 0)
            return err_wrap(e, "environment \"%s\"", env->name);
    }
    return root_finish(&c->state->view, &source, e);
}

static int step_bare(void *ctx, struct err *e)
{
    struct cloned *c = ctx;

    /* Libraries remember the name that they see when they are imported, in the zygote. */
    if (sethostname("retort", 6) < 0)
        return err_set(e, errno, "cannot set the host name");
    /* The change of uid made us, and so every init that we clone, undumpable: its uid_map would then
     * belong to the host's root. Nobody shares our uid whom this would let in. */
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_set(e, errno, "cannot become dumpable");
    if (identity_keep_making(e) < 0)
        return -1;
    return filter_load_first(&c->state->filter, e);
}

static int step_identity(void *ctx, struct err *e)
{
    struct cloned *c = ctx;
    /* uid 0 of the new namespace: on the host that is a uid without any right. */
    return identity_become(0, 0, c->root, e);
}

/* Only what it needs: a server that starts us may hold listening sockets and databases. */
static void keep_descriptors(struct cloned *c)
{
    struct cgroup_ground *cg = &c->ground->cgroups;
    int *kept[4 + 2 * CGROUP_HIERARCHIES];
    unsigned n = 0;

    kept[n++] = &c->owner;
    kept[n++] = &c->ground->uid_lock;
    kept[n++] = &c->ground->device_sets;
    for (unsigned i = 0; i < cg->n_dirs; i++) {
        fd_close(&cg->parents[i]); /* above our own ground: not the keeper's business */
        kept[n++] = &cg->dirs[i];
    }
    int from[4 + 2 * CGROUP_HIERARCHIES];
    for (unsigned i = 0; i < n; i++)
        from[i] = *kept[i];
    if (fd_place(from, n, 3, 0) < 0)
        _exit(1);
    for (unsigned i = 0; i < n; i++)
        *kept[i] = from[i] < 0 ? -1 : 3 + (int)i;
    close_range(3 + n, ~0U, 0);
    /* The owner's terminal is none of the keeper's business; what it says in an emergency is. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        _exit(1);
    close(null);
}

_Noreturn static void cloned_main(struct cloned *c)
{
    static const struct step steps[] = {
        {"keeper-command-line", step_command_line},
        {"keeper-filter", step_filter},
        {"keeper-root", step_root},
        {"keeper-bare", step_bare},
    };
    static struct state state;
    cleanup_buf struct buf m = {0};
    const char *failed = "keeper-identity";
    char why[700];
    struct err e = {0};

    keep_descriptors(c);
    open_paths(c);
    c->state = &state;
    /* The starter maps our ids, and says so with one byte. */
    char go;
    if (recv(c->owner, &go, 1, 0) != 1)
        _exit(1);
    if (step_identity(c, &e) < 0 || STEPS_RUN(steps, c, &failed, &e) < 0) {
        snprintf(why, sizeof(why), "step %s: %s", failed, e.text);
        msg_begin(&m, KEEPER_GONE);
        fields_put_text(&m, why);
        msg_send(c->owner, &m, NULL, 0, &e);
        _exit(1);
    }
    state.options = c->options;
    state.cgroups = c->ground->cgroups;
    state.own_ids = c->root;
    state.slots = slots(c->options);
    state.slot_used = xcalloc(state.slots, sizeof(bool));
    keeper_run(&state, c->owner);
}

/* ---- the starter's side ---- */

static int map_keeper(pid_t pid, const struct ground *g, bool root, struct err *e)
{
    char path[64], uids[64], gids[64];

    if (step_fails("keeper-identity", e) < 0)
        return -1;
    snprintf(uids, sizeof(uids), "0 %u %u\n", root ? g->uid_base : geteuid(), root ? UID_RANGE : 1);
    snprintf(gids, sizeof(gids), "0 %u %u\n", root ? g->uid_base : getegid(), root ? UID_RANGE : 1);
    if (!root) {
        /* The kernel asks for this where a user maps his own group: groups could not be given up to
         * gain access. */
        snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
        if (fd_put_text(AT_FDCWD, path, "deny", e) < 0)
            return -1;
    }
    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    if (fd_put_text(AT_FDCWD, path, uids, e) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
    return fd_put_text(AT_FDCWD, path, gids, e);
}

static pid_t clone_keeper(struct cloned *c, int *ret_pidfd, struct err *e)
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
                 CLONE_NEWUTS | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };

    if (step_fails("keeper-namespaces", e) < 0)
        return -1;
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return err_set(e, errno, "cannot make the keeper's namespaces");
    if (pid == 0)
        cloned_main(c);
    return (pid_t)pid;
}

static int start_sweeper(struct ground *g, int keeper_pidfd, struct err *e)
{
    if (g->cgroups.version == 0)
        return 0;
    pid_t pid = fork();
    if (pid < 0)
        return err_set(e, errno, "cannot fork the sweeper");
    if (pid > 0) {
        g->sweeper = pid;
        return 0;
    }
    prctl(PR_SET_NAME, "retort-sweeper");
    setsid(); /* a Ctrl-C is not for us */
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_IGN);
    int from[1 + 2 * CGROUP_HIERARCHIES] = {keeper_pidfd};
    for (unsigned i = 0; i < g->cgroups.n_dirs; i++) {
        from[1 + 2 * i] = g->cgroups.dirs[i];
        from[2 + 2 * i] = g->cgroups.parents[i];
        g->cgroups.dirs[i] = 1 + 2 * (int)i;
        g->cgroups.parents[i] = 2 + 2 * (int)i;
    }
    unsigned n = 1 + 2 * g->cgroups.n_dirs;
    if (fd_place(from, n, 0, 0) < 0)
        _exit(1);
    close_range(n, ~0U, 0);
    struct pollfd p = {.fd = 0, .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    cgroup_ground_remove(&g->cgroups);
    _exit(0);
}

/* The keeper's first word. */
static int await_keeper(int fd, struct err *e)
{
    struct msg *m = xcalloc(1, sizeof(*m));
    struct fields f;
    char why[512] = "";

    int r = msg_recv(fd, m, e);
    if (r == 0)
        err_set(e, 0, "the keeper died while it was starting");
    if (r > 0 && m->type != KEEPER_STANDS) {
        fields_init(&f, m->data, m->len);
        fields_get_text(&f, why, sizeof(why));
        r = err_set(e, 0, "%s", why);
    }
    free(m);
    return r > 0 ? 0 : -1;
}

static int prepare(const struct keeper_options *o, struct ground *g, bool root,
                   struct keeper_facts *facts, const char **ret_step, struct err *e)
{
    *ret_step = "keeper-uids";
    if (root && (step_fails(*ret_step, e) < 0 || lock_uid_range(g, e) < 0))
        return -1;
    *ret_step = "keeper-devices";
    if (root && (step_fails(*ret_step, e) < 0 || make_device_sets(g, slots(o), e) < 0))
        return -1;
    *ret_step = "keeper-cgroup";
    if (step_fails(*ret_step, e) < 0)
        return -1;
    cgroup_ground_make(root ? g->uid_base : geteuid(), &g->cgroups, e);
    facts->cgroup_version = g->cgroups.version;
    snprintf(facts->cgroup_reason, sizeof(facts->cgroup_reason), "%.255s",
             g->cgroups.version ? "" : e->text);
    return 0;
}

static int launch(const struct keeper_options *o, struct ground *g, struct keeper *k,
                  const char **ret_step, struct err *e)
{
    char runner[PATH_MAX];
    int pair[2];

    *ret_step = NULL; /* what comes first is no step, and has no step's remedy */
    if (find_runner(runner, sizeof(runner), e) < 0 || msg_pair(pair, e) < 0)
        return -1;
    cleanup_fd int mine = pair[0], its = pair[1], pidfd = -1;
    struct cloned c = {
        .options = o, .ground = g, .runner = runner, .root = k->facts.root, .owner = its};
    *ret_step = "keeper-namespaces";
    k->pid = clone_keeper(&c, &pidfd, e);
    if (k->pid < 0)
        return -1;
    fd_close(&its);
    *ret_step = "keeper-identity";
    if (map_keeper(k->pid, g, k->facts.root, e) < 0)
        return -1;
    *ret_step = "keeper-cgroup";
    if (cgroup_ground_enter(&g->cgroups, k->pid, e) < 0 || start_sweeper(g, pidfd, e) < 0)
        return -1;
    *ret_step = NULL; /* from here on the keeper names its own steps */
    if (send(mine, "", 1, MSG_NOSIGNAL) != 1)
        return err_set(e, errno, "the keeper died at once");
    if (await_keeper(mine, e) < 0)
        return -1;
    k->fd = fd_steal(&mine);
    return 0;
}

/* Many boxes mean many descriptors: take what the host allows. */
static void raise_descriptors(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

int keeper_start(const struct keeper_options *o, struct keeper *ret, struct err *e)
{
    struct ground *g = xcalloc(1, sizeof(*g));
    const char *step = NULL;

    *ret = (struct keeper){.fd = -1, .ground = g};
    g->uid_lock = g->device_sets = -1;
    ret->facts.root = geteuid() == 0;
    ret->facts.landlock_abi = landlock_abi();
    steps_inject(getenv("RETORT_FAULT"));
    raise_descriptors();
    e->text[0] = '\0';
    /* What is made here is for boxes, which are others than we are. */
    mode_t before = umask(022);
    bool stands = prepare(o, g, ret->facts.root, &ret->facts, &step, e) == 0 &&
                  launch(o, g, ret, &step, e) == 0;
    umask(before);
    if (!stands) {
        if (step)
            err_wrap(e, "step %s", step);
        keeper_stop(ret);
        return -1;
    }
    /* Theirs now. */
    fd_close(&g->uid_lock);
    fd_close(&g->device_sets);
    return 0;
}

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void keeper_stop(struct keeper *k)
{
    struct ground *g = k->ground;

    if (k->pid > 0) {
        kill(k->pid, SIGKILL); /* all that it keeps dies with it */
        wait_for(k->pid);
    }
    if (g->sweeper > 0)
        wait_for(g->sweeper);
    cgroup_ground_remove(&g->cgroups);
    fd_close(&g->uid_lock);
    fd_close(&g->device_sets);
    free(g);
    k->ground = NULL;
}
