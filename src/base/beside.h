/* beside: files that come with the program. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* In a build it is `in_build`, below a directory that the running program lies in, at whatever depth (tests and
 * benchmarks lie deeper); installed, it is `installed` in lib/retort. */
int beside_find(const char *in_build, const char *installed, char *ret, size_t size, struct err *e);
