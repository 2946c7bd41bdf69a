/* prompt: what a model is told before the first question. Its text is in prompt.md, with the places that are filled
 * here.
 *
 * What comes from files is data of whoever made them: it is cleaned, bounded, and put between marks (see
 * prompt_add_data) that its author could not know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "guest/guest.h"

/* Add text between two lines with an id that nobody could guess before: whatever is in it, it cannot end its
 * block. Escapes and control characters are taken out, and the words by which templates tell who speaks are broken. */
void prompt_add_data(struct buf *b, const char *text, size_t len);

struct prompt {
    char *environment; /* the paragraph about what is in the box */
    struct buf files;  /* the lines about the workspace */
    bool retries;      /* a cell that fails is undone */
};

/* Look into a workspace: names, sizes and the first lines of what is text. 0; a set of enum turn that said to
 * stop; or -1. */
int prompt_look(struct prompt *p, struct guest *g, struct err *e);
void prompt_done(struct prompt *p);

/* The whole text. `tools`: the model has the tool; else it writes blocks. The caller's. */
char *prompt_text(struct prompt *p, const struct limits *limits, bool tools);
