/* traceback: what a person wants to see of one: the lines of the cell that led to it, and what it says.
 *
 * IPython's has several hundred lines where libraries call each other; the model gets it whole.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* How a line is to be seen. */
enum traceback_part { TRACEBACK_FRAME, TRACEBACK_HERE, TRACEBACK_MESSAGE };

/* Hands the lines on, the text of each as it is in the traceback. `name` is that of the error. */
void traceback_lines(const char *traceback, const char *name,
                     void (*line)(void *ctx, enum traceback_part part, const char *text,
                                  size_t len),
                     void *ctx);
