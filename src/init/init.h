/* init: pid 1 of a box. */
#pragma once

#include "box/box.h"

/* To the keeper, to the session's owner, to the kernel process. */
struct init_ends {
    int setup, files, line;
    /* A branch's, else -1: where its files come from, and which number the next process gets. */
    int handover, last_pid;
};

/* A branch's, before anybody else is in it: what guards its random state by its process number sees another one
 * than in the box that it comes from. */
void init_begin_numbers(int last_pid);
/* Run as init for ever. Called in a fork of the keeper, in fresh namespaces. */
_Noreturn void init_run(struct box_init *b, const struct init_ends *ends);
