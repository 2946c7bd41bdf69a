/* exchange: one question to a model and its whole reply, whatever the way there does.
 *
 * Where the connection fails, the server is busy (429, 5xx, overloaded) or the stream breaks off, it is asked
 * again after a while that grows, or that Retry-After says, EXCHANGE_TRIES times in all. A reply that is not
 * whole is thrown away; nothing of it was run.
 *
 * A server that cannot have tools, or pictures, says so only when it is asked: then the model is one without
 * from now on (m->tools, m->sees), and it is asked again.
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
    /* What came so far is void, and why; it is asked again in so many seconds. */
    void (*again)(void *ctx, const char *why, unsigned seconds);
    /* From time to time, while it is waited for. */
    void (*tick)(void *ctx);
    void *ctx;
};

/* 0: `ret` is whole, and reply_done is the caller's. A set of enum turn that said to stop; or -1.
 * deadline_ms (clock_now_ms; 0: none) ends it with ETIMEDOUT. */
int exchange(struct owner *o, struct client *c, struct model *m, const struct request *r,
             const struct exchange_view *view, int64_t deadline_ms, struct reply *ret,
             struct err *e);
