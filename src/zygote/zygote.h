/* zygote: what the keeper gives to a zygote, when it starts one and with each request for a fork. */
#pragma once

#include "box/box.h"
#include "box/cgroup.h"

#define ZYGOTE_CONTROL_FD 3 /* messages of enum zygote_msg */
#define ZYGOTE_FILTER_FD 4  /* the seccomp filter's programs for guests, and for all of a box */

/* Descriptors of a ZYGOTE_MAKE, in order; SETUP_GO brings the network namespace. The last are the ways into the cgroup
 * (see cgroup_ways), as many as there are. A ZYGOTE_POST has the network namespace behind them. */
enum {
    ZYGOTE_FD_SETUP,
    ZYGOTE_FD_STDOUT,
    ZYGOTE_FD_STDERR,
    ZYGOTE_FD_CELL_OUT,
    ZYGOTE_FD_CELL_IN,
    ZYGOTE_FD_LINE,
    ZYGOTE_FD_NAMESPACES,
    ZYGOTE_FD_CGROUP = ZYGOTE_FD_NAMESPACES + BOX_BORN_INTO,
    ZYGOTE_FDS = ZYGOTE_FD_CGROUP + CGROUP_HIERARCHIES + 1,
};
