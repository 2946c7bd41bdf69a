/* init: pid 1 of a box. */
#pragma once

#include "box/box.h"

/* Run as init for ever: the box's files on `files_fd`, the keeper on `setup_fd`. Called in a fork of
 * the keeper, in fresh namespaces, when its ids are mapped. */
_Noreturn void init_run(struct box_init *b, int setup_fd, int files_fd);
