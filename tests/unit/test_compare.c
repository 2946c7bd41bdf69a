/* A recorded cell beside what came now: what is the same, and how a difference is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/compare.h"
#include "agent/even.h"
#include "agent/evidence.h"
#include "base/buf.h"

/* '`' stands for '"'. */
static json_t *parse(const char *text)
{
    cleanup_free char *quoted = xstrdup(text);

    for (char *p = quoted; *p; p++)
        *p = *p == '`' ? '"' : *p;
    json_t *j = json_loads(quoted, JSON_ALLOW_NUL, NULL);
    if (!j)
        fail_msg("not JSON: %s", quoted);
    return j;
}

static json_t *cell_of(const char *outputs, const char *files)
{
    cleanup_buf struct buf b = {0};

    buf_add_fmt(&b, "{`outputs`:[%s],`metadata`:{`retort`:{`files`:[%s]}}}", outputs, files);
    return parse(buf_text(&b));
}

/* "what|line|recorded|now; …", and remarks in brackets. */
static char *told(json_t *recorded, json_t *now)
{
    json_t *found = compare_cells(recorded, now), *one;
    struct buf b = {0};
    size_t i;

    json_array_foreach(json_object_get(found, "differences"), i, one) buf_add_fmt(
        &b, "%s%s|%d|%s|%s", i ? "; " : "", json_string_value(json_object_get(one, "what")),
        (int)json_integer_value(json_object_get(one, "line")),
        json_string_value(json_object_get(one, "recorded")),
        json_string_value(json_object_get(one, "now")));
    json_array_foreach(json_object_get(found, "remarks"), i, one)
        buf_add_fmt(&b, "(%s)", json_string_value(one));
    json_decref(found);
    json_decref(recorded);
    json_decref(now);
    buf_text(&b);
    return buf_steal(&b);
}

static void check(const char *recorded, const char *now, const char *expected)
{
    cleanup_free char *found = told(cell_of(recorded, ""), cell_of(now, ""));

    assert_string_equal(found, expected);
}

static void check_files(const char *recorded, const char *now, const char *expected)
{
    cleanup_free char *found = told(cell_of("", recorded), cell_of("", now));

    assert_string_equal(found, expected);
}

#define STDOUT(text) "{`output_type`:`stream`,`name`:`stdout`,`text`:" text "}"
#define STDERR(text) "{`output_type`:`stream`,`name`:`stderr`,`text`:" text "}"
#define SHOWN(data) "{`output_type`:`display_data`,`metadata`:{},`data`:{" data "}}"
#define RAISED(name, value) "{`output_type`:`error`,`ename`:`" name "`,`evalue`:`" value "`}"

static void texts(void **state)
{
    (void)state;
    check(STDOUT("`a`"), STDOUT("`a`"), "");
    check(STDOUT("[`a\\n`,`b`]"), STDOUT("`a\\n`") "," STDERR("``") "," STDOUT("`b`"), "");
    check(STDOUT("`a\\nb\\nc`"), STDOUT("`a\\nB\\nc`"), "stdout|2|b|B");
    check(STDOUT("`a`"), "", "stdout|1|a|");
    check(STDOUT("`a\\n`"), STDOUT("`a\\nmore`"), "stdout|2||more");
    check(STDERR("`a`"), STDOUT("`a`"), "stdout|1||a; stderr|1|a|");
    check("5,{}," STDOUT("7"), "", "");
}

static void a_long_line_is_told_where_it_differs(void **state)
{
    cleanup_buf struct buf a = {0}, b = {0};
    (void)state;

    buf_add_text(&a, "{`output_type`:`stream`,`name`:`stdout`,`text`:`");
    for (int i = 0; i < 1000; i++)
        buf_add_text(&a, "é");
    buf_add(&b, a.data, a.len);
    buf_add_text(&a, "one`}");
    buf_add_text(&b, "two`}");
    cleanup_free char *found = told(cell_of(buf_text(&a), ""), cell_of(buf_text(&b), ""));
    assert_non_null(strstr(found, "éone|"));
    assert_non_null(strstr(found, "étwo"));
    assert_true(strlen(found) < 3 * COMPARE_TEXT_MAX);
}

