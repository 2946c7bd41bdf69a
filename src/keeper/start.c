/* start: the ground for a keeper, and its program on it. Runs in the process that wants sessions.
 *
 * With the rights of whoever started retort. As root it does the few things that only root can do, all of them
 * here: a range of uids that no other retort uses, device nodes of their own for the boxes, cgroups. Then the
 * keeper's program (main.c) makes a keeper in a user namespace, which has no right on the host any more. An
 * ordinary user's retort takes the same way with one uid and without the device nodes.
 */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beside.h"
#include "base/fd.h"
#include "box/landlock.h"
#include "box/steps.h"
#include "keeper/launch.h"
#include "wire/fields.h"
#include "wire/proto.h"

/* Host uids: above everything that distributions and container managers hand out (systemd's last
 * container uid is 1879048191), below 2^31. Each keeper takes one range of them. */
#define UID_FIRST 1879048192u
#define UID_RANGES 2048u

/* A name in the abstract socket space is a lock that vanishes with its holder and leaves no file. */
static int lock_uid_range(struct launch *g, struct err *e)
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
            g->uid_base = UID_FIRST + i * LAUNCH_UIDS;
            return 0;
        }
    }
    return err_set(e, EUSERS, "no range of user ids is free");
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
static int make_device_sets(struct launch *g, unsigned n, struct err *e)
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

/* ---- the program ---- */

static int find_runner(char *ret, size_t size, struct err *e)
{
    if (beside_find("src/zygote/boot.py", "boot.py", ret, size, e) < 0)
        return -1;
    *strrchr(ret, '/') = '\0';
    return 0;
}

/* Settings of the tests'; nothing else of our environment goes where boxes are made: it may hold keys. */
static char **settings(char *ret[4])
{
    static const char *const names[] = {"RETORT_FAULT", "ASAN_OPTIONS", "UBSAN_OPTIONS"};
    unsigned n = 0;

    for (unsigned i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value)
            ret[n++] = xasprintf("%s=%s", names[i], value);
    }
    ret[n] = NULL;
    return ret;
}

/* A session of its own: a Ctrl-C is for us alone. Of our descriptors it has this one, and where to say what nobody
 * is there to hear: a server may hold listening sockets and databases. */
static int spawn(const char *program, int its, pid_t *ret, struct err *e)
{
    char *argv[] = {"retort", NULL}, *env[4];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, its, LAUNCH_FD);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, LAUNCH_FD + 1);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int code = posix_spawn(ret, program, &actions, &attributes, argv, settings(env));
    for (unsigned i = 0; env[i]; i++)
        free(env[i]);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code ? err_set(e, code, "cannot start %s", program) : 0;
}

/* Its next word, which is to be this one. */
static int await(int fd, uint32_t type, struct msg *m, struct err *e)
{
    struct fields f;
    size_t len;

    int r = msg_recv(fd, m, e);
    if (r == 0)
        err_set(e, 0, "the keeper died while it was starting");
    if (r > 0 && m->type != type) {
        fields_init(&f, m->data, m->len);
        const char *why = fields_get_bytes(&f, &len);
        r = err_set(e, 0, "%.*s", (int)len, why);
    }
    return r > 0 ? 0 : -1;
}

static int await_keeper(int fd, struct keeper *k, struct err *e)
{
    cleanup_free struct msg *m = xcalloc(1, sizeof(*m));
    struct fields f;

    if (await(fd, KEEPER_BORN, m, e) < 0)
        return -1;
    fields_init(&f, m->data, m->len);
    k->pid = (pid_t)fields_get_u32(&f);
    k->pidfd = msg_take_fd(m, 0);
    if (!fields_end(&f) || k->pidfd < 0)
        return err_set(e, 0, "retort-keeper does not say whom it has started");
    return await(fd, KEEPER_STANDS, m, e);
}

static int launch(struct launch *l, struct keeper *k, const char **ret_step, struct err *e)
{
    cleanup_buf struct buf b = {0};
    char program[PATH_MAX];
    int pair[2], fds[LAUNCH_FDS];
    unsigned n;

    *ret_step = NULL; /* what comes now is no step, or the keeper names it itself */
    if (find_runner(l->runner, sizeof(l->runner), e) < 0 ||
        beside_find("retort-keeper", "retort-keeper", program, sizeof(program), e) < 0 ||
        launch_put(l, &b, fds, &n, e) < 0 || msg_pair(pair, e) < 0)
        return -1;
    cleanup_fd int mine = pair[0], its = pair[1];
    if (spawn(program, its, &k->program, e) < 0)
        return -1;
    fd_close(&its);
    if (msg_send(mine, &b, fds, n, e) < 0 || await_keeper(mine, k, e) < 0)
        return -1;
    k->fd = fd_steal(&mine);
    return 0;
}

static int prepare(struct launch *g, struct keeper_facts *facts, const char **ret_step,
                   struct err *e)
{
    *ret_step = "keeper-uids";
    if (g->root && (step_fails(*ret_step, e) < 0 || lock_uid_range(g, e) < 0))
        return -1;
    *ret_step = "keeper-devices";
    if (g->root &&
        (step_fails(*ret_step, e) < 0 || make_device_sets(g, launch_slots(&g->options), e) < 0))
        return -1;
    *ret_step = "keeper-cgroup";
    if (step_fails(*ret_step, e) < 0)
        return -1;
    cgroup_ground_make(g->root ? g->uid_base : geteuid(), &g->cgroups, e);
    facts->cgroup_version = g->cgroups.version;
    snprintf(facts->cgroup_reason, sizeof(facts->cgroup_reason), "%.255s",
             g->cgroups.version ? "" : e->text);
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
    struct launch *l = xcalloc(1, sizeof(*l));
    const char *step = NULL;

    *ret = (struct keeper){.fd = -1, .pidfd = -1, .ground = l};
    *l = (struct launch){.options = *o, .root = geteuid() == 0, .uid_lock = -1, .device_sets = -1};
    ret->facts.root = l->root;
    ret->facts.landlock_abi = landlock_abi();
    steps_inject(getenv("RETORT_FAULT"));
    raise_descriptors();
    e->text[0] = '\0';
    /* What is made here is for boxes, which are others than we are. */
    mode_t before = umask(022);
    bool stands = prepare(l, &ret->facts, &step, e) == 0 && launch(l, ret, &step, e) == 0;
    umask(before);
    if (!stands) {
        if (step)
            err_wrap(e, "step %s", step);
        keeper_stop(ret);
        return -1;
    }
    /* Theirs now. */
    fd_close(&l->uid_lock);
    fd_close(&l->device_sets);
    return 0;
}

void keeper_stop(struct keeper *k)
{
    struct launch *l = k->ground;
    struct pollfd end = {.fd = k->pidfd, .events = POLLIN};

    if (k->pidfd >= 0)
        pidfd_send_signal(k->pidfd, SIGKILL, NULL, 0); /* all that it keeps dies with it */
    while (k->pidfd >= 0 && poll(&end, 1, -1) < 0 && errno == EINTR)
        ;
    /* It ends when the keeper has, or when it sees our socket's end before there is one. */
    while (k->program > 0 && waitpid(k->program, NULL, 0) < 0 && errno == EINTR)
        ;
    cgroup_ground_remove(&l->cgroups);
    fd_close(&k->pidfd);
    fd_close(&l->uid_lock);
    fd_close(&l->device_sets);
    free(l);
    k->ground = NULL;
}
