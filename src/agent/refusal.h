/* refusal: what a model's server says when it does not answer, and what is to be made of it.
 *
 * Its words are hostile: they are cut, put on one line, made harmless for a terminal, and the key is taken out
 * of them, which a server may repeat.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/model.h"
#include "base/err.h"
#include "guest/client.h"

#define REFUSAL_WORDS 240

struct refusal {
    unsigned status; /* of HTTP */
    char words[REFUSAL_WORDS];
    bool worth_a_try; /* in a while: */
    unsigned wait_s;  /* as the server wants it; 0: it does not say */
};

/* Of a call whose status is another than 200. */
void refusal_read(struct refusal *ret, const struct model *m, struct call *call);
/* For a person: what it means, and what to do about it. */
void refusal_explain(const struct refusal *r, const struct model *m, struct err *e);

/* Does it say that it cannot have tools, or pictures, or streams, which it was given? Then the model is one
 * without from now on, and `e` says so. */
bool refusal_is_lack(const struct refusal *r, struct model *m, const json_t *talk, struct err *e);

/* Any text in which a server may have had a say. Returns ret. */
char *refusal_clean(const struct model *m, const char *said, char *ret, size_t size);
