/* beside: files that come with the program. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* In a build it is `in_build`, below a directory that the running program lies in, at whatever depth (tests and
 * benchmarks lie deeper); installed, it is `installed` in lib/retort. The nearest: beside an installed program nothing
 * is looked for further up, where somebody else may have put something. */
int beside_find(const char *in_build, const char *installed, char *ret, size_t size, struct err *e);
