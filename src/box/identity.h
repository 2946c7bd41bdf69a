/* identity: who a process is, and what it may not do any more. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Take the ids for good; capabilities stay until identity_drop. With `groups` the supplementary
 * groups are given up too (an ordinary user's namespace cannot). */
int identity_become(uid_t uid, gid_t gid, bool groups, struct err *e);

/* Files are opened and made as this user from now on; everything else stays. */
int identity_files_as(uid_t id, struct err *e);

/* Give up every capability, in every set, for this process and all that it will ever start. */
int identity_drop(struct err *e);
/* Every one but CAP_CHECKPOINT_RESTORE, over the box's own namespaces: init says which number the next
 * process gets. It opens nothing else to a process that starts none. */
int identity_drop_but_numbers(struct err *e);

/* Keep only what making boxes takes, over the keeper's own user namespace. */
int identity_keep_making(struct err *e);

/* Keep only CAP_SYS_ADMIN there, also over an exec: what entering a box takes. */
int identity_keep_entering(struct err *e);
