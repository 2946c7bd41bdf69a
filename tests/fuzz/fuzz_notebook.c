/* Any bytes as a notebook, whose cells are compared with each other; and, up to the first NUL, as an answer whose
 * numbers are looked for in the rest. What must hold: a cell is the same as itself, what is told is bounded, and more
 * evidence founds more. */
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "agent/compare.h"
#include "agent/evidence.h"
#include "agent/numbers.h"
#include "base/buf.h"
#include "base/err.h"
#include "session/notebook_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t differences(const json_t *a, const json_t *b)
{
    json_t *found = compare_cells(a, b);
    const json_t *list = json_object_get(found, "differences");
    size_t n = json_array_size(list);

    assert_that(n <= COMPARE_DIFFERENCES_MAX);
    for (size_t i = 0; i < n; i++) {
        const json_t *now = json_object_get(json_array_get(list, i), "now");
        assert_that(json_string_length(now) <= COMPARE_TEXT_MAX + 3);
    }
    json_decref(found);
    return n;
}

static void read_notebook(const char *text, size_t len)
{
    cleanup_buf struct buf evidence = {0};
    struct recorded r;
    struct err e;

    if (notebook_parse("it", text, len, &r, &e) < 0)
        return;
    for (size_t i = 0; i < json_array_size(r.cells); i++) {
        const json_t *cell = json_array_get(r.cells, i);
        assert_that(differences(cell, cell) == 0);
        differences(cell, json_array_get(r.cells, 0));
        evidence_add(&evidence, cell);
    }
    recorded_done(&r);
}

static void read_answer(const char *text, size_t len)
{
    cleanup_buf struct buf b = {0};

    buf_add(&b, text, len);
    const char *answer = buf_text(&b), *rest = answer + strlen(answer);
    const char *evidence[] = {rest < answer + len ? rest + 1 : rest, answer};
    json_t *some = numbers_unfounded(answer, evidence, 1);
    json_t *fewer = numbers_unfounded(answer, evidence, 2);
    assert_that(json_array_size(fewer) <= json_array_size(some));
    json_decref(some);
    json_decref(fewer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_notebook((const char *)data, size);
    read_answer((const char *)data, size);
    return 0;
}
