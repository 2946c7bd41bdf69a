/* picture: a PNG or JPEG as the terminal draws it.
 *
 * Pictures come from boxes, and decoders of pictures have a history. So neither decoder nor drawer is in this process,
 * which has the model's key and all rights of the user: they are a program of their own (src/draw), with nothing but
 * the picture on its stdin and a pipe, and what it writes is believed only after it was checked (drawn_check).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "term/term.h"

#define PICTURE_BYTES_MAX (32u << 20)
#define PICTURE_DRAWN_MAX (4u << 20)

/* Add what draws it to *out, in at most so many columns and rows. Of PICTURES_BLOCKS it is lines, each behind
 * `prefix`, which is ours; else one sequence behind one prefix. It ends in a newline. -1: there is nothing to see, and
 * nothing was added. Takes some tens of milliseconds, and never more than a few seconds. */
int picture_draw(const struct term *t, unsigned columns, unsigned rows, const char *prefix,
                 const void *data, size_t len, struct buf *out, struct err *e);

/* Does a terminal that is given these bytes draw, and do nothing else? Within the size of the last three. */
bool drawn_check(enum term_pictures kind, const char *bytes, size_t len, unsigned columns,
                 unsigned rows);
