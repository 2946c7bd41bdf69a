/* A cell out of JSON: there and back again, and what is not one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "session/cell.h"
#include "session/cell_from_json.h"
#include "session/cell_json.h"
#include "session/summary.h"
#include "session/point_json.h"
#include "wire/proto.h"

static struct cell *parse(const char *text)
{
    json_t *j = json_loads(text, CELL_JSON_READ, NULL);
    struct err e;

    assert_non_null(j);
    struct cell *c = cell_from_json(j, &e);
    json_decref(j);
    return c;
}

/* What is written again is what was read. */
static void assert_same(const char *text)
{
    struct cell *c = parse(text);

    assert_non_null(c);
    json_t *j = cell_json(c, SUMMARY_DEFAULT);
    json_object_del(j, "summary");
    cell_json_add_end(j, c);
    char *again = json_dumps(j, CELL_JSON_FLAGS);
    assert_string_equal(again, text);
    free(again);
    json_decref(j);
    cell_free(c);
}

#define RECEIPT "\"receipt\":{\"wall_ms\":0.25,\"cpu_ms\":1,\"peak_memory\":1048576}"
#define HASH "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0fab"

static void there_and_back_again(void **state)
{
    (void)state;
    assert_same("{\"n\":3,\"code\":\"x = 1\",\"status\":\"ok\",\"outputs\":[],\"files\":[]," RECEIPT
                "}");
    assert_same(
        "{\"n\":1,\"code\":\"\\u0000\\\"\",\"status\":\"limit\",\"outputs\":["
        "{\"type\":\"stdout\",\"text\":\"a\\u0000\\n\"},{\"type\":\"stderr\",\"text\":"
        "\"\xe2\x82\xac\"},"
        "{\"type\":\"result\",\"data\":{\"text/plain\":\"42\",\"image/png\":\"iVBORw==\"},"
        "\"metadata\":{\"image/png\":{\"width\":3}}}],"
        "\"error\":{\"name\":\"OSError\",\"value\":\"full\",\"traceback\":\"\"},"
        "\"limit\":{\"kind\":\"disk\",\"limit\":0.5,\"used\":null},"
        "\"files\":[{\"path\":\"plot.png\",\"change\":\"created\",\"size\":5,\"sha256\":\"" HASH
        "\"},"
        "{\"path\":\"big\",\"change\":\"changed\",\"size\":7},"
        "{\"path\":\"gone\",\"change\":\"deleted\"}],"
        "\"truncated\":{\"stdout_bytes\":0,\"stderr_bytes\":7,\"displays\":2}," RECEIPT
        ",\"exit\":{\"status\":-3},\"session_ended\":true}");
    assert_same("{\"n\":1,\"code\":\"\",\"status\":\"crashed\",\"outputs\":[],\"files\":[]," RECEIPT
                ",\"exit\":{\"signal\":11},\"session_ended\":true}");
}

static void how_it_left(void **state)
{
    struct cell *c =
        parse("{\"n\":1,\"code\":\"\",\"status\":\"crashed\",\"outputs\":[],\"files\":[]," RECEIPT
              ",\"exit\":{\"signal\":9}}");
    (void)state;

    assert_false(c->left);
    assert_int_equal(c->exit_code, 137);
    assert_false(c->session_ended);
    cell_free(c);
    c = parse("{\"n\":1,\"code\":\"\",\"status\":\"ok\",\"outputs\":[],\"files\":[]," RECEIPT
              ",\"exit\":{\"status\":0},\"tomorrow\":[]}");
    assert_true(c->left);
    assert_int_equal(c->exit_code, 0);
    cell_free(c);
}

static void a_streamed_display_has_no_parts(void **state)
{
    struct cell *c =
        parse("{\"n\":1,\"code\":\"\",\"status\":\"ok\",\"outputs\":[{\"type\":\"display\","
              "\"data\":{},\"metadata\":{},\"streamed\":true}],\"files\":[]," RECEIPT "}");
    (void)state;

    assert_int_equal(c->n_outputs, 1);
    assert_int_equal(c->outputs[0].n_parts, 0);
    cell_free(c);
}

