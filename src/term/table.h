/* table: cells in columns, with lines around them.
 *
 *     ┌────────┬───────┐
 *     │ city   │ sales │      A column of numbers is set to the right. A table that is wider than the terminal
 *     ├────────┼───────┤      gets narrower columns, in which texts take several lines.
 *     │ Lyon   │  12.5 │
 *     └────────┴───────┘
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "term/rich.h"

#define TABLE_COLUMNS 64u
#define TABLE_CELLS 20000u

enum table_align { ALIGN_UNSAID, ALIGN_LEFT, ALIGN_CENTRE, ALIGN_RIGHT };

struct table {
    unsigned columns;
    enum table_align align[TABLE_COLUMNS];
    struct rich *cells; /* row by row; the first is the head */
    unsigned n_cells, cap;
};

void table_done(struct table *t);
/* A cell that is filled by the caller. NULL: there are too many. */
struct rich *table_add(struct table *t);
/* Its lines, each handed on without a newline. It is the caller's word that every row is whole. false: no column is
 * left for the text within this width. */
bool table_write(struct table *t, unsigned width, bool colours,
                 void (*line)(void *ctx, const char *text, size_t len), void *ctx);
