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
    /* It has run. */
    void (*ran)(void *ctx, const struct cell *c);
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

struct agent;

struct agent_options {
    struct owner *owner;
    struct guest *guest;   /* open, with its files in it */
    struct client *client; /* for the model's server */
    struct model *model;
    const struct agent_view *view;
    struct agent_bounds bounds;
    bool clean_retries; /* a cell that fails is undone */
    unsigned summary;   /* bytes of a cell that the model gets */
    char *environment;  /* a paragraph, taken over; or NULL */
    /* Each message as it is added, for a transcript, and each cell when it has run, for whoever keeps it; may be
     * NULL. */
    void (*added)(void *ctx, const json_t *message);
    void (*ran)(void *ctx, const struct cell *c);
    void *ctx;
};

/* The defaults of the bounds. */
void agent_bounds_default(struct agent_bounds *b);

struct agent *agent_new(const struct agent_options *o);
void agent_free(struct agent *a);

/* Files have come since: the next question tells the model what there is. */
void agent_look_again(struct agent *a);

/* Go on from an earlier conversation (talk.h), checked here. Before the first question. */
int agent_resume(struct agent *a, const json_t *talk, struct err *e);
/* Does the last question have no answer yet? Then agent_answer with NULL goes on with it. */
bool agent_is_asked(const struct agent *a);

/* One question, until it is answered or something ends it: 0, and `ret` says how. -1: the model or the box cannot be
 * reached. The conversation can go on after both. A set of enum turn (TURN_STOP, TURN_CLOSED): leave. */
int agent_answer(struct agent *a, const char *question, struct agent_answer *ret, struct err *e);
