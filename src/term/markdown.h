/* markdown: Markdown for a terminal.
 *
 * CommonMark and the tables of GitHub, by md4c. HTML is shown as text. The address of a link is always shown, and
 * never made into a link of the terminal's, which could lead elsewhere than it seems. Whatever the text is, what comes
 * out are characters that can be shown, newlines, and colours that are ours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "term/rich.h"

struct paper {
    unsigned columns;
    bool colours;
};

/* Blocks with an empty line between them, and none at either end. */
void markdown_render(const struct paper *p, const char *text, size_t len, struct buf *out);

/* ---- a text that comes in pieces ---- */

/* Its blocks are handed on when they are whole: when the text behind them cannot change what they are. */
struct flow {
    struct buf pending; /* what is not whole yet; escape sequences are taken out of it already */
    size_t seen;        /* of it, in whole lines */
    char fence;         /* we are in a block of code: its character, */
    size_t fence_len;   /* how many there are, */
    bool list;          /* the block is a list: it goes on where a block would end */
    bool blank;         /* the last line was empty */
};

/* Add a piece; where blocks have become whole, they are taken out into *whole, which may stay empty. */
void flow_feed(struct flow *f, const char *text, size_t len, struct buf *whole);
/* The rest, however it ends. */
void flow_end(struct flow *f, struct buf *whole);
void flow_done(struct flow *f);

/* The same text with dashes added to the rules of tables: md4c takes those of one or two for none. */
void flow_widen(const char *text, size_t len, struct buf *out);
