/* inside: what the two files that are init's own loop share; nobody else includes it.
 *
 *     init.c      going in, the loop, processes, branches: what the keeper asks
 *     requests.c  what the session's owner asks
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "box/box.h"
#include "init/changes.h"
#include "init/points.h"
#include "init/transfer.h"
#include "init/usage.h"

/* A branch that is wanted of a state that is about to be kept. */
struct lend {
    uint32_t box, n;
    bool present; /* with the files of now */
    int to;       /* where they go */
    int64_t until_ms;
};
#define LENDS 64

struct init {
    int setup, files;
    const struct box_plan *plan;
    struct changes changes;
    struct transfers transfers;
    struct usage usage;
    struct points points;
    uint32_t restore_req;
    struct buf missing; /* that going back could not bring back, a line each */
    bool told_short;    /* the keeper knows that memory ran out */
    struct lend lends[LENDS];
    unsigned n_lends;
};

/* ---- init.c ---- */
void init_reap(struct init *in);
/* What a cell has started does not outlive the interpreter. Where there is a cgroup the keeper sees to it. */
void init_end_guests(struct init *in);

/* ---- requests.c ---- */
/* The owner has something to say. */
void requests_serve(struct init *in);
/* Is somebody awake by now? */
void requests_tell_restored(struct init *in);
/* An upload is over; ctx is the struct init. */
void requests_transfer_over(void *ctx, uint32_t req, const char *path, const struct err *why);
