/* A server's cell on any JSON. What must hold: a cell that is taken can be written, and what was written is
 * taken and written again as the same text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "session/cell.h"
#include "session/cell_from_json.h"
#include "session/cell_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct cell *c)
{
    json_t *j = cell_json(c);
    cell_json_add_end(j, c);
    char *text = json_dumps(j, CELL_JSON_FLAGS);

    assert_that(text);
    json_decref(j);
    return text;
}

static void cells(const json_t *j)
{
    struct err e;
    struct cell *c = cell_from_json(j, &e);

    if (!c)
        return;
    char *text = written(c);
    json_t *again = json_loads(text, CELL_JSON_READ, NULL);
    assert_that(again);
    struct cell *twin = cell_from_json(again, &e);
    assert_that(twin);
    char *twice = written(twin);
    assert_that(strcmp(text, twice) == 0);
    free(twice);
    free(text);
    json_decref(again);
    cell_free(twin);
    cell_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *j = json_loadb((const char *)data, size, CELL_JSON_READ, NULL);
    struct output o;
    struct err e;

    if (!j)
        return 0;
    cells(j);
    if (output_from_json(j, &o, &e) == 0)
        cell_output_done(&o);
    json_decref(j);
    return 0;
}
