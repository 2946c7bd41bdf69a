/* filter: the system calls that a box may make.
 *
 * Compiled once by the keeper (libseccomp), loaded as plain BPF by every process of a box.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>

#include "base/err.h"

/* Two programs: what may be called at all, and with which arguments not. The kernel runs both for
 * every call and obeys the stricter. */
enum { FILTER_CALLS, FILTER_ARGUMENTS, FILTER_PROGRAMS };

struct filter {
    struct sock_fprog programs[FILTER_PROGRAMS];
};

/* Compile it. Without a memory cgroup the ways to memory that belongs to no process (memfd, System V
 * segments) are closed too. */
int filter_compile(bool has_memory_cgroup, struct filter *ret, struct err *e);
void filter_done(struct filter *f);

/* Put it on the calling process, for good. no_new_privs must be set. */
int filter_load(const struct filter *f, struct err *e);
/* The same for the process that runs user code. */
int filter_load_guest(const struct filter *f, struct err *e);
