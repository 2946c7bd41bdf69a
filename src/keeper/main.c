/* retort-keeper: the program that becomes the keeper. Started by retort, never by hand.
 *
 * It is a program of its own, small and without the libraries of the other verbs, because every box's init is a fork
 * of it: what it does not have, no box has to copy, and no guest could find in its init. It is started with no
 * environment and a bare command line, for the same reason: init shows the one to its guest in /proc/1/cmdline.
 *
 *     owner ──spawn──▶ retort-keeper ──clone3──▶ keeper (pid 1 of its own pid namespace)
 *                           └── stays, as the sweeper: waits for the keeper's end, then removes our cgroups.
 *                               It is there so that even an owner that was killed leaves nothing behind.
 *
 * Runs with the rights of whoever started retort, and uses them for what the keeper cannot do itself: to map its ids,
 * and to put it into its cgroup. From then on it only waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/steps.h"
#include "keeper/state.h"
#include "wire/fields.h"
#include "wire/proto.h"

void keeper_tell_failed(const char *step, const struct err *why)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;
    char text[700];

    snprintf(text, sizeof(text), "%s%s%s%s", step ? "step " : "", step ? step : "",
             step ? ": " : "", why->text);
    msg_begin(&b, KEEPER_GONE);
    fields_put_text(&b, text);
    msg_send(LAUNCH_FD, &b, NULL, 0, &ignored);
}

/* With a keeper that still waits for our word, or none (0). The owner may be gone: we clear up in any case. */
_Noreturn static void give_up(struct launch *l, pid_t keeper)
{
    if (keeper > 0) {
        kill(keeper, SIGKILL);
        waitpid(keeper, NULL, 0);
    }
    cgroup_ground_remove(&l->cgroups);
    _exit(1);
}

static int map_keeper(pid_t pid, const struct launch *l, struct err *e)
{
    char path[64], uids[64], gids[64];

    if (step_fails("keeper-identity", e) < 0)
        return -1;
    snprintf(uids, sizeof(uids), "0 %u %u\n", l->root ? l->uid_base : geteuid(),
             l->root ? LAUNCH_UIDS : 1);
    snprintf(gids, sizeof(gids), "0 %u %u\n", l->root ? l->uid_base : getegid(),
             l->root ? LAUNCH_UIDS : 1);
    if (!l->root) {
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

/* It waits for a byte in `go`, which comes when all is done that needs our rights. */
static pid_t clone_keeper(struct launch *l, const int go[2], int *ret_pidfd, struct err *e)
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
    if (pid == 0) {
        close(go[1]);
        keeper_stand(l, go[0]);
    }
    return (pid_t)pid;
}

static int tell_born(pid_t pid, int pidfd, struct err *e)
{
    cleanup_buf struct buf b = {0};

    msg_begin(&b, KEEPER_BORN);
    fields_put_u32(&b, (uint32_t)pid);
    return msg_send(LAUNCH_FD, &b, &pidfd, 1, e);
}

_Noreturn static void sweep(struct launch *l, pid_t keeper)
{
    prctl(PR_SET_NAME, "retort-sweeper");
    for (int s = 1; s < NSIG; s++)
        if (s != SIGCHLD)
            signal(s, SIG_IGN);
    /* With these in our hands nobody would see their end. */
    close(LAUNCH_FD);
    fd_close(&l->uid_lock);
    fd_close(&l->device_sets);
    while (waitpid(keeper, NULL, 0) < 0 && errno == EINTR)
        ;
    cgroup_ground_remove(&l->cgroups);
    _exit(0);
}

/* The keeper, with its ids and in its cgroup. It goes on when it finds a byte in *ret_go. */
static pid_t make_keeper(struct launch *l, int *ret_go, int *ret_pidfd)
{
    const char *failed = NULL;
    struct err e = {0};
    pid_t pid = 0;
    int go[2];

    if (pipe2(go, O_CLOEXEC) < 0) {
        err_set(&e, errno, "cannot make a pipe");
    } else if (pid = clone_keeper(l, go, ret_pidfd, &e), pid < 0) {
        failed = "keeper-namespaces";
    } else if (map_keeper(pid, l, &e) < 0) {
        failed = "keeper-identity";
    } else if (cgroup_ground_enter(&l->cgroups, pid, &e) < 0) {
        failed = "keeper-cgroup";
    } else {
        close(go[0]);
        *ret_go = go[1];
        return pid;
    }
    keeper_tell_failed(failed, &e);
    give_up(l, pid);
}

int main(void)
{
    static struct msg m;
    static struct launch l;
    struct err e = {0};
    int go, pidfd = -1;

    steps_inject(getenv("RETORT_FAULT"));
    int got = msg_recv(LAUNCH_FD, &m, &e);
    if (got < 0)
        fprintf(stderr, "retort-keeper is started by retort\n");
    if (got <= 0) /* or whoever did is gone */
        _exit(2);
    if (launch_get(&m, &l, &e) < 0) {
        keeper_tell_failed(NULL, &e);
        _exit(1);
    }
    pid_t pid = make_keeper(&l, &go, &pidfd);
    /* A keeper that has died meanwhile is no reader of this pipe. */
    signal(SIGPIPE, SIG_IGN);
    if (tell_born(pid, pidfd, &e) < 0 || write(go, "", 1) != 1)
        give_up(&l, pid);
    close(go);
    close(pidfd);
    sweep(&l, pid);
}