static void errors(void **state)
{
    (void)state;
    check(RAISED("E", "v"), RAISED("E", "v"), "");
    check(RAISED("E", "v"), RAISED("E", "w"), "error|1|E: v|E: w");
    check(RAISED("E", "v"), "", "error|1|E: v|no error");
    check(RAISED("E", "(<cell 3>, line 1)"), RAISED("E", "(<cell 4>, line 1)"), "");
}

static void values(void **state)
{
    (void)state;
    check(SHOWN("`text/plain`:`1`"), SHOWN("`text/plain`:[`1`]"), "");
    check(SHOWN("`text/plain`:`1`"), SHOWN("`text/plain`:`2`"), "text/plain|1|1|2");
    check(SHOWN("`text/plain`:`1`"), "", "shown|0|1 thing|0 things");
    check(SHOWN("`text/plain`:`1`"), SHOWN("`text/html`:`1`"), "shown|0|text/plain|text/html");
    /* Another's HTML of the same table is the same; HTML that is the value is not. */
    check(SHOWN("`text/plain`:`1`,`text/html`:`<b>`"), SHOWN("`text/plain`:`1`,`text/html`:`<i>`"),
          "");
    check(SHOWN("`text/plain`:`<HTML>`,`text/html`:`<b>`"),
          SHOWN("`text/plain`:`<HTML>`,`text/html`:`<i>`"), "text/html|1|<b>|<i>");
    check(SHOWN("`application/json`:{`b`:1,`a`:0.1}"), SHOWN("`application/json`:{`a`:0.1,`b`:1}"),
          "");
    check(SHOWN("`application/json`:{`a`:0.3}"),
          SHOWN("`application/json`:{`a`:0.30000000000000004}"), ""); /* as it was written */
    check(SHOWN("`application/json`:{`a`:0.1}"), SHOWN("`application/json`:{`a`:0.2}"),
          "application/json|2| \"a\": 0.1| \"a\": 0.2");
    check(SHOWN(""), SHOWN(""), "");
    check(SHOWN("`text/plain`:5"), SHOWN("`text/plain`:6"), "");
}

/* An IHDR of 1 × 1, a tEXt, an IDAT: checksums are not looked at. */
#define HEAD "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAAAAAA"
#define TEXT "AAAAA3RFWHRhYmMAAAAA"
#define MORE "AAAAA3RFWHR4eXoAAAAA"
#define DATA "AAAAA0lEQVQBAgMAAAAA"
#define DOTS "AAAAA0lEQVQBAgQAAAAA"
#define CHART(y) "`application/vnd.retort.chart+json`:{`y`:" y "}"

static void pictures(void **state)
{
    (void)state;
    check(SHOWN("`image/png`:`" HEAD TEXT DATA "`"), SHOWN("`image/png`:`" HEAD TEXT DATA "`"), "");
    check(SHOWN("`image/png`:[`" HEAD "\\n`,`" TEXT DATA "\\n`]"),
          SHOWN("`image/png`:`" HEAD TEXT DATA "`"), "");
    check(SHOWN("`image/png`:`" HEAD TEXT DATA "`"), SHOWN("`image/png`:`" HEAD MORE DATA "`"), "");
    check(SHOWN("`image/png`:`" HEAD DATA "`"), SHOWN("`image/png`:`" HEAD DOTS "`"),
          "picture|0|a picture of 1 × 1 pixels, 48 B|a picture of 1 × 1 pixels, 48 B");
    check(SHOWN("`image/png`:`" HEAD DATA "`," CHART("1")),
          SHOWN("`image/png`:`" HEAD DOTS "`," CHART("1")),
          "(a chart of the same data is drawn with other pixels)");
    check(SHOWN("`image/png`:`" HEAD DATA "`," CHART("1")),
          SHOWN("`image/png`:`" HEAD DOTS "`," CHART("2")), "chart|2| \"y\": 1| \"y\": 2");
    check(SHOWN("`image/png`:`" HEAD DATA "`,`text/plain`:`a`"), SHOWN("`text/plain`:`a`"),
          "picture|0|a picture|none");
    check(SHOWN("`image/png`:`!!`"), SHOWN("`image/png`:`??`"), "picture|0|a picture|a picture");
}

#define FILE_(path, change, sha) "{`path`:`" path "`,`change`:`" change "`,`sha256`:`" sha "`}"

