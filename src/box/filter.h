/* filter: the system calls that a box may make.
 *
 * Compiled once by the keeper (libseccomp), loaded as plain BPF. Loading costs the kernel time by the
 * instruction, and filters are inherited: so the keeper puts the long programs on itself, once, and with
 * that on every zygote and box; they leave open what making a box takes. The short last one closes that,
 * and each process of a box loads it. What only init may do is closed to guests by one more, on the zygote.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>

#include "base/err.h"

/* What may be called at all; with which arguments not; what nobody needs any more in a box that is made;
 * what guests may not do.
 * The kernel runs all of them for every call and obeys the strictest. */
enum { FILTER_CALLS, FILTER_ARGUMENTS, FILTER_LAST, FILTER_GUEST, FILTER_PROGRAMS };

struct filter {
    struct sock_fprog programs[FILTER_PROGRAMS];
};

/* Compile it. Without a memory cgroup the ways to memory that belongs to no process (memfd, System V
 * segments) are closed too. */
int filter_compile(bool has_memory_cgroup, struct filter *ret, struct err *e);
void filter_done(struct filter *f);

/* All but the last, on the keeper and all that comes of it. */
int filter_load_first(const struct filter *f, struct err *e);
/* The last, for good, on a process that has the others. no_new_privs must be set. */
int filter_load_last(const struct filter *f, struct err *e);
/* What guests may not do, on the zygote and all that comes of it. */
int filter_load_guest(const struct filter *f, struct err *e);