/* A sound cell with one member in another's place. */
static void refused(const char *member, const char *value)
{
    static const char sound[] =
        "{\"n\":1,\"code\":\"\",\"status\":\"ok\",\"outputs\":[],\"files\":[]," RECEIPT "}";
    json_t *j = json_loads(sound, 0, NULL);
    json_t *v = json_loads(value, CELL_JSON_READ | JSON_DECODE_ANY, NULL);
    struct err e = {0};

    assert_true(j && v);
    json_object_set_new(j, member, v);
    struct cell *c = cell_from_json(j, &e);
    if (c)
        fail_msg("%s: %s is taken", member, value);
    assert_true(e.text[0]);
    json_decref(j);
}

static void what_is_no_cell(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"n", "-1"},
        {"n", "4294967296"},
        {"n", "1.5"},
        {"n", "\"1\""},
        {"code", "1"},
        {"status", "\"fine\""},
        {"status", "0"},
        {"status", "\"error\""}, /* without one */
        {"status", "\"limit\""},
        {"outputs", "{}"},
        {"outputs", "[1]"},
        {"outputs", "[{\"type\":\"stdin\",\"text\":\"\"}]"},
        {"outputs", "[{\"type\":\"stdout\"}]"},
        {"outputs", "[{\"type\":\"stdout\",\"text\":1}]"},
        {"outputs", "[{\"type\":\"display\"}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"text/plain\":1}}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"bad type\":\"x\"}}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"\":\"x\"}}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"image/png\":\"abc\"}}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"image/png\":\"ab=c\"}}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"image/png\":\"a===\"}}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"image/png\":\"ab==abcd\"}}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"image/png\":\"ab\\u0000d\"}}]"},
        {"outputs", "[{\"type\":\"display\",\"data\":{\"image/png\":\"ab d\"}}]"},
        {"error", "{}"},
        {"error", "{\"name\":\"E\",\"value\":1,\"traceback\":\"\"}"},
        {"limit", "{}"},
        {"limit", "{\"kind\":\"none\",\"limit\":1,\"used\":1}"},
        {"limit", "{\"kind\":\"wall\",\"limit\":-1,\"used\":1}"},
        {"limit", "{\"kind\":\"wall\",\"limit\":1}"},
        {"files", "null"},
        {"files", "[{\"path\":\"\",\"change\":\"created\",\"size\":1}]"},
        {"files", "[{\"path\":\"a\\u0000b\",\"change\":\"created\",\"size\":1}]"},
        {"files", "[{\"path\":\"a\",\"change\":\"renamed\",\"size\":1}]"},
        {"files", "[{\"path\":\"a\",\"change\":\"created\",\"size\":-1}]"},
        {"files", "[{\"path\":\"a\",\"change\":\"created\",\"size\":1,\"sha256\":\"0f\"}]"},
        {"files", "[{\"path\":\"a\",\"change\":\"created\",\"size\":1,\"sha256\":\"" HASH "0\"}]"},
        {"truncated", "[]"},
        {"truncated", "{\"stdout_bytes\":-1}"},
        {"receipt", "{}"},
        {"receipt", "{\"wall_ms\":\"1\",\"cpu_ms\":1,\"peak_memory\":1}"},
        {"exit", "3"},
        {"exit", "{\"status\":\"3\"}"},
        {"exit", "{\"status\":99999999999}"},
        {"exit", "{\"signal\":0}"},
        {"exit", "{\"signal\":128}"},
        {"exit", "{}"},
        {"session_ended", "1"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        refused(wrong[i][0], wrong[i][1]);
    json_t *j = json_array();
    struct err e;
    assert_null(cell_from_json(j, &e));
    json_decref(j);
}

