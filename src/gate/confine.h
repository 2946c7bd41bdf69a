/* confine: the gate gives up what it does not need, before it reads its first foreign byte. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* Who the gate becomes when root starts it: this account, or one of retort's own where it is NULL and
 * there is no account "retort". */
int confine_user(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct err *e);
/* Become this user for good, in `dir`, where alone files can be made; no capability, no other program,
 * no system call that a server has no use for. The current directory is `dir` afterwards. NULL: no file can be made
 * or opened at all, and the current directory is the root. */
int confine_gate(const char *dir, uid_t uid, gid_t gid, struct err *e);
