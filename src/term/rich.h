/* rich: text with a style for each of its bytes.
 *
 * This is the one way for foreign text to the terminal: what is added is made harmless (no control character is left
 * in it but newlines), and what is written besides is colours that are ours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The colours are those of the sixteen that can be read on dark and on light ground. */
enum style {
    STYLE_BOLD = 1,
    STYLE_DIM = 2,
    STYLE_ITALIC = 4,
    STYLE_UNDERLINE = 8,
    STYLE_STRIKE = 16,
    STYLE_RED = 1 << 5,
    STYLE_GREEN = 2 << 5,
    STYLE_BLUE = 4 << 5,
    STYLE_MAGENTA = 5 << 5,
    STYLE_CYAN = 6 << 5,
};
#define STYLE_COLOUR(style) ((style) >> 5)

struct rich {
    struct buf text;  /* UTF-8 that can be shown, and newlines */
    struct buf style; /* a byte for each of its bytes */
    unsigned marks;   /* how many the last character has upon it */
};

void rich_done(struct rich *r);
#define cleanup_rich __attribute__((cleanup(rich_done)))
void rich_clear(struct rich *r);

void rich_add(struct rich *r, unsigned style, const char *text, size_t len);
void rich_add_text(struct rich *r, unsigned style, const char *text);

unsigned rich_width(const struct rich *r, size_t from, size_t to);
/* Cut a line that begins at `at` and takes at most `width` columns, between words where that is possible. *ret_end is
 * where it ends; returned is where the next begins: behind the text's end there is none. */
size_t rich_wrap(const struct rich *r, size_t at, unsigned width, size_t *ret_end);
/* The same without regard to words. */
size_t rich_chop(const struct rich *r, size_t at, unsigned width, size_t *ret_end);
/* Add a part of it to *out with its colours, which are off again behind it. */
void rich_write(const struct rich *r, size_t from, size_t to, bool colours, struct buf *out);
/* The same for a text of ours in one style. */
void rich_say(unsigned style, const char *text, bool colours, struct buf *out);
/* The sequence that switches to a style, from whatever it was. */
void rich_switch(unsigned style, struct buf *out);
