/* meter: what a box has used, read from descriptors of its cgroup's files (proto.h: meter_kind).
 *
 * The numbers are the kernel's, not the box's. A descriptor that cannot be read, because the cgroup
 * is gone with its box, leaves its number as it was.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"
#include "wire/proto.h"

struct meter {
    enum meter_kind kind;
    int fds[METER_FDS];
};

struct meter_reading {
    uint64_t cpu_us;
    uint64_t peak;         /* bytes, since the last meter_begin where the kernel can do that */
    uint64_t oom_kills;    /* since the box was made */
    uint64_t pids_refused; /* since the box was made */
};

/* Take the descriptors from `first` on out of the message. -1: the message does not have them. */
int meter_init(struct meter *m, unsigned kind, struct msg *from, unsigned first);
void meter_done(struct meter *m);

/* A cell begins: let the peak start anew. */
void meter_begin(struct meter *m);
/* Read the CPU time alone, or everything. */
void meter_read_cpu(const struct meter *m, struct meter_reading *r);
void meter_read(const struct meter *m, struct meter_reading *r);
