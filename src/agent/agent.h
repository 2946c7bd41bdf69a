/* agent: a model writes, retort runs, the model sees, until it is answered.
 *
 *            ┌────────────────────────────────────────────────────────────┐
 *            ▼                                                            │
 *     ask the model ──▶ a whole reply ──▶ no calls: that is the answer    │
 *                            │                                            │
 *                            └─▶ each call: run the cell ─▶ its summary ──┘
 *                                              └ it failed: go back to the state before it
 *
 * Runs in the process of whoever asked, over a guest (guest/guest.h), which may be in a box here or on a server.
 * What a box says is data for the model, never ours: it is bounded, cleaned and put between marks that nobody can
 * guess. The model has one tool, which is this guest; the key stays in this process.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/model.h"
#include "base/err.h"
#include "guest/guest.h"
#include "guest/owner.h"

/* Who looks on. All are called from agent_answer, on its thread; what comes from a box or a model is hostile
 * to a terminal. */
struct agent_view {
    /* The model is asked. */
    void (*asking)(void *ctx);
    /* What it says, and the code of the cell with this number in its reply, as they come. */
    void (*text)(void *ctx, const char *text, size_t len);
    void (*code)(void *ctx, unsigned call, const char *text, size_t len);
    /* Its reply broke off: what was shown since `asking` is void. It is asked again in so many seconds. */
    void (*again)(void *ctx, const char *why, unsigned seconds);
    /* Its reply is whole. */
    void (*replied)(void *ctx);
    /* A cell runs; its code was shown in pieces before. */
    void (*running)(void *ctx, const char *code);
    void (*output)(void *ctx, enum output_kind kind, const char *text, size_t len);
    void (*display)(void *ctx, const struct output *o);
    /* It has run; `undone`: the session is again what it was before it. */
    void (*ran)(void *ctx, const struct cell *c, bool undone);
    /* A sentence of ours. */
    void (*note)(void *ctx, const char *sentence);
    /* Some ten times a second while anything is waited for: for a line that shows how long. */
    void (*tick)(void *ctx);
    void *ctx;
};

struct agent_bounds {
    unsigned attempts; /* cells that fail in a row */
    unsigned cells;    /* for one question; 0: none */
    uint64_t wall_ms;  /* for one question; 0: none */
    uint64_t tokens;   /* in and out, for one question; 0: none */
    double cost;       /* for one question, in the unit of the prices; 0: none */
};

enum agent_end {
    AGENT_ANSWERED,
    AGENT_BOUND,   /* one of the bounds; `why` says which */
    AGENT_STOPPED, /* Ctrl-C */
    AGENT_REFUSED, /* the model does not want to */
};

struct agent_answer {
    enum agent_end end;
    char *text; /* the answer, or what there is; never NULL, Markdown */
    char *why;  /* it is not an answer; else NULL */
    unsigned cells, failed;
    uint64_t wall_ms, tokens_in, tokens_out;
    double cost;
};
void agent_answer_done(struct agent_answer *a);
