/* launch: what the keeper's program is told by whoever starts it. Private to src/keeper/.
 *
 *   owner ──spawn, LAUNCH──▶ retort-keeper ──clone3──▶ keeper
 *     ◀──────────BORN──────────────┘                     │
 *     ◀──────────────────────────STANDS──────────────────┘
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "box/cgroup.h"
#include "keeper/keeper.h"
#include "wire/msg.h"

/* Host uids that are a keeper's, where root starts it. */
#define LAUNCH_UIDS 65536u

#define SLOT_ZYGOTE 0 /* the device set that zygotes see; boxes start at 1 */

#define LAUNCH_FD 3 /* the program's only descriptor but for the usual three */

struct launch {
    struct keeper_options options;
    bool root;             /* real root started us */
    char runner[PATH_MAX]; /* the directory of boot.py */
    struct cgroup_ground cgroups;
    int uid_lock; /* root's: the range is ours while the keeper holds it; else -1 */
    uid_t uid_base;
    int device_sets; /* root's; else -1 */
};

/* Two for root, and two of each hierarchy. */
#define LAUNCH_FDS (2 + 2 * CGROUP_HIERARCHIES)

/* How many sets of devices there are. */
unsigned launch_slots(const struct keeper_options *o);

/* All of it as a message; -1: it is more than one can hold. The descriptors stay the caller's. */
int launch_put(const struct launch *l, struct buf *b, int fds[LAUNCH_FDS], unsigned *ret_n,
               struct err *e);
/* Take it over, with its descriptors. It is as trusted as our own arguments, and is there as long as we are. */
int launch_get(struct msg *m, struct launch *ret, struct err *e);
