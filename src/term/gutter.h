/* gutter: a guest's text as it streams, each line behind a prefix.
 *
 *     │ rows: 1200
 *     │ done
 *
 * Escape sequences are taken out, lines that are too long go on behind another prefix, and a line that is written over
 * (a progress bar) is written over here too, where the terminal can.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "session/sanitise.h"
#include "term/term.h"

struct gutter {
    const char *prefix;
    unsigned style; /* of the text */
    unsigned column;
    bool midline;  /* a line has begun */
    bool returned; /* a return has come, and it is not known yet whether a newline follows */
    bool styled;
    struct sanitiser sanitiser;
};

void gutter_init(struct gutter *g, const char *prefix);
/* Add valid UTF-8. */
void gutter_feed(struct gutter *g, const struct term *t, unsigned style, const char *text,
                 size_t len, struct buf *out);
/* Go to the beginning of a line, and forget what was not finished. */
void gutter_end(struct gutter *g, const struct term *t, struct buf *out);
