/* state_dir: where the server keeps what outlives it. The server and `retort token` must mean the same
 * directory, and it may be nobody's but its owner's.
 *
 *     root            /var/lib/retort; the server gives it to the uid that it becomes
 *     anybody else    $XDG_STATE_HOME/retort, or ~/.local/state/retort
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* The directory: `given`, or the default where that is NULL. With `make`, it is made for us alone (0700)
 * with what is missing above it. One that others may write to is refused: they could put a database of
 * theirs in it, with tokens that they know. Where it is missing the error's code is ENOENT. The caller
 * frees *ret. */
int state_dir(const char *given, bool make, char **ret, struct err *e);

/* Make it the current directory; root becomes its owner for good, because the files in it are in the
 * hands of a process without rights, and root would follow a link that it left there. */
int state_dir_enter(const char *dir, struct err *e);

/* Root gives it and the database in it to this user. What `retort token` made before the first start of
 * the server is root's. */
int state_dir_give(const char *dir, uid_t uid, gid_t gid, struct err *e);
