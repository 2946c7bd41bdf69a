/* mounts: what is mounted in this process's mount namespace. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* Is anything mounted below this directory, at whatever depth? `top` without links and without a slash at its
 * end. */
int mounts_below(const char *top, bool *ret, struct err *e);
