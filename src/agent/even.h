/* even: two runs' texts without what honestly differs from run to run.
 *
 *   - addresses in memory ("<A object at 0x7f…>"), names of temporary files, UUIDs, the ids of styled tables;
 *   - names of cells in warnings and errors: "<cell 3>", and Jupyter's "/tmp/ipykernel_17/123.py";
 *   - colours and other control sequences, and all but the last state of a line that was written over;
 *   - how long something took: %time, %timeit, and the speed of a tqdm bar.
 *
 * Everything else that changes is a difference: a date of today, a random number, the order of a set.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Appended; the text is UTF-8, and lines stay lines. */
void even_out(const char *text, size_t len, struct buf *ret);
