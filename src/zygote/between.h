/* between: forks of the zygote that are born in a box, through a go-between.
 *
 *     zygote ──clone3(VM|VFORK, into the box's cgroup)──▶ go-between ──fork()──▶ kernel process
 *
 * The go-between shares our memory and is gone in a moment. It is born in the box's cgroup (version
 * 2), enters the box's pid namespace for its children, and then calls the C library's own fork(), so
 * that every library's fork handlers run as they should. Neither can be had otherwise: fork() takes
 * no cgroup, and a second entry into a pid namespace from one process is refused. When it exits, the
 * kernel process is the keeper's child, and lives on if the zygote dies.
 *
 * An usher is a go-between that stays: in a blank box, where it has gone in and been sealed as a kernel process is,
 * before anybody asks for the box. What it forks then is born sealed. It has the zygote's memory, and ends with it. The
 * box has no owner, and so no user code, before its usher is gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The first three with every signal blocked: a handler must not run in a go-between, on our stack. -1 with errno. */

/* 0 in the new process; its pid in the zygote. A cgroup_fd of -1: born in ours. */
pid_t between_fork(int pid_namespace, int cgroup_fd);
/* The pid of an usher that has gone in by `seal`, and waits. ESRCH: it could not go in, and is gone. */
pid_t between_post(uint32_t box, int cgroup_fd, bool (*seal)(void *ctx), void *ctx);
/* As between_fork, from the usher of this box, which is gone then. ESRCH: it has none. */
pid_t between_fork_posted(uint32_t box);
/* Let the usher of this box be gone. */
void between_dismiss(uint32_t box);
