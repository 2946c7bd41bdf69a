/* A cell as JSON, as the contract writes it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "session/cell.h"
#include "session/cell_json.h"
#include "session/summary.h"
#include "wire/proto.h"

static char *dump(const struct cell *c)
{
    json_t *j = cell_json(c, SUMMARY_DEFAULT);
    assert_true(json_is_string(json_object_get(j, "summary")));
    json_object_del(j, "summary"); /* has tests of its own */
    char *text = json_dumps(j, CELL_JSON_FLAGS);

    assert_non_null(text);
    json_decref(j);
    return text;
}

static void assert_json(const struct cell *c, const char *expected)
{
    char *text = dump(c);

    assert_string_equal(text, expected);
    free(text);
}

static void the_smallest_cell(void **state)
{
    struct cell *c = cell_new(3, "x = 1", 5);
    (void)state;

    c->receipt.wall_ms = 0.25;
    c->receipt.cpu_ms = 1;
    c->receipt.peak_memory = 1 << 20;
    assert_json(c, "{\"n\":3,\"code\":\"x = 1\",\"status\":\"ok\",\"outputs\":[],\"files\":[],"
                   "\"receipt\":{\"wall_ms\":0.25,\"cpu_ms\":1,\"peak_memory\":1048576}}");
    cell_free(c);
}

static void put_output(struct cell *c, enum output_kind kind, const char *text)
{
    struct output *o = &c->outputs[c->n_outputs++];

    *o = (struct output){.kind = kind};
    if (kind == OUTPUT_STDOUT || kind == OUTPUT_STDERR) {
        o->text = xstrdup(text);
        o->len = strlen(text);
        return;
    }
    o->parts = xcalloc(2, sizeof(*o->parts));
    o->n_parts = 2;
    o->parts[0] = (struct mime_part){xstrdup("text/plain"), xstrdup(text), strlen(text), true};
    o->parts[1] = (struct mime_part){xstrdup("image/png"), xstrdup("\x89PNG"), 4, false};
    o->metadata = xstrdup("{\"image/png\":{\"width\":3}}");
}

static void put_note(struct cell *c, const char *path, int change, bool hash)
{
    struct file_note note = {
        .path = xstrdup(path), .change = change, .size = 5, .has_sha256 = hash};

    memset(note.sha256, 0x0f, sizeof(note.sha256));
    cell_add_file(c, &note);
}

static void the_fullest_cell(void **state)
{
    struct cell *c = cell_new(1, "\"\\", 2);
    (void)state;

    c->outputs = xcalloc(3, sizeof(*c->outputs));
    put_output(c, OUTPUT_STDOUT, "a\n");
    put_output(c, OUTPUT_STDERR, "\xe2\x82\xac");
    put_output(c, OUTPUT_RESULT, "42");
    c->status = CELL_LIMIT;
    cell_set_fault(c, "OSError", "full");
    c->limit.kind = LIMIT_KIND_DISK;
    c->limit.limit = 1 << 20;
    c->limit.used = 1 << 20;
    put_note(c, "plot.png", FILE_CREATED, true);
    put_note(c, "gone", FILE_DELETED, false);
    c->truncated.stderr_bytes = 7;
    c->truncated.displays = 2;
    assert_json(
        c,
        "{\"n\":1,\"code\":\"\\\"\\\\\",\"status\":\"limit\",\"outputs\":["
        "{\"type\":\"stdout\",\"text\":\"a\\n\"},{\"type\":\"stderr\",\"text\":\"\xe2\x82\xac\"},"
        "{\"type\":\"result\",\"data\":{\"text/plain\":\"42\",\"image/png\":\"iVBORw==\"},"
        "\"metadata\":{\"image/png\":{\"width\":3}}}],"
        "\"error\":{\"name\":\"OSError\",\"value\":\"full\",\"traceback\":\"full\"},"
        "\"limit\":{\"kind\":\"disk\",\"limit\":1048576,\"used\":1048576},"
        "\"files\":[{\"path\":\"plot.png\",\"change\":\"created\",\"size\":5,\"sha256\":"
        "\"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f\"},"
        "{\"path\":\"gone\",\"change\":\"deleted\"}],"
        "\"truncated\":{\"stdout_bytes\":0,\"stderr_bytes\":7,\"displays\":2},"
        "\"receipt\":{\"wall_ms\":0,\"cpu_ms\":0,\"peak_memory\":0}}");
    cell_free(c);
}

static void broken_text_is_repaired(void **state)
{
    struct cell *c = cell_new(1, "\xff\0z", 3);
    (void)state;

    put_note(c, "\xed\xa0\x80.txt", FILE_DELETED, false);
    cell_set_error(c, (struct slice){"E\0", 2}, (struct slice){"\x80", 1}, (struct slice){"", 0});
    assert_json(c, "{\"n\":1,\"code\":\"\xef\xbf\xbd\\u0000z\",\"status\":\"ok\",\"outputs\":[],"
                   "\"error\":{\"name\":\"E\xef\xbf\xbd\",\"value\":\"\xef\xbf\xbd\","
                   "\"traceback\":\"\"},\"files\":[{\"path\":\"\xef\xbf\xbd\xef\xbf\xbd"
                   "\xef\xbf\xbd.txt\",\"change\":\"deleted\"}],"
                   "\"receipt\":{\"wall_ms\":0,\"cpu_ms\":0,\"peak_memory\":0}}");
    cell_free(c);
}

