/* sanitise: a guest's text made harmless for a terminal, or for whoever reads it as text.
 *
 * A terminal obeys what it is shown: titles, the clipboard, what it types back, colours that hide
 * text. Here the control characters and escape sequences of a guest are taken out; what programs
 * rightly use for plain text stays: newline, tab, return, backspace, and colours (SGR), which the
 * reader of a cell resets at its end. Sequences may come in pieces, so there is a state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct sanitiser {
    enum {
        TEXT_PLAIN,
        TEXT_ESCAPE,
        TEXT_CSI,
        TEXT_STRING,
        TEXT_STRING_ESCAPE,
        TEXT_STRING_C2,
        TEXT_C2
    } state;
    char csi[24]; /* a colour that may still turn out to be one */
    size_t csi_len;
    bool coloured;   /* a colour is on */
    bool no_colours; /* none is kept */
};

/* Append the harmless part of `text` to *out. The text is UTF-8. */
void sanitise(struct sanitiser *s, const char *text, size_t len, struct buf *out);

/* Switch colours off where they are on, and forget a sequence that was never finished. */
void sanitise_end(struct sanitiser *s, struct buf *out);

/* A name for one line of a message: every control character and every broken byte becomes '?', and it
 * is cut at `size`. Returns ret. */
char *sanitise_name(const char *name, char *ret, size_t size);
