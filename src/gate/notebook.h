/* notebook: a session's journal as an .ipynb (nbformat 4.5), written in pieces.
 *
 *     notebook_begin, notebook_cell…, notebook_end
 *
 * Each adds to the buffer; the caller may drain it in between. What is in a cell is a guest's: it can
 * change texts and outputs only, and the notebook is valid whatever they are.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

#define NOTEBOOK_TYPE "application/x-ipynb+json"

void notebook_begin(struct buf *b);
/* A cell as the contract writes it. Each has another "n". `first`: no other was written before it. */
void notebook_cell(struct buf *b, const json_t *cell, bool first);
void notebook_end(struct buf *b, const char *session_id);
