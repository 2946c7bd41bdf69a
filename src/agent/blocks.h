/* blocks: the fenced blocks of a Markdown text, as models write them.
 *
 * A fence is three or more backticks or tildes at the start of a line, however far it is indented (models put
 * blocks into lists); a block ends with a fence that is at least as long and of the same kind, or with the text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct block {
    size_t begin, end; /* in the text, fences included */
    const char *text;  /* what is within */
    size_t len;
    size_t indent; /* of its fence: so much is taken off each line */
    bool plain;    /* it says of no language what it is */
    bool python;
    bool closed;
};

/* The next one from *at on, which goes behind it. */
bool block_next(const char *text, size_t len, size_t *at, struct block *ret);
/* What is within, as a string; the caller's. A NUL in it is its end. */
char *block_code(const struct block *b);
/* Is it nothing but white space? */
bool blocks_blank(const char *text, size_t len);
