/* reply: a model's message while it comes in.
 *
 * Protocols feed it (reply_text, reply_call, …), whoever looks on hears text and code at once, and
 * reply_finish says whether it is whole. Only a whole reply has calls that may be run: one that broke off is
 * thrown away and asked for again, so that no cell can run twice.
 *
 * Bounds: REPLY_BYTES of text and arguments together, REPLY_CALLS calls. More is an error.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define REPLY_BYTES (4u << 20)
#define REPLY_CALLS 64u

struct reply_view {
    void (*text)(void *ctx, const char *text, size_t len);
    /* More of the code of the call with this number; out of JSON already, and whole characters. */
    void (*code)(void *ctx, unsigned call, const char *text, size_t len);
    void *ctx;
};

struct reply_call {
    char *id; /* made up where the server gives none */
    char *name;
    struct buf arguments; /* JSON, in pieces until it is whole */
    size_t shown;         /* bytes of the code that the view has had */
};

struct reply {
    const struct reply_view *view; /* NULL: nobody */
    struct buf text;
    struct reply_call calls[REPLY_CALLS];
    unsigned n_calls;
    json_t *raw;  /* what the provider wants back as it was; NULL: nothing */
    bool over;    /* its end was said */
    bool cut;     /* … because it became too long */
    bool refused; /* … because the provider's filter, or the model, does not want to */
    uint64_t tokens_in, tokens_out;
};

void reply_init(struct reply *r, const struct reply_view *view);
void reply_done(struct reply *r);

/* ---- for protocols; -1: a bound ---- */
int reply_text(struct reply *r, const char *text, size_t len, struct err *e);
/* The call with this number begins (numbers are the provider's, and may be told in any order). */
int reply_call(struct reply *r, unsigned number, const char *id, const char *name, struct err *e);
/* More of its arguments. */
int reply_arguments(struct reply *r, unsigned number, const char *text, size_t len, struct err *e);

/* ---- when no more comes ---- */

/* -1: it is not whole, or empty. */
int reply_finish(struct reply *r, struct err *e);
/* Make calls of the fenced blocks of Python in its text: for a model without tools. */
void reply_take_blocks(struct reply *r);
/* The message for the talk (talk.h). */
json_t *reply_message(const struct reply *r, const char *protocol);
/* The code that a call's arguments hold, in any of the shapes that models give it ({"code":"…"}, the text
 * alone, …). NULL with a sentence for the model where there is none. The caller's. */
char *call_code(const char *arguments, size_t len, struct err *e);
