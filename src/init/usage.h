/* usage: what the processes of a box use, where no cgroup tells. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "init/points.h"

struct usage {
    uint64_t now, peak; /* bytes of memory, files in memory included */
    uint64_t cpu_us;    /* never goes down */
    uint64_t crowded;   /* how often as many threads were seen as there may be */
};

/* Is this one, by the number that we see, in a branch of this box? It has a number of its own there. */
bool usage_of_branch(const char *pid);

/* Bytes of its memory that are there, shared ones too; 0: it is gone. */
uint64_t usage_resident(const char *pid);

/* Look once, and update. `pids` is how many threads the user's processes may have in all; those that wait are
 * among them, as for the kernel. */
void usage_sample(struct usage *u, uint64_t pids, const struct points *waiting);
