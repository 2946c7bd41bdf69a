/* reply: a model's message while it comes in.
 *
 * Protocols feed it (reply_add_text, reply_add_call, …), whoever looks on hears text and code at once, and
 * reply_finish says whether it is whole. Only a whole reply has calls that may be run: one that broke off is
 * thrown away and asked for again, so that no cell can run twice.
 *
 * Bounds: REPLY_BYTES of text and arguments together, REPLY_CALLS calls, REPLY_RAW_BYTES of what is only kept to be
 * sent back. More is an error.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/code_scan.h"
#include "base/buf.h"
#include "base/err.h"

#define REPLY_BYTES (4u << 20)
#define REPLY_RAW_BYTES (16u << 20)
#define REPLY_CALLS 64u

struct reply_view {
    void (*text)(void *ctx, const char *text, size_t len);
    /* More of the code of the call with this number; out of JSON already, and whole characters. */
    void (*code)(void *ctx, unsigned call, const char *text, size_t len);
    void *ctx;
};

struct reply_call {
    char *id;   /* made up where the server gives none */
    char *name; /* letters, digits, "_" and "-" */
    unsigned number;
    struct buf arguments; /* JSON, in pieces until it is whole */
    struct code_scan scan;
    size_t shown; /* bytes of the code that the view has had */
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
    size_t bytes, raw_bytes; /* against the bounds */
    /* What a protocol keeps from one event to the next: */
    json_t *part; /* a part of the message that is not whole yet, */
    unsigned part_number;
    struct buf part_text;
    size_t part_from; /* where in `text` it begins */
    unsigned half;    /* half a character: see protocol_inside.h */
};

void reply_init(struct reply *r, const struct reply_view *view);
void reply_done(struct reply *r);

/* ---- for protocols; text is UTF-8; -1: a bound ---- */
int reply_add_text(struct reply *r, const char *text, size_t len, struct err *e);
/* A call begins, and has this number from now on (numbers are the provider's, and may be told in any order). id and
 * name may be NULL. */
int reply_add_call(struct reply *r, unsigned number, const char *id, const char *name,
                   struct err *e);
/* The latest call with this number, or NULL. */
struct reply_call *reply_find_call(struct reply *r, unsigned number);
/* More of its arguments. A number that no call has is an error. */
int reply_add_arguments(struct reply *r, unsigned number, const char *text, size_t len,
                        struct err *e);
/* So many bytes are about to be kept as raw. */
int reply_count_raw(struct reply *r, size_t bytes, struct err *e);

/* ---- when no more comes ---- */

/* -1: it is not whole, or says nothing and is neither cut nor refused. The code that the view has not had yet is
 * told to it now. */
int reply_finish(struct reply *r, struct err *e);
/* Make calls of the fenced blocks of Python in its text: for a model without tools. The last one need not be closed,
 * unless the reply was cut. */
void reply_take_blocks(struct reply *r);
/* The message for the talk (talk.h). */
json_t *reply_message(const struct reply *r, const char *protocol);
/* The code that a call's arguments hold, in any of the shapes that models give it ({"code":"…"}, the text
 * alone, …). NULL with a sentence for the model where there is none. The caller's. */
char *call_code(const char *arguments, size_t len, struct err *e);
