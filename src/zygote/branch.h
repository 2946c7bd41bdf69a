/* branch: from one that waits to the kernel process of another box. See keeper/branches.c. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "wire/msg.h"

/* What one that waits may have of the guest's beside its memory. While it waits it comes to no more. */
struct belongings {
    bool files;  /* descriptors, beside a device at the first */
    bool shared; /* memory */
};

/* Fork into the box that the message's descriptors (enum branch_fd) are of. 0 in the new process, which then has
 * to call branch_join; else not. */
int branch_fork(const struct msg *m);
/* Be in that box in every respect, with no right over it, and with the shared memory for itself; add to `lost` what
 * does not come along. On the last word of the keeper's; leaves if it does not come. What the caller cannot `may` have
 * is not looked for. */
void branch_join(const struct msg *m, struct belongings may, struct buf *lost);
/* The box can be used. */
void branch_ready(const struct msg *m);