static void numbers_are_as_people_write_them(void **state)
{
    struct cell *c = cell_new(1, "", 0);
    (void)state;

    c->limit.kind = LIMIT_KIND_WALL;
    c->limit.limit = 0.1;
    c->limit.used = INFINITY;
    char *text = dump(c);
    assert_non_null(strstr(text, "\"limit\":0.1,\"used\":null"));
    free(text);
    cell_free(c);
}

static void base64_of_every_length(void **state)
{
    static const char *const expected[] = {"", "/w==", "//8=", "////", "/////w=="};
    char data[4];
    (void)state;

    memset(data, 0xff, sizeof(data));
    for (size_t len = 0; len <= 4; len++) {
        struct mime_part part = {.type = "a/b", .data = data, .len = len};
        struct output o = {.kind = OUTPUT_DISPLAY, .parts = &part, .n_parts = 1};
        json_t *j = cell_output_json(&o);
        json_t *text = json_object_get(json_object_get(j, "data"), "a/b");
        assert_string_equal(json_string_value(text), expected[len]);
        json_decref(j);
    }
}

static void every_name_is_there(void **state)
{
    (void)state;
    for (int s = CELL_OK; s <= CELL_CRASHED; s++)
        assert_true(strlen(cell_status_name((enum cell_status)s)) > 0);
    for (int k = LIMIT_KIND_NONE; k <= LIMIT_KIND_OUTPUT; k++)
        assert_true(strlen(limit_kind_name((enum limit_kind)k)) > 0);
}

/* ---- what there is in an environment ---- */

#define LIBRARY                                                                                    \
    "{\"name\":\"n\",\"import\":\"i\",\"version\":\"1\",\"group\":\"core\",\"about\":\"\"}"
#define COMMAND "{\"name\":\"n\",\"version\":\"1\",\"group\":\"core\",\"about\":\"\"}"
#define ENVIRONMENT(libraries, commands, wheels, description)                                      \
    "{\"python\":\"3.11\",\"libraries\":" libraries ",\"commands\":" commands                      \
    ",\"wheels\":" wheels ",\"description\":" description "}"

static bool is_taken(const char *text, const char *type)
{
    struct mime_part part = {
        .type = (char *)(uintptr_t)type, .data = (char *)(uintptr_t)text, .len = strlen(text)};
    struct output shown = {.kind = OUTPUT_DISPLAY, .parts = &part, .n_parts = 1};
    const struct cell c = {.outputs = &shown, .n_outputs = 1};
    json_t *found = cell_environment_json(&c);
    bool taken = found != NULL;

    json_decref(found);
    return taken;
}

static void an_environment_is_checked(void **state)
{
    static const char *const sound[] = {
        ENVIRONMENT("[]", "[]", "[]", "\"\""),
        ENVIRONMENT("[" LIBRARY "," LIBRARY "]", "[" COMMAND "]", "[\"a\"]", "\"text\""),
    };
    static const char *const broken[] = {
        "",
        "[]",
        "{}",
        ENVIRONMENT("{}", "[]", "[]", "\"\""),
        ENVIRONMENT("[" COMMAND "]", "[]", "[]", "\"\""),
        ENVIRONMENT("[]", "[" LIBRARY "]", "[]", "\"\""),
        ENVIRONMENT("[1]", "[]", "[]", "\"\""),
        ENVIRONMENT("[]", "[]", "[[]]", "\"\""),
        ENVIRONMENT("[]", "[]", "[]", "null"),
        ENVIRONMENT("[]", "[]", "[],\"more\":1", "\"\""),
    };
    (void)state;

    for (size_t i = 0; i < sizeof(sound) / sizeof(*sound); i++)
        assert_true(is_taken(sound[i], ENVIRONMENT_TYPE));
    assert_false(is_taken(sound[0], VARIABLES_TYPE));
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
        assert_false(is_taken(broken[i], ENVIRONMENT_TYPE));
}

static void an_environment_is_bounded(void **state)
{
    cleanup_buf struct buf text = {0};
    (void)state;

    for (unsigned extra = 0; extra < 2; extra++) {
        text.len = 0;
        buf_add_text(&text, "{\"python\":\"3\",\"libraries\":[],\"commands\":[],\"wheels\":[\"a\"");
        for (unsigned i = 1; i < ENVIRONMENT_LIST_MAX + extra; i++)
            buf_add_text(&text, ",\"a\"");
        buf_add_text(&text, "],\"description\":\"");
        for (unsigned i = 0; i < ENVIRONMENT_DESCRIPTION_MAX; i++)
            buf_add_text(&text, "x");
        buf_add_text(&text, "\"}");
        assert_int_equal(is_taken(buf_text(&text), ENVIRONMENT_TYPE), extra == 0);
    }
    text.len = 0;
    buf_add_text(&text, "{\"python\":\"3\",\"libraries\":[],\"commands\":[],\"wheels\":[],"
                        "\"description\":\"");
    for (unsigned i = 0; i <= ENVIRONMENT_DESCRIPTION_MAX; i++)
        buf_add_text(&text, "x");
    buf_add_text(&text, "\"}");
    assert_false(is_taken(buf_text(&text), ENVIRONMENT_TYPE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_cell),
        cmocka_unit_test(the_fullest_cell),
        cmocka_unit_test(broken_text_is_repaired),
        cmocka_unit_test(numbers_are_as_people_write_them),
        cmocka_unit_test(base64_of_every_length),
        cmocka_unit_test(every_name_is_there),
        cmocka_unit_test(an_environment_is_checked),
        cmocka_unit_test(an_environment_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
