/* What the journal keeps: a bound that no part of a cell gets around. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "gate/journal.h"

#define MAX 4096
#define BESIDE 512 /* what every cell has, and the words about what was cut */

static json_t *repeated(const char *piece, size_t times)
{
    cleanup_buf struct buf b = {0};

    for (size_t i = 0; i < times; i++)
        buf_add_text(&b, piece);
    return json_stringn(b.data, b.len);
}

static json_t *new_cell(void)
{
    return json_pack("{s:i,s:s,s:s,s:[],s:[],s:{s:i}}", "n", 1, "code", "1", "status", "ok",
                     "outputs", "files", "receipt", "wall_ms", 1);
}

static json_t *text_output(json_t *text)
{
    return json_pack("{s:s,s:o}", "type", "stdout", "text", text);
}

static json_int_t cut(const json_t *cell, const char *what)
{
    return json_integer_value(json_object_get(json_object_get(cell, "cut"), what));
}

/* Fit it, and see that it does. */
static void fit(json_t *cell)
{
    journal_fit(cell, MAX);
    char *text = json_dumps(cell, JSON_COMPACT);
    assert_non_null(text); /* it is UTF-8 still */
    assert_true(strlen(text) <= MAX + BESIDE);
    free(text);
}

static void code_is_cut(void **state)
{
    (void)state;
    static const char *const pieces[] = {"x", "\x01", "\"", "\n", "\xe2\x82\xac"};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
        json_t *cell = new_cell();
        json_object_set_new(cell, "code", repeated(pieces[i], 100000));
        fit(cell);
        assert_int_equal(cut(cell, "code"), 100000 * strlen(pieces[i]));
        assert_true(json_string_length(json_object_get(cell, "code")) > 100);
        json_decref(cell);
    }
}

static void errors_are_cut(void **state)
{
    (void)state;
    json_t *cell = new_cell();

    json_object_set_new(cell, "error",
                        json_pack("{s:s,s:o,s:o}", "name", "E", "value", repeated("v", 9000),
                                  "traceback", repeated("\x1b[31m", 100000)));
    fit(cell);
    assert_int_equal(cut(cell, "value"), 9000);
    assert_int_equal(cut(cell, "traceback"), 500000);
    assert_int_equal(cut(cell, "code"), 0);
    json_decref(cell);
}

static void outputs_are_cut_or_left_out(void **state)
{
    (void)state;
    json_t *cell = new_cell(), *outputs = json_object_get(cell, "outputs");

    json_array_append_new(outputs, text_output(json_string("head")));
    json_array_append_new(outputs,
                          json_pack("{s:s,s:{s:o},s:{s:o}}", "type", "display", "data", "text/html",
                                    repeated("x", 9000), "metadata", "m", repeated("y", 9000)));
    json_array_append_new(outputs, text_output(json_string("between")));
    for (unsigned i = 0; i < 1000; i++)
        json_array_append_new(outputs, text_output(repeated("\x02", 100)));
    fit(cell);
    assert_string_equal(json_string_value(json_object_get(json_array_get(outputs, 0), "text")),
                        "head");
    const json_t *display = json_array_get(outputs, 1);
    assert_int_equal(json_integer_value(json_object_get(display, "cut")), 9000);
    assert_int_equal(json_object_size(json_object_get(display, "data")), 0);
    assert_string_equal(json_string_value(json_object_get(json_array_get(outputs, 2), "text")),
                        "between");
    assert_int_equal(json_array_size(outputs) + (size_t)cut(cell, "outputs"), 1003);
    json_decref(cell);
}

static void files_are_left_out(void **state)
{
    (void)state;
    json_t *cell = new_cell(), *files = json_object_get(cell, "files");

    for (unsigned i = 0; i < 1000; i++)
        json_array_append_new(
            files, json_pack("{s:o,s:s}", "path", repeated("p", 100), "change", "deleted"));
    fit(cell);
    assert_true(json_array_size(files) > 10);
    assert_int_equal(json_array_size(files) + (size_t)cut(cell, "files"), 1000);
    json_decref(cell);
}

static void all_at_once(void **state)
{
    (void)state;
    json_t *cell = new_cell();

    json_object_set_new(cell, "code", repeated("c", 100000));
    json_object_set_new(
        cell, "error",
        json_pack("{s:s,s:s,s:o}", "name", "E", "value", "", "traceback", repeated("t", 100000)));
    json_array_append_new(json_object_get(cell, "outputs"), text_output(repeated("o", 100000)));
    json_array_append_new(json_object_get(cell, "files"),
                          json_pack("{s:o,s:s}", "path", repeated("p", 4000), "change", "deleted"));
    fit(cell);
    const json_t *output = json_array_get(json_object_get(cell, "outputs"), 0);
    assert_true(json_string_length(json_object_get(output, "text")) > 1000);
    assert_int_equal(json_integer_value(json_object_get(output, "cut")), 100000);
    assert_int_equal(cut(cell, "files"), 1);
    json_decref(cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_cut),
        cmocka_unit_test(errors_are_cut),
        cmocka_unit_test(outputs_are_cut_or_left_out),
        cmocka_unit_test(files_are_left_out),
        cmocka_unit_test(all_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
