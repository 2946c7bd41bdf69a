/* cgroup: memory, processes and CPU of everything in a box together, on version 1 and version 2.
 *
 * The ground is a directory of our own (…/retort/ID) below which every box gets one. It is made with
 * the rights of whoever starts retort, given to the keeper's uid, and used by the keeper from then
 * on without any right of root.
 *
 *   version 2   retort/ID/keeper        the keeper and its zygotes
 *               retort/ID/box-N         init and everything after it
 *   version 1   the same box-N in the memory, pids, cpu and cpuacct hierarchies
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/limits.h"

#define CGROUP_HIERARCHIES 4
#define CGROUP_METERS 4

/* In the order in which a process is attached. The share of cores comes last: a process that has to wait
 * for its share while it holds the kernel's lock for cgroups makes everybody wait. */
enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPUACCT, CGROUP_CPU };

struct cgroup_ground {
    int version;                  /* 0: there are no cgroups for us */
    int dirs[CGROUP_HIERARCHIES]; /* our directory in each; version 2 has the first only */
    unsigned n_dirs;
    int has[CGROUP_HIERARCHIES];     /* version 1: which of them has this controller; -1: none */
    int parents[CGROUP_HIERARCHIES]; /* where it lies, to remove it again */
    char name[64];
    bool shared_parent; /* …/retort was made for us: removed when it is empty */
    bool stepped_aside; /* version 2: the starter is in a leaf, and goes back at the end */
};

/* Find what the host has and make our ground for the keeper's uid. Where cgroups cannot be had,
 * version is 0 and *e says why: that is not a failure. */
void cgroup_ground_make(uid_t owner, struct cgroup_ground *ret, struct err *e);
/* Move a process (the keeper, by the pid its starter sees) into the ground, where that is needed. */
int cgroup_ground_enter(const struct cgroup_ground *g, pid_t pid, struct err *e);
/* Remove it with all that is empty in it. */
void cgroup_ground_remove(struct cgroup_ground *g);
void cgroup_ground_close(struct cgroup_ground *g);

int cgroup_make(const struct cgroup_ground *g, unsigned box, const struct limits *l, struct err *e);
int cgroup_limit(const struct cgroup_ground *g, unsigned box, const struct limits *l,
                 struct err *e);
/* The ways in, for both halves of a box. Version 2: the directory, for CLONE_INTO_CGROUP. Version 1:
 * "tasks" of each hierarchy: a thread that moves itself takes no lock of the whole machine's, while
 * cgroup.procs, or another's pid, waits for all processors, some 10 ms when they idle. The count, or -1. */
int cgroup_ways(const struct cgroup_ground *g, unsigned box, int ret[CGROUP_HIERARCHIES],
                struct err *e);
/* Version 1: ways that a process with the caller's own uid may use, where cgroup_open_to_all was called before. */
int cgroup_open_to_all(const struct cgroup_ground *g, unsigned box, bool open, struct err *e);
/* Version 2: move a process of a box, by the number that we see. */
int cgroup_move(const struct cgroup_ground *g, unsigned box, pid_t pid, struct err *e);
/* Descriptors that tell what the box used (see proto.h), for its owner. The count, or -1. */
int cgroup_meters(const struct cgroup_ground *g, unsigned box, int ret[CGROUP_METERS],
                  struct err *e);
/* Another number of processes, besides init. */
int cgroup_limit_pids(const struct cgroup_ground *g, unsigned box, uint64_t pids, struct err *e);
/* init, by the number that we see, and those that wait, by the numbers that it sees. */
struct cgroup_spared {
    pid_t init;
    const pid_t *waiting;
    unsigned n_waiting;
};
/* End every other process in it; until cgroup_limit_pids nothing new can be started there. */
void cgroup_end_others(const struct cgroup_ground *g, unsigned box,
                       const struct cgroup_spared *spared);
/* Remove an empty one. EBUSY while a process is still dying in it. */
int cgroup_remove(const struct cgroup_ground *g, unsigned box, struct err *e);
