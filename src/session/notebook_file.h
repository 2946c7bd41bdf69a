/* notebook_file: a conversation as a notebook in a file, which grows while it goes on.
 *
 * What is in it waits in a file without a name, not in memory: pictures of a long session can be
 * hundreds of megabytes. It can be written out as often as one likes.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

struct notebook;

struct notebook *notebook_new(void);
void notebook_free(struct notebook *nb);

/* Markdown with its role (see notebook.h), as it is to be read. */
int notebook_add_markdown(struct notebook *nb, const char *role, const char *text, struct err *e);
/* A cell as cell_json has it. `undone`: the session went back to before it. */
int notebook_add_cell(struct notebook *nb, const json_t *cell, bool undone, struct err *e);
/* A member of the notebook's own metadata; the value is taken over. */
void notebook_set(struct notebook *nb, const char *key, json_t *value);

/* What there is now, as this file, which is replaced. It appears whole or not at all. */
int notebook_write(struct notebook *nb, const char *path, struct err *e);