static void files(void **state)
{
    (void)state;
    check_files(FILE_("a", "created", "00"), FILE_("a", "created", "00"), "");
    check_files(FILE_("a", "created", "00"), FILE_("a", "created", "01"), "file a|0|00|01");
    check_files(FILE_("a", "created", "00"), "", "file a|0|created|not touched");
    check_files("", FILE_("a", "created", "00"), "file a|0|not touched|created");
    check_files(FILE_("a", "created", "00"), FILE_("a", "changed", "00"),
                "file a|0|created|changed");
    check_files(FILE_("a.XLSX", "created", "00"), FILE_("a.XLSX", "created", "01"),
                "(a.XLSX has other bytes, as files of its kind have each time they are made)");
    check_files("1,{},{`path`:5}", "7", "");
}

static void others_say_nothing_of_files(void **state)
{
    json_t *jupyters = parse("{`outputs`:[],`metadata`:{}}");
    (void)state;

    cleanup_free char *found = told(jupyters, cell_of("", FILE_("a", "created", "00")));
    assert_string_equal(found, "");
}

static void many_differences_are_bounded(void **state)
{
    cleanup_buf struct buf a = {0}, b = {0};
    (void)state;

    for (int i = 0; i < 100000; i++) {
        buf_add_text(&a, i ? "," SHOWN("`text/plain`:`1`") : SHOWN("`text/plain`:`1`"));
        buf_add_text(&b, i ? "," SHOWN("`text/plain`:`2`") : SHOWN("`text/plain`:`2`"));
    }
    json_t *x = cell_of(buf_text(&a), ""), *y = cell_of(buf_text(&b), "");
    json_t *found = compare_cells(x, y);
    assert_int_equal(json_array_size(json_object_get(found, "differences")),
                     COMPARE_DIFFERENCES_MAX);
    json_decref(found);
    json_decref(x);
    json_decref(y);
}

static void what_differs_each_time_is_evened_out(void **state)
{
    static const char *const examples[][2] = {
        {"<A object at 0x55d0a1b2c3d4>", "<A object at 0x…>"},
        {"<A object at 0xdeadbeef>", "<A object at 0x…>"},
        {"0x7f12345678ab", "0x…"},
        {"hex: 0xdeadbeef", "hex: 0xdeadbeef"},
        {"0x7f", "0x7f"},
        {"/tmp/tmpab1_x9zq/a", "/tmp/tmp…/a"},
        {"/tmp/tmpfile", "/tmp/tmpfile"},
        {"id 123e4567-e89b-12d3-a456-426614174000.", "id …."},
        {"#T_ab12c td", "#T_… td"},
        {"<cell 12>:3: UserWarning", "<cell …>:3: UserWarning"},
        {"/tmp/ipykernel_77/123456.py:3: UserWarning", "<cell …>:3: UserWarning"},
        {"\033[31mred\033[0m", "red"},
        {"  0%|  | 0/9\r100%|##| 9/9 [00:01<00:00, 4.9it/s]\n", "100%|##| 9/9 […]\n"},
        {"a\r\nb", "a\nb"},
        {"Wall time: 12 ms\nx", "[… s]\nx"},
        {"1.2 ms ± 3 µs per loop (mean ± std. dev. of 7 runs)", "[… s]"},
        {"[1, 2]", "[1, 2]"},
        {"", ""},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        cleanup_buf struct buf b = {0};
        even_out(examples[i][0], strlen(examples[i][0]), &b);
        assert_string_equal(buf_text(&b), examples[i][1]);
    }
}

static void evidence_is_what_can_be_read(void **state)
{
    json_t *cell = cell_of(STDOUT("[`1\\u0000`,`2`]") "," RAISED("E", "3") "," SHOWN(
                               "`text/html`:`<td width='9'>4</td>`,`image/png`:`9999`,"
                               "`application/json`:{`a`:[5]}"),
                           "");
    cleanup_buf struct buf b = {0};
    (void)state;

    evidence_add(&b, cell);
    assert_string_equal(buf_text(&b), "1 2\n3\n 4 \n{\"a\": [5]} \n");
    json_decref(cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(a_long_line_is_told_where_it_differs),
        cmocka_unit_test(errors),
        cmocka_unit_test(values),
        cmocka_unit_test(pictures),
        cmocka_unit_test(files),
        cmocka_unit_test(others_say_nothing_of_files),
        cmocka_unit_test(many_differences_are_bounded),
        cmocka_unit_test(what_differs_each_time_is_evened_out),
        cmocka_unit_test(evidence_is_what_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
