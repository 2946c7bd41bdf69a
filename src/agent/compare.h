/* compare: a cell as it was recorded, beside what came when it ran again.
 *
 * Both are code cells as nbformat has them (session/notebook.h makes one of a cell of ours). Compared are what was
 * written to stdout and to stderr, each as a whole; what was shown, in its order; the error, by name and
 * value; and the files, by their SHA-256, where they were recorded. All texts are evened out first (even.h).
 *
 *   - of a value that is shown in several forms, those count that both have; HTML only where there is no
 *     text that says the same;
 *   - pictures are the same when their bytes are, or, in a PNG, those that make the pixels; a chart of the same data that
 *     is drawn otherwise is the same, with a remark;
 *   - of files that have the time of their making in them (.xlsx, .pdf, .zip …) other bytes are a remark.
 */
#pragma once

#include <jansson.h>

#define COMPARE_DIFFERENCES_MAX 20 /* of one cell that are told */
#define COMPARE_TEXT_MAX 200       /* bytes of a text that are told */

/* {"differences":[{"what":"stdout","line":3,"recorded":"…","now":"…"}, …], "remarks":["…", …]}; "line" is there for
 * texts. What was recorded and what came may have any character in them. */
json_t *compare_cells(const json_t *recorded, const json_t *now);
