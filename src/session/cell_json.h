/* cell_json: a cell as the contract writes it.
 *
 * Text is valid UTF-8, binary parts are base64, and what a box chose (names, texts, metadata) can
 * change values only. The caller owns what is returned.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "session/session.h"

/* How to write it: short, and numbers as people expect them (0.1, not 0.10000000000000001). */
#define CELL_JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))

/* With a summary of at most so many bytes (see summary.h). */
json_t *cell_json(const struct cell *c, size_t summary);
/* What its end means to an owner of the session who is elsewhere: "exit" where the code left, or a signal
 * ended it, and "session_ended". */
void cell_json_add_end(json_t *cell, const struct cell *c);
/* Bytes that a display shows. */
size_t cell_display_length(const json_t *output);
/* A copy in which displays over CELL_LARGE have no data and are "streamed", for who has had them: `shown` says of
 * each display whether that is so, for the first n (NULL: of all). NULL: there is nothing to leave out. */
#define CELL_LARGE (64u << 10)
json_t *cell_json_without(json_t *cell, const bool *shown, unsigned n);
/* Parts of it, for streams. */
json_t *cell_output_json(const struct output *o);
json_t *cell_error_json(const struct cell *c);
/* The variables out of a cell that session_variables brought: an array with at most VARIABLES_MAX
 * entries, each as the contract has it, whatever the box sent. NULL: they are not in it. */
#define VARIABLES_MAX 1000
#define VARIABLES_TEXT_MAX 200 /* characters of each string */
json_t *cell_variables_json(const struct cell *c);
/* The environment out of a cell that ran ENVIRONMENT_CODE, checked in the same way:
 *
 *     {"python", "libraries": [{"name", "import", "version", "group", "about"}…],
 *      "commands": [{"name", "version", "group", "about"}…], "wheels": [name…], "description"}
 *
 * "description" is the paragraph that tells a model what it can use. NULL: it is not in it. */
#define ENVIRONMENT_LIST_MAX 1000
#define ENVIRONMENT_DESCRIPTION_MAX 8192 /* bytes */
json_t *cell_environment_json(const struct cell *c);
/* Any bytes as a JSON string: broken ones become U+FFFD. */
json_t *cell_text_json(const char *text, size_t len);
