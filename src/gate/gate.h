/* gate: the server. The process that listens, parses everything foreign, and knows sessions and who may
 * use them. It has no right besides its sockets, its state directory and the socket to its keeper.
 */
#pragma once

#include "base/err.h"
#include "gate/config.h"
#include "session/session.h"

struct gate_start {
    const struct config *config;
    struct vessel *vessel;                     /* stays the caller's */
    int listen_fd;                             /* taken over */
    int asker_fd;                              /* to the asker, taken over; -1: there is none */
    const char *environments[CONFIG_LIST + 1]; /* names, in the keeper's order */
    void (*ready)(void *ctx);                  /* requests are answered from now on */
    void *ctx;
};

/* Serve until SIGTERM, SIGINT or the keeper's end. The current directory is that of the state. -1: it
 * failed. */
int gate_serve(const struct gate_start *start, struct err *e);
