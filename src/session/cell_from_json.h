/* cell_from_json: a cell as a server wrote it (see cell_json.h), for who is its client.
 *
 * A server is trusted less than our own process: counts are bounded, types and names are checked, and a cell
 * that is not as the contract has it is no cell. Members that are not known are passed over. How large the
 * text may be is the caller's business.
 */
#pragma once

#include <jansson.h>

#include "session/session.h"

/* How to read it: text may have any character in it. */
#define CELL_JSON_READ (JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES)

/* Values in a text of JSON, counted by what is between them, before it is parsed: a value of two letters takes a
 * hundred bytes in memory. */
size_t json_count_values(const char *text, size_t len);

/* NULL, with what is wrong. A display that was "streamed" comes without parts. */
struct cell *cell_from_json(const json_t *j, struct err *e);
/* One output, as a stream has it; it is the caller's (cell_output_done). */
int output_from_json(const json_t *j, struct output *ret, struct err *e);
