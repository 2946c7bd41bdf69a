/* copy: a small tree of files, copied into the keeper's view. */
#pragma once

#include "base/err.h"

/* Copy a file, a symbolic link or a directory with all that is in it. What is missing or may not be
 * read is left out, and what is over 64 MiB: the caller's list is a list of wishes. Bounded in
 * number. */
int copy_tree(const char *from, const char *to, struct err *e);
