/* notebook: cells and texts as an .ipynb (nbformat 4.5), written in pieces.
 *
 *     notebook_begin, { notebook_code | notebook_text }…, notebook_end
 *
 * Each adds to the buffer; the caller may drain it in between. What is in a cell is a guest's: it can
 * change texts and outputs only, and the notebook is valid whatever they are.
 *
 * What a notebook has no member for is in `retort` of the metadata:
 *
 *     of a code cell    {"status":"ok", "files":[…], "undone":true}      "files" as in a cell of the contract
 *     of a text         {"role":"question|answer|…"}
 *     of the notebook   {"version":1, …} as its writer has it: "session", "model", and
 *                       "files":[{"name","size","sha256"}], which the session was given
 *
 * An attempt that was undone is there for its reader, but it is not what the rest stands on: who runs the notebook
 * again leaves it out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

#define NOTEBOOK_TYPE "application/x-ipynb+json"
#define NOTEBOOK_VERSION 1 /* of what is in `retort` */

#define NOTEBOOK_QUESTION "question" /* the roles that mean something to us */
#define NOTEBOOK_ANSWER "answer"

void notebook_begin(struct buf *b);
/* A cell as the contract writes it. `place` is how many were written before it, texts too. */
void notebook_code(struct buf *b, const json_t *cell, bool undone, unsigned place);
/* Markdown. The text is made valid UTF-8. */
void notebook_text(struct buf *b, const char *role, const char *text, size_t len, unsigned place);
/* `retort` is what the notebook's own metadata say; it is taken over, and the version is put in. */
void notebook_end(struct buf *b, json_t *retort);

/* The code cell alone, for who compares it. Without an id. */
json_t *notebook_code_json(const json_t *cell, bool undone);
