/* highlight: Python in colours, line by line as lines become whole.
 *
 * Code comes in any pieces and what comes out does not depend on them. It is read as an editor reads it: words,
 * strings, numbers and comments, no grammar; whatever is not Python comes out as it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "term/rich.h"

struct highlight {
    void (*line)(void *ctx, const struct rich *line); /* without its newline */
    void *ctx;
    struct buf pending; /* the line that is not whole yet */
    char quote;         /* a string goes on in the next line: which it is */
    bool triple;
    bool foreign; /* a cell magic has begun: the rest is another language */
    bool later;   /* a line has been */
};

void highlight_init(struct highlight *h, void (*line)(void *ctx, const struct rich *line),
                    void *ctx);
void highlight_done(struct highlight *h);
void highlight_feed(struct highlight *h, const char *text, size_t len);
/* The last line, where it has no newline. From here on it is another piece of code. */
void highlight_end(struct highlight *h);
