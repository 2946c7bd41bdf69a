/* cell: making and filling a struct cell (see session.h for what it means). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session/session.h"

struct cell *cell_new(uint32_t n, const char *code, size_t len);

const char *output_kind_name(enum output_kind k); /* "stdout", … */
const char *file_change_name(int change);         /* "created", … */

/* Free what an output holds, not the struct. */
void cell_output_done(struct output *o);

#define PARTS_MAX 64             /* of one display */
#define METADATA_MAX (16u << 10) /* of its text: parsed JSON takes some forty times that */
/* Is it a type as in "image/png": printable ASCII without blanks? */
bool part_type_ok(const char *type, size_t len);
/* Is what has this type UTF-8 text, and not bytes? */
bool part_type_is_text(const char *type);

/* The part of a display that has this type, or NULL. */
const struct mime_part *output_part(const struct output *o, const char *type);
/* Its best picture, or NULL. */
const struct mime_part *output_picture(const struct output *o);

/* Set the error; what was there is freed. The three are repaired to UTF-8. */
struct slice {
    const char *data;
    size_t len;
};
/* The guest chooses all three: what is longer is told by its head and tail. */
#define ERROR_NAME_MAX (1u << 10)
#define ERROR_VALUE_MAX (64u << 10)
#define ERROR_TRACEBACK_MAX (1u << 20)
void cell_set_error(struct cell *c, struct slice name, struct slice value, struct slice traceback);
/* The same from one sentence of ours. */
void cell_set_fault(struct cell *c, const char *name, const char *sentence);

/* Add a note about a file; takes over the path. The count is the caller's to bound. */
void cell_add_file(struct cell *c, const struct file_note *note);
