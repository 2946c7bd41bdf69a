/* path: which paths can be those of a file in a workspace. Everybody who takes one asks here, so that one file has one
 * name; that a path cannot lead out of a directory is the kernel's to see to, where it is opened. */
#pragma once

#include <stddef.h>

#define PATH_LONGEST 4095
#define PATH_PART_LONGEST 255

enum path_fault {
    PATH_FINE = 0,
    PATH_EMPTY,
    PATH_LONG,
    PATH_NUL,
    PATH_EMPTY_PART, /* also a slash at either end */
    PATH_DOTS,       /* a part that is "." or ".." */
    PATH_LONG_PART,
};

enum path_fault path_check(const char *path, size_t len);
/* A sentence that says what a path must not be. */
const char *path_fault_text(enum path_fault fault);
