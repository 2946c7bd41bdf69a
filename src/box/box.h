/* box: what the two halves of a box have to know, and the two lists of steps that make one.
 *
 * A box has two processes of ours. init is a fork of the keeper: it makes the root, becomes pid 1 and
 * runs no Python. The kernel process is a fork of the zygote: it joins init's namespaces, confines
 * itself, and then runs cells. Neither goes on after a step that failed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "box/filter.h"
#include "wire/fields.h"

/* Identities inside; outside they are uids that no other box has (where the keeper is root). */
#define BOX_USER_ID 1000
#define BOX_INIT_ID 999

#define BOX_WORKSPACE "/mnt/data"
#define BOX_HOME "/home/user"

/* The kernel process's only descriptors besides 0, 1 and 2. The last is closed when it is ready.
 * The channel is two pipes and not a socket: through a socket, a guest could put descriptors into
 * its owner's hands, and closing some of them takes as long as the guest likes. init, at the other end of
 * the line, belongs to this box alone. */
#define BOX_CHANNEL_OUT_FD 3
#define BOX_CHANNEL_IN_FD 4
#define BOX_INIT_FD 5
#define BOX_SETUP_FD 6

/* Numbers of processes that wait (see zygote/keep.c), which no guest can signal: one rule of the filter
 * covers them. Below 300 the kernel gives out no number by itself once it has been beyond; init sees to it
 * that the guest's begin there. */
#define BOX_WAITING_PID 128
#define BOX_WAITING_PIDS 128
#define BOX_GUEST_PID 300
#define BOX_WAITING_MAX CHECKPOINTS_MAX

/* The third argument of setns(), which the kernel does not look at, as a guest's filter wants it. */
#define BOX_BRANCH_WORD 0x62726e63u
/* A branch's namespaces lie inside those of the box that it comes from; Linux has 32 levels of them. */
#define BOX_DEPTH_MAX 24

/* How to make one box; plain data that travels from the keeper to both halves. */
struct box_plan {
    uint32_t environment; /* index: which skeleton */
    uint32_t slot;        /* which of the keeper's uids and device sets */
    uint64_t disk, files, memory, pids;
    uint32_t cpus_milli;
    bool has_cgroup; /* false: rlimits and init's watch stand in */
    bool attaches;   /* version 1: no process can be born in it, so both halves move themselves */
    bool own_ids;    /* false: the only uid we have is the user's own */
    bool awaited;    /* somebody waits for it: prepare nothing that can wait */
};

void box_plan_put(struct buf *b, const struct box_plan *p);
void box_plan_get(struct fields *f, struct box_plan *ret);

/* The namespaces that init is born into and the kernel process joins. Each makes its own cgroup
 * namespace, when it is in its cgroup. The user namespace is first: the others belong to it. The network
 * is last: it takes as long as all others together, so init makes it, and not the keeper. */
enum {
    BOX_NS_USER,
    BOX_NS_PID,
    BOX_NS_MNT,
    BOX_NS_IPC,
    BOX_NS_UTS,
    BOX_BORN_INTO,
    BOX_NS_NET = BOX_BORN_INTO,
    BOX_NAMESPACES
};

/* The ways into the box's cgroup, where it attaches (see cgroup_ways). The kernel lets a process write
 * itself in that has the uid of who opened them, the keeper's: so it is before a half changes its own. */
struct box_ways {
    const int *fds;
    unsigned n; /* 0: it was born there, or there is none */
};

/* init's half, in the new namespaces: from a copy of the keeper's view to a finished root. */
struct box_init {
    const struct box_plan *plan;
    const struct root_view *view;
    const struct filter *filter;
    struct box_ways ways; /* closed when it is attached */
    bool branch;          /* of another box, in whose root it is already */
    int network_fd;       /* set by its step: the namespace, for the kernel process */
    int cgroup_fd;        /* the same, for a branch's */
};
int box_init_enter(struct box_init *b, const char **ret_failed, struct err *e);

/* The kernel process's half, after its fork from the zygote and when init's half stands. The
 * descriptors become 1, 2, the channel's two, the line to init and BOX_SETUP_FD; everything else is closed.
 * Sealed can be, in its place, who will fork it: see zygote/between.h. */
struct box_kernel {
    const struct box_plan *plan;
    const struct filter *filter;
    const int *namespaces; /* BOX_NAMESPACES descriptors; the pid namespace is joined already */
    struct box_ways ways;
    int stdout_fd, stderr_fd, channel_out_fd, channel_in_fd, line_fd, setup_fd;
    uint64_t inherited; /* set when it attaches: the zygote's bytes, which no guest is to pay for */
};
/* First of all: what it does from here on is counted. Needs nothing of init's half. */
int box_kernel_attach(struct box_kernel *b, const char **ret_failed, struct err *e);
int box_kernel_seal(struct box_kernel *b, const char **ret_failed, struct err *e);
/* And at last, what is no other's to do. */
int box_kernel_begin(struct box_kernel *b, const char **ret_failed, struct err *e);
