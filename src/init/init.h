/* init: pid 1 of a box. */
#pragma once

#include "box/box.h"

/* To the keeper, to the session's owner, to the kernel process. */
struct init_ends {
    int setup, files, line;
};

/* Run as init for ever. Called in a fork of the keeper, in fresh namespaces. */
_Noreturn void init_run(struct box_init *b, const struct init_ends *ends);
