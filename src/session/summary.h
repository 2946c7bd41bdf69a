/* summary: what a model needs to know of a cell, as text that fits a budget.
 *
 *     stdout:                                                what it wrote and showed, in order
 *     ```
 *     rows: 1200
 *     ```
 *     picture 1: image/png, 640 × 480 pixels, 21.4 kB         pictures by name, never their bytes
 *     stderr (the first 2048 and last 2048 of 90210 bytes):  what was left out is said here, outside
 *     ```
 *     …
 *     ```
 *     files:                                                 what it did to the workspace
 *     error:                                                 and last what went wrong (of a traceback the
 *     stopped: …                                             end is what matters) and how it ended
 *
 * Everything that a guest chose stands between fences of backticks that are longer than any run of them in
 * the text, so that no text can end its own block and pass for another. Escape sequences and control
 * characters are taken out, and a line that was written over (a progress bar) is told as it last was.
 */
#pragma once

#include <stddef.h>

#include "session/session.h"

/* Valid UTF-8, never longer than the budget (SUMMARY_MIN to SUMMARY_MAX), and never empty. The caller's. */
char *cell_summary(const struct cell *c, size_t budget);
