/* guest: one session as a verb holds it: opened, given a cell, waited for, closed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "cli/owner.h"
#include "session/session.h"

/* Who looks on while a cell runs. */
struct guest_view {
    void (*text)(void *ctx, enum output_kind kind, const char *text, size_t len);
    void (*display)(void *ctx, const struct output *o);
    void *ctx;
};

struct guest {
    struct owner *owner;
    const struct guest_view *view; /* NULL: nobody */
    struct session *session;       /* NULL: closed */
    struct cell *cell;             /* the finished one, until it is taken */
    bool opened, failed;
    struct err err; /* why it failed */
};

/* Start a session and wait until its box stands. 0; a set of enum turn that said to stop; or -1. */
int guest_open(struct guest *g, struct owner *o, const struct limits *limits,
               const struct guest_view *view, struct err *e);
/* Also right for one that was never opened. A cell that was not taken is freed. */
void guest_close(struct guest *g);

/* Give it a cell; it is finished when g->cell is there. timeout_ms 0 takes the session's limit. */
int guest_start(struct guest *g, const char *code, size_t len, uint64_t timeout_ms, struct err *e);

/* Give it a cell and wait, without a view: for our own questions. -1 where it came to nothing, or a
 * signal said to stop. The cell is the caller's. */
int guest_ask(struct guest *g, const char *code, struct cell **ret, struct err *e);

struct cell *guest_take(struct guest *g);
