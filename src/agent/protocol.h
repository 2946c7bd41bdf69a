/* protocol: what is said to a model and how it is understood, for each of the four APIs.
 *
 *     protocol_chat.c        chat completions: OpenAI's older API, and everybody's who is compatible with it
 *     protocol_responses.c   OpenAI's Responses
 *     protocol_messages.c    Anthropic's Messages
 *     protocol_gemini.c      Google's generateContent
 *
 * Nothing here does I/O: a request is a JSON body, and an answer comes as server-sent events or as one
 * body. What a server sends is hostile: every member may be missing or of another type, and reply.h bounds
 * what is kept of it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/model.h"
#include "agent/reply.h"
#include "base/buf.h"
#include "base/err.h"

/* Of one event, or of one body: in memory each takes many times the byte that it may have in JSON. */
#define PROTOCOL_VALUES_MAX 100000u

struct request {
    const char *system;
    const json_t *talk;
    bool stream;
};

struct protocol {
    const char *name;    /* "chat", "responses", "messages", "gemini" */
    const char *version; /* of it, as the last part of a base URL: "/v1" */
    /* From the base URL on: "/chat/completions", "/responses" and "/messages" behind one that ends in "/v1",
     * "/models/NAME:generateContent" behind one that ends in "/v1beta". */
    void (*path)(const struct model *m, bool stream, struct buf *ret);
    /* The header with the key, without a newline, and others that it wants, each by `add`. */
    void (*headers)(const struct model *m, void (*add)(void *ctx, const char *line), void *ctx);
    json_t *(*body)(const struct model *m, const struct request *r);
    /* One event. -1: the server said that it failed, or nothing can be made of it. */
    int (*event)(struct reply *r, const char *name, const char *data, size_t len, struct err *e);
    /* An answer that came in one piece. */
    int (*whole)(struct reply *r, const json_t *body, struct err *e);
};

extern const struct protocol protocol_chat, protocol_responses, protocol_messages, protocol_gemini;
/* NULL: there is none of that name. */
const struct protocol *protocol_find(const char *name);

/* The message of an error body in any of their shapes, or NULL. */
const char *protocol_error(const json_t *body);