static void counts_are_bounded(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    buf_add_text(&b, "[");
    for (unsigned i = 0; i < 20001; i++)
        buf_add_fmt(&b, "%s{\"type\":\"stdout\",\"text\":\"\"}", i ? "," : "");
    buf_add_text(&b, "]");
    refused("outputs", buf_text(&b));
    b.len = 0;
    buf_add_text(&b, "[");
    for (unsigned i = 0; i < 20001; i++)
        buf_add_fmt(&b, "%s{\"path\":\"a\",\"change\":\"deleted\"}", i ? "," : "");
    buf_add_text(&b, "]");
    refused("files", buf_text(&b));
    b.len = 0;
    buf_add_text(&b, "[{\"type\":\"display\",\"data\":{");
    for (unsigned i = 0; i < 65; i++)
        buf_add_fmt(&b, "%s\"text/x%u\":\"\"", i ? "," : "", i);
    buf_add_text(&b, "}}]");
    refused("outputs", buf_text(&b));
}

static void base64_of_every_length(void **state)
{
    static const char *const texts[] = {"", "/w==", "//8=", "////", "/////w=="};
    (void)state;

    for (size_t len = 0; len <= 4; len++) {
        json_t *j = json_pack("{s:s,s:{s:s}}", "type", "display", "data", "a/b", texts[len]);
        struct output o;
        struct err e;
        assert_int_equal(output_from_json(j, &o, &e), 0);
        assert_int_equal(o.parts[0].len, len);
        for (size_t i = 0; i < len; i++)
            assert_int_equal((unsigned char)o.parts[0].data[i], 0xff);
        cell_output_done(&o);
        json_decref(j);
    }
}

static void values_are_counted(void **state)
{
    static const struct {
        const char *text;
        size_t n;
    } texts[] = {{"1", 1},
                 {"[]", 2},
                 {"[1,2]", 3},
                 {"{\"a\":[]}", 3},
                 {"\"[,{\\\",[\"", 1},
                 {"[\"\\\\\",[]]", 4}};
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_int_equal(json_count_values(texts[i].text, strlen(texts[i].text)), texts[i].n);
}

#define POINT(n, time, memory, lost)                                                               \
    "{\"n\":" n ",\"created_at\":\"" time "\",\"memory\":" memory ",\"lost\":" lost "}"
#define TIME "2026-11-16T12:00:01.250Z"

/* What is written again, or NULL: it is none. */
static char *point_again(const char *text)
{
    json_t *j = json_loads(text, 0, NULL), *written = NULL;
    cleanup_free char *lost = NULL;
    struct session_point p;
    char *again = NULL;
    struct err e;

    assert_non_null(j);
    if (point_from_json(j, &p, &lost, &e) == 0) {
        written = point_json(&p);
        again = json_dumps(written, JSON_COMPACT);
    }
    json_decref(written);
    json_decref(j);
    return again;
}

static void a_checkpoint(void **state)
{
    static const char *const good[] = {POINT("3", TIME, "4096", "[]"),
                                       POINT("0", TIME, "0", "[\"thread a\",\"pipe 7\"]")};
    static const char *const bad[] = {"{}",
                                      "[]",
                                      POINT("-1", TIME, "0", "[]"),
                                      POINT("4294967296", TIME, "0", "[]"),
                                      POINT("1", "yesterday", "0", "[]"),
                                      POINT("1", TIME "x", "0", "[]"),
                                      POINT("1", TIME, "\"0\"", "[]"),
                                      POINT("1", TIME, "0", "{}"),
                                      POINT("1", TIME, "0", "[1]")};
    (void)state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cleanup_free char *again = point_again(good[i]);
        assert_non_null(again);
        assert_string_equal(again, good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(point_again(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back_again),
        cmocka_unit_test(how_it_left),
        cmocka_unit_test(a_streamed_display_has_no_parts),
        cmocka_unit_test(what_is_no_cell),
        cmocka_unit_test(counts_are_bounded),
        cmocka_unit_test(values_are_counted),
        cmocka_unit_test(base64_of_every_length),
        cmocka_unit_test(a_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
