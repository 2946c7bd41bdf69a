/* landlock: a second lock on the file system, put on the kernel process in its finished root. */
#pragma once

#include "base/err.h"

/* The version of Landlock that this kernel has; 0 where it has none. */
int landlock_abi(void);

/* Where a process may do what; NULL-terminated lists of paths. */
struct landlock_places {
    const char *const *read;  /* read and execute */
    const char *const *write; /* everything but device nodes */
};

/* Bind the calling thread to these places; it can also neither signal nor reach by abstract sockets what
 * is outside. Where the kernel has no Landlock this does nothing: mounts and ids hold alone then, and
 * `retort doctor` says so. */
int landlock_confine(const struct landlock_places *places, struct err *e);
