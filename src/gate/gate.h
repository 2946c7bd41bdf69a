/* gate: the server. The process that listens, parses everything foreign, and knows sessions and who may
 * use them. It has no right besides its sockets, its state directory and the socket to its keeper.
 */
#pragma once

#include "base/err.h"
#include "gate/config.h"
#include "session/session.h"

/* A file that every new session begins with. */
struct gate_file {
    char *name; /* in the workspace */
    int fd;     /* read from its beginning; stays the caller's */
};

struct gate_start {
    const struct config *config;
    struct vessel *vessel; /* stays the caller's */
    int listen_fd;         /* taken over; -1: no HTTP, but MCP on standard input and output: */
    int in_fd, out_fd;
    const struct gate_file *files;
    unsigned n_files;
    int asker_fd;                              /* to the asker, taken over; -1: there is none */
    const char *environments[CONFIG_LIST + 1]; /* names, in the keeper's order */
    void (*ready)(void *ctx);                  /* requests are answered from now on; or NULL */
    void *ctx;
};

/* Serve until SIGTERM, SIGINT or the keeper's end; without HTTP also until the other side of standard input and
 * output leaves. The current directory is that of the state; without HTTP there is none. -1: it failed. */
int gate_serve(const struct gate_start *start, struct err *e);
