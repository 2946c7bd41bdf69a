/* evidence: what a cell has put out, as text in which numbers can be looked for (numbers.h). */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Add what a code cell as nbformat has it shows: texts, values, tables and charts as data, HTML without its tags. No
 * more than NUMBERS_EVIDENCE_MAX is kept in all. */
void evidence_add(struct buf *evidence, const json_t *cell);
void evidence_add_text(struct buf *evidence, const char *text, size_t len);
