/* handover: the files that a branch begins with, from the init of the box that it comes from to its own. */
#pragma once

#include "base/err.h"
#include "init/past.h"

/* Send all of it; waits for who receives. -1: not all of it could be. */
int handover_send(const struct past *p, int to, struct err *e);
/* Fill the workspace, which is empty. */
int handover_receive(int from, struct err *e);
