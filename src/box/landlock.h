/* landlock: a second lock on the file system, put on the kernel process in its finished root. */
#pragma once

#include "base/err.h"

/* The version of Landlock that this kernel has; 0 where it has none. */
int landlock_abi(void);

/* Let the calling thread read and execute everything it sees, write only in the box's own places,
 * and neither signal nor reach by abstract sockets what is outside. Where the kernel has no Landlock
 * this does nothing: mounts and ids hold alone then, and `retort doctor` says so. */
int landlock_confine(struct err *e);
