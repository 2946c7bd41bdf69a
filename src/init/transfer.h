/* transfer: uploads on their way into the workspace.
 *
 * The owner sends the contents through a pipe and init writes them, so that they are charged to the
 * box and not to the owner. A file appears under its name when it is whole, and not before.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "init/files.h"

#define TRANSFERS 16

struct transfer {
    uint32_t req;
    int pipe, file;
    uint64_t got, size;
    bool ended; /* the pipe has no more */
    char path[FILES_PATH];
};

struct transfers {
    struct transfer list[TRANSFERS];
    unsigned n;
};

/* `why` is NULL when the file stands. */
typedef void transfer_over(void *ctx, uint32_t req, const char *path, const struct err *why);

/* Takes *pipe over. */
int transfers_begin(struct transfers *t, uint32_t req, const char *path, int *pipe, struct err *e);
/* All has been sent: so many bytes; UINT64_MAX gives it up. */
void transfers_end(struct transfers *t, uint32_t req, uint64_t size);
/* Fill in what to wait for; the count. */
nfds_t transfers_poll(struct transfers *t, struct pollfd *fds);
/* Move what can be moved, and tell what is over. `fds` as filled in before, for the first `n`. */
void transfers_move(struct transfers *t, const struct pollfd *fds, nfds_t n, transfer_over *over,
                    void *ctx);
