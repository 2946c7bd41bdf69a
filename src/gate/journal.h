/* journal: what of a cell is kept. The answer had all of it; a row of the journal has a bound, whatever the
 * cell did. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* Cut the cell (cell_json) until its text of JSON has some `max` bytes, beside the few hundred that every cell
 * has. Texts are cut, displays lose their data, and what does not fit even so is left out; "cut" says what. */
void journal_fit(json_t *cell, uint64_t max);
