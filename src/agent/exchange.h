/* exchange: one question to a model and its whole reply, whatever the way there does.
 *
 * Where the connection fails, the server is busy (429, 5xx, overloaded) or the stream breaks off, it is asked
 * again after a while that grows, or that Retry-After says, EXCHANGE_TRIES times in all. A reply that is not
 * whole is thrown away; nothing of it was run.
 *
 * A server that cannot have tools, or pictures, or streams, says so only when it is asked: then the model is
 * one without from now on (m->tools, m->sees, m->streams), and it is asked again.
 *
 * What a server says of itself in an error is hostile: it is cut, made harmless for a terminal, and the key
 * is taken out of it.
 */
#pragma once

#include "agent/model.h"
#include "agent/protocol.h"
#include "agent/reply.h"
#include "base/err.h"
#include "guest/client.h"
#include "guest/owner.h"

#define EXCHANGE_TRIES 5
#define EXCHANGE_WAIT_MAX_S 60 /* a server that wants more is not waited for */

struct exchange_view {
    struct reply_view reply;
    /* What came so far is void, and why; it is asked again in so many seconds. The request is read anew then,
     * so that it may be changed here: where m->tools has become false, the model has to hear how it is to
     * write its code. May be NULL, as may: */
    void (*again)(void *ctx, const char *why, unsigned seconds);
    /* On each TURN_TICK (owner.h), while it is waited for. */
    void (*tick)(void *ctx);
    void *ctx;
};

/* A client for this model's server. */
struct client *model_client(const struct model *m, struct err *e);
/* A call of it, with the headers of its protocol, the key among them; spec->headers is not the caller's. */
struct call *exchange_call(struct client *c, const struct model *m, const struct call_spec *spec);

/* The owner listens to `c` meanwhile. r->stream is not asked: m->streams says it.
 * 0: `ret` is whole, and reply_done is the caller's, and so is reply_take_blocks where m->tools is false. A set
 * of enum turn that said to stop; or -1. deadline_ms (clock_now_ms; 0: none) ends it with ETIMEDOUT. */
int exchange(struct owner *o, struct client *c, struct model *m, const struct request *r,
             const struct exchange_view *view, int64_t deadline_ms, struct reply *ret,
             struct err *e);
