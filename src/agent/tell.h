/* tell: a conversation as it is said to a model, for whichever protocol.
 *
 * The protocols differ in how a message looks. What they have in common is decided here: that every call has its
 * result right behind it, which pictures are sent, what a model without tools gets instead of calls and results, and
 * what of another model's own (raw) is left out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/model.h"

#define TELL_PICTURES                                                                              \
    8 /* the latest: each costs as much as a page of text, again with each question */

struct told_result {
    const char *id, *name; /* of the call */
    char *text;
    bool failed;
    json_t *pictures; /* as in talk.h; NULL: none */
};

/* Each adds to `to`, the messages of the request. */
struct teller {
    /* Pictures may be NULL. */
    void (*user)(json_t *to, const char *text, const json_t *pictures);
    /* What the model said. calls: as in talk.h; or NULL. raw: the
     * content of what this protocol kept of it, or NULL. */
    void (*said)(json_t *to, const struct model *m, const char *text, const json_t *calls,
                 const json_t *raw);
    /* One for each call, in their order. */
    void (*results)(json_t *to, const struct told_result *results, size_t n, const json_t *raw);
};

/* The messages of a talk, as an array. */
json_t *tell(const struct model *m, const json_t *talk, const struct teller *teller);

/* "data:image/png;base64,…" */
json_t *tell_data_url(const json_t *picture);
/* The arguments of a call as an object, whatever the model wrote. New. */
json_t *tell_arguments(const char *text);
/* Add parts to the last message where that has the same role, else as a new one; `member` has the parts. Takes them
 * over. For providers that want roles to alternate. */
void tell_push(json_t *to, const char *role, const char *member, json_t *parts);
/* A short id that every provider takes, always the same for the same: another's may be too long, or have signs that are
 * refused. `ret` has TELL_ID bytes. Returns what is to be sent: `id` itself where that is good. */
#define TELL_ID 32
const char *tell_id(const char *id, char *ret);
