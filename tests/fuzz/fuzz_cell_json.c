/* A server's cell on any JSON. What must hold: a cell that is taken can be written, and what was written is
 * taken and written again as the same text; and its summary keeps to its budget. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "session/cell.h"
#include "session/cell_from_json.h"
#include "session/cell_json.h"
#include "session/summary.h"
#include "session/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct cell *c)
{
    json_t *j = cell_json(c, SUMMARY_DEFAULT);
    cell_json_add_end(j, c);
    char *text = json_dumps(j, CELL_JSON_FLAGS);

    assert_that(text);
    json_decref(j);
    return text;
}

static void summarise(const struct cell *c, size_t budget)
{
    char *text = cell_summary(c, budget);
    size_t len = strlen(text);

    assert_that(len > 0 && len <= budget && utf8_valid(text, len) == len);
    free(text);
}

static void cells(const json_t *j)
{
    struct err e;
    struct cell *c = cell_from_json(j, &e);

    if (!c)
        return;
    summarise(c, SUMMARY_MIN);
    summarise(c, 2000);
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
