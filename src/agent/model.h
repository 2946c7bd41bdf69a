/* model: which model is asked, where, and what it can do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct protocol;

struct model {
    const struct protocol *protocol;
    char *provider; /* "anthropic", "openai", "gemini", "ollama", …: for people */
    char *name;     /* as the provider calls it */
    char *base;     /* URL, without a slash at its end */
    char *key;      /* or NULL. Goes nowhere but into the request's header */
    bool tools;     /* false: its code is in fenced blocks */
    bool sees;      /* pictures are sent to it */
    bool streams;
    unsigned max_tokens;        /* of one reply; 0: as the provider has it */
    double price_in, price_out; /* for a million tokens; 0: not known */
};

void model_done(struct model *m);

/* "anthropic/claude-…", for people. */
char *model_title(const struct model *m);
