/* MCP's tools, as far as they can be without a server: arguments, content, URIs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "gate/mcp/tools.h"

#define LIST_MAX 10000 /* bytes of all that a client is told of the tools: 2,500 tokens or so */

extern const char tools_json[];
extern const size_t tools_json_len;

static json_t *loaded(const char *text)
{
    json_error_t at;
    json_t *j = json_loads(text, 0, &at);

    if (!j)
        fail_msg("%s: %s", text, at.text);
    return j;
}

/* ---- arguments ---- */

static const char schema[] =
    "{'type':'object','properties':{'a':{'type':'string','minLength':1},'n':{'type':'integer',"
    "'minimum':1,'maximum':9},'t':{'type':'number','exclusiveMinimum':0},'b':{'type':'boolean'}},"
    "'required':['a'],'additionalProperties':false}";

static json_t *quoted(const char *text)
{
    cleanup_free char *copy = xstrdup(text);

    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    return loaded(copy);
}

static void arguments_are_checked(void **state)
{
    static const struct {
        const char *arguments, *why; /* NULL: they are right */
    } cases[] = {
        {"{'a':'x'}", NULL},
        {"{'a':'x','n':1,'t':0.5,'b':true}", NULL},
        {"{'a':'x','n':9.0,'t':3}", NULL},
        {"{'a':'x','n':null,'b':null}", NULL},
        {"{}", "the argument \"a\" is missing"},
        {"{'a':null}", "the argument \"a\" is missing"},
        {"{'a':''}", "\"a\" must not be empty"},
        {"{'a':5}", "\"a\" must be of type string, not integer"},
        {"{'a':['x']}", "\"a\" must be of type string, not array"},
        {"{'a':'x','n':0}", "\"n\" must be at least 1"},
        {"{'a':'x','n':10}", "\"n\" must be at most 9"},
        {"{'a':'x','n':1.5}", "\"n\" must be of type integer, not number"},
        {"{'a':'x','n':1e300}", "\"n\" must be of type integer, not number"},
        {"{'a':'x','n':'1'}", "\"n\" must be of type integer, not string"},
        {"{'a':'x','n':true}", "\"n\" must be of type integer, not boolean"},
        {"{'a':'x','t':0}", "\"t\" must be above 0"},
        {"{'a':'x','t':-1e308}", "\"t\" must be above 0"},
        {"{'a':'x','b':1}", "\"b\" must be of type boolean, not integer"},
        {"{'a':'x','z':1}", "there is no argument \"z\"; there are \"a\", \"n\", \"t\", \"b\""},
        {"[]", "the arguments must be an object"},
    };
    json_t *s = quoted(schema);
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *arguments = quoted(cases[i].arguments);
        struct err e = {0};
        assert_int_equal(tool_check(s, arguments, &e), cases[i].why ? -1 : 0);
        if (cases[i].why)
            assert_string_equal(e.text, cases[i].why);
        json_decref(arguments);
    }
    json_decref(s);
}

static void paths_are_taken_as_models_write_them(void **state)
{
    (void)state;
    assert_string_equal(tool_path("a/b"), "a/b");
    assert_string_equal(tool_path("/mnt/data/a/b"), "a/b");
    assert_string_equal(tool_path("./a"), "a");
    assert_string_equal(tool_path("/mnt/data/./a"), "a");
    assert_string_equal(tool_path("/mnt/data"), "/mnt/data");
    assert_string_equal(tool_path("/etc/passwd"), "/etc/passwd");
    assert_string_equal(tool_path("../a"), "../a");
}

/* What the checker does not know must not be in a schema; and a model has to read all of it. */
static void the_tools_are_described(void **state)
{
    static const char *const known[] = {
        "type",    "description",      "x-mcp-header", "minimum",
        "maximum", "exclusiveMinimum", "minLength",
    };
    json_t *list = json_loadb(tools_json, tools_json_len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *tool;
    size_t i;
    (void)state;

    assert_non_null(list);
    assert_true(json_dumpb(list, NULL, 0, JSON_COMPACT) < LIST_MAX);
    json_array_foreach(list, i, tool)
    {
        json_t *input = json_object_get(tool, "inputSchema");
        json_t *properties = json_object_get(input, "properties"), *property, *value;
        const char *name, *key;
        assert_ptr_equal(mcp_tool_described("run_python") != NULL,
                         mcp_tool_described(json_string_value(json_object_get(tool, "name"))) !=
                             NULL);
        assert_true(json_is_string(json_object_get(tool, "description")));
        assert_true(json_is_object(json_object_get(tool, "outputSchema")));
        assert_true(json_is_false(json_object_get(input, "additionalProperties")));
        assert_non_null(json_object_get(properties, "session"));
        json_object_foreach(properties, name, property)
        {
            json_object_foreach(property, key, value)
            {
                bool found = false;
                for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
                    found |= strcmp(known[k], key) == 0;
                assert_true(found);
            }
        }
    }
    json_decref(list);
    assert_null(mcp_tool_described("run_pythons"));
}

/* ---- URIs ---- */

static void a_uri_leads_back(void **state)
{
    static const char *const paths[] = {"a",       "a b/c%d.txt", "é/\xff\xfe", "a?b#c&d=e",
                                        "a\nb\tc", "..a/b..",     "[x]:y@z!*'"};
    (void)state;

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        cleanup_buf struct buf uri = {0};
        cleanup_free char *session = NULL, *path = NULL;
        mcp_uri_add(&uri, "S-1_x.y", paths[i]);
        assert_int_equal(strncmp(buf_text(&uri), "retort://S-1_x.y/", 17), 0);
        assert_int_equal(
            strspn(uri.data + 9,
                   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%/"),
            uri.len - 9);
        assert_int_equal(uri_parse(buf_text(&uri), &session, &path), 0);
        assert_string_equal(session, "S-1_x.y");
        assert_string_equal(path, paths[i]);
    }
}

static json_t *answered;

static void take_answer(struct mcp_call *c, json_t *message)
{
    (void)c;
    json_decref(answered);
    answered = message;
}

static void take_nothing(struct mcp_call *c)
{
    (void)c;
}

static void long_cursors_are_none(void **state)
{
    static const struct mcp_outlet outlet = {.answer = take_answer, .free = take_nothing};
    struct mcp_call c = {.outlet = &outlet};
    char text[CURSOR_LONGEST + 2];
    (void)state;

    memset(text, 'a', sizeof(text) - 1);
    memcpy(text, "1.", 2);
    text[sizeof(text) - 1] = '\0';
    c.id = json_integer(1);
    c.params = json_pack("{s:s,s:s}", "session", "S", "cursor", text);
    tool_list_files(&c, c.params);
    assert_true(json_is_true(json_object_get(json_object_get(answered, "result"), "isError")));
    c = (struct mcp_call){.outlet = &outlet};
    c.id = json_integer(1);
    c.params = json_pack("{s:s}", "cursor", text);
    mcp_resources_list(&c);
    assert_non_null(json_object_get(answered, "error"));
    json_decref(answered);
}

/* All of it would have to be encoded, in the time of everybody else. */
static void what_is_too_long_is_not_taken(void **state)
{
    const size_t len = 1 << 20;
    cleanup_free char *text = xcalloc(1, len + 1);
    struct mcp_call c = {0};
    char *session, *path;
    (void)state;

    memset(text, 'a', len);
    json_t *arguments = json_pack("{s:s}", "session", text);
    const struct work *w = work_new(&c, arguments, sizeof(*w), NULL);
    assert_in_range(strlen(w->session), SESSION_ID_MAX, 1000); /* none that there could be */
    c.abandon(c.work);
    json_decref(arguments);
    cleanup_free char *where = xasprintf("retort://%s/a", text),
                      *which = xasprintf("retort://S/%s", text);
    assert_int_equal(uri_parse(where, &session, &path), -1);
    assert_int_equal(uri_parse(which, &session, &path), -1);
}

static void what_is_no_uri_of_ours(void **state)
{
    static const char *const uris[] = {
        "",
        "retort:",
        "retort://",
        "retort://S",
        "retort://S/",
        "retort:///a",
        "file://S/a",
        "RETORT://S/a",
        "retort://S/../a",
        "retort://S/a/..",
        "retort://S/%2e%2e/a",
        "retort://S/%2E./a",
        "retort://S//a",
        "retort://S/a//b",
        "retort://S/a%00",
        "retort://S%00/a",
        "retort://S/a%",
        "retort://S/a%0",
        "retort://S/a%zz",
        "retort://S/%2Fetc/passwd",
    };
    cleanup_buf struct buf deep = {0}, wide = {0};
    char *session, *path;
    (void)state;

    for (size_t i = 0; i < sizeof(uris) / sizeof(*uris); i++)
        assert_int_equal(uri_parse(uris[i], &session, &path), -1);
    buf_add_text(&deep, "retort://S/a");
    for (unsigned i = 0; i < 5000; i++)
        buf_add_text(&deep, "/a");
    assert_int_equal(uri_parse(buf_text(&deep), &session, &path), -1);
    buf_add_text(&wide, "retort://S/");
    for (unsigned i = 0; i < 256; i++)
        buf_add_text(&wide, "%41");
    assert_int_equal(uri_parse(buf_text(&wide), &session, &path), -1);
    wide.len -= 3;
    assert_int_equal(uri_parse(buf_text(&wide), &session, &path), 0);
    assert_int_equal(strlen(path), 255);
    free(session);
    free(path);
}

/* ---- content ---- */

static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\6\x20\0\0\0\x10\10\2\0\0\0";
static const char jpeg[] = "\xFF\xD8\xFF\xE0\0\4JF\xFF\xFF\xC2\0\21\10\0\x20\0\x30\3";

static void headers_of_pictures_are_read(void **state)
{
    unsigned width, height;
    (void)state;

    assert_string_equal(content_picture_type(png, sizeof(png) - 1, &width, &height), "image/png");
    assert_int_equal(width, 1568);
    assert_int_equal(height, 16);
    assert_string_equal(content_picture_type(jpeg, sizeof(jpeg) - 1, &width, &height),
                        "image/jpeg");
    assert_int_equal(width, 48);
    assert_int_equal(height, 32);
    for (size_t len = 0; len < 24; len++)
        assert_null(content_picture_type(png, len, &width, &height));
    for (size_t len = 0; len < 18; len++) {
        cleanup_free char *exact = xcalloc(1, len ? len : 1);
        memcpy(exact, jpeg, len);
        assert_null(content_picture_type(exact, len, &width, &height));
    }
    assert_null(content_picture_type("GIF89a                      ", 28, &width, &height));
    assert_null(content_picture_type("\xFF\xD8\xFF\xE0\xFF\xFFxxxxxxxxxxxxx", 19, &width, &height));
    assert_null(
        content_picture_type("\xFF\xD8\xFF\xE0\0\0\0\0\0\0\0\0\0\0\0\0", 16, &width, &height));
}

static void text_is_told_from_bytes(void **state)
{
    (void)state;
    assert_true(content_is_text("", 0));
    assert_true(content_is_text("a\tb\r\n\033[1mé", 11));
    assert_true(content_is_text("caf\xC3", 4)); /* the rest of it follows */
    assert_false(content_is_text("a\0b", 3));
    assert_false(content_is_text("\x89PNG", 4));
    assert_false(content_is_text("\xC3(", 2));
    assert_false(content_is_text("\x7f", 1));
}

static void contents_are_text_or_a_blob(void **state)
{
    json_t *text = content_resource("retort://S/a", "text/csv; charset=utf-8", "a,b", 3);
    json_t *blob = content_resource("retort://S/b", "text/plain", "\0\1", 2);
    json_t *cut = content_resource("retort://S/b", "text/plain", "caf\xC3", 4);
    cleanup_free char *quotes = xcalloc(1, 2u << 20);
    (void)state;

    assert_string_equal(json_string_value(json_object_get(text, "text")), "a,b");
    assert_string_equal(json_string_value(json_object_get(text, "mimeType")), "text/csv");
    assert_string_equal(json_string_value(json_object_get(blob, "blob")), "AAE=");
    assert_null(json_object_get(blob, "text"));
    assert_non_null(json_object_get(cut, "blob"));
    json_decref(text);
    json_decref(blob);
    json_decref(cut);
    memset(quotes, '"', 2u << 20); /* would be twice as long */
    blob = content_resource("retort://S/q", "text/plain", quotes, 2u << 20);
    assert_non_null(json_object_get(blob, "blob"));
    json_decref(blob);
    json_t *none = content_text(NULL, 0);
    assert_string_equal(json_string_value(json_object_get(none, "text")), "");
    json_decref(none);
}

static const struct mcp_call modern = {.era = MCP_MODERN, .version = MCP_MODERN_VERSION};
static const struct mcp_call oldest = {.era = MCP_LEGACY, .version = "2025-03-26"};

static json_t *display(const char *type, const char *bytes, size_t len)
{
    json_t *picture = content_picture(type, bytes, len);
    json_t *output = json_pack("{s:s,s:{s:O}}", "type", "display", "data", type,
                               json_object_get(picture, "data"));

    json_decref(picture);
    return output;
}

static json_t *some_cell(json_t *outputs, json_t *files)
{
    return json_pack("{s:i,s:s,s:s,s:o,s:o}", "n", 3, "status", "ok", "summary", "result: 1",
                     "outputs", outputs, "files", files);
}

static const char *text_of(const json_t *content)
{
    return json_string_value(json_object_get(json_array_get(content, 0), "text"));
}

static unsigned count(const json_t *content, const char *type)
{
    const json_t *block;
    unsigned n = 0;
    size_t i;

    json_array_foreach(content, i, block)
    {
        n += strcmp(json_string_value(json_object_get(block, "type")), type) == 0;
    }
    return n;
}

static void a_new_session_is_named(void **state)
{
    json_t *cell = some_cell(json_array(), json_array());
    json_t *made = content_cell(&modern, cell, "S", true);
    json_t *old = content_cell(&modern, cell, "S", false);
    (void)state;

    assert_string_equal(text_of(made), "session: S\n\nresult: 1");
    assert_string_equal(text_of(old), "result: 1");
    json_decref(made);
    json_decref(old);
    json_decref(cell);
}

static void pictures_are_shown_within_bounds(void **state)
{
    json_t *outputs = json_array();
    cleanup_free char *large = xcalloc(1, PICTURE_BYTES + 10);
    char wide[sizeof(png)], flat[sizeof(png)];
    (void)state;

    memcpy(large, png, sizeof(png));
    memcpy(wide, png, sizeof(png));
    wide[19] = '\x21'; /* 1569 pixels */
    memcpy(flat, png, sizeof(png));
    flat[23] = 0;
    json_array_append_new(outputs, display("image/png", large, PICTURE_BYTES + 10));
    json_array_append_new(outputs, display("image/png", wide, sizeof(png)));
    json_array_append_new(outputs, display("image/png", flat, sizeof(png)));
    json_array_append_new(outputs, display("image/png", "harm", 4));
    json_array_append_new(outputs,
                          json_pack("{s:s,s:{s:i}}", "type", "display", "data", "image/png", 5));
    json_array_append_new(
        outputs, json_pack("{s:s,s:{s:s}}", "type", "display", "data", "image/png", "n*t base64"));
    for (unsigned i = 0; i < 6; i++)
        json_array_append_new(outputs, i % 2 ? display("image/jpeg", jpeg, sizeof(jpeg))
                                             : display("image/png", png, sizeof(png)));
    json_t *cell = some_cell(outputs, json_array());
    json_t *content = content_cell(&modern, cell, "S", false);
    assert_int_equal(count(content, "image"), PICTURES_MAX);
    assert_string_equal(text_of(content),
                        "result: 1\nnote: 5 of the pictures cannot be shown here: larger than 1 MiB"
                        "\nnote: 2 more pictures are not shown: 4 are the most of one call");
    assert_string_equal(json_string_value(json_object_get(json_array_get(content, 2), "mimeType")),
                        "image/jpeg");
    json_decref(content);
    json_decref(cell);
}

static json_t *changed_files(unsigned n)
{
    json_t *files = json_pack("[{s:s,s:s}]", "path", "gone", "change", "deleted");

    for (unsigned i = 0; i < n; i++)
        json_array_append_new(files, json_pack("{s:o,s:s,s:i}", "path", json_sprintf("f %u", i),
                                               "change", "created", "size", 5));
    return files;
}

static void files_are_linked(void **state)
{
    json_t *cell = some_cell(json_array(), changed_files(150));
    json_t *content = content_cell(&modern, cell, "S", false);
    json_t *plain = content_cell(&oldest, cell, "S", false);
    json_t *structured = content_cell_structured(cell, "S");
    const json_t *files = json_object_get(structured, "files"), *first = json_array_get(files, 1);
    const json_t *link = json_array_get(content, 1);
    (void)state;

    assert_int_equal(count(content, "resource_link"), LINKS_MAX);
    assert_string_equal(json_string_value(json_object_get(link, "uri")), "retort://S/f%200");
    assert_string_equal(json_string_value(json_object_get(link, "name")), "f 0");
    assert_int_equal(json_integer_value(json_object_get(link, "size")), 5);
    assert_non_null(strstr(text_of(content), "130 more files are not linked"));
    assert_int_equal(json_array_size(plain), 1); /* that revision has no links */
    assert_int_equal(json_array_size(files), FILES_MAX);
    assert_int_equal(json_integer_value(json_object_get(structured, "files_left_out")), 51);
    assert_null(json_object_get(json_array_get(files, 0), "uri"));
    assert_string_equal(json_string_value(json_object_get(first, "uri")), "retort://S/f%200");
    json_decref(content);
    json_decref(plain);
    json_decref(structured);
    json_decref(cell);
}

static void a_limit_has_no_nulls(void **state)
{
    json_t *cell = some_cell(json_array(), json_array());
    (void)state;

    json_object_set_new(cell, "limit",
                        json_pack("{s:s,s:n,s:i}", "kind", "wall", "limit", "used", 2));
    json_object_set_new(cell, "restored_to", json_integer(2));
    json_t *structured = content_cell_structured(cell, "S");
    assert_int_equal(json_object_size(json_object_get(structured, "limit")), 2);
    assert_int_equal(json_integer_value(json_object_get(structured, "restored_to")), 2);
    assert_int_equal(json_integer_value(json_object_get(structured, "cell")), 3);
    json_decref(structured);
    json_decref(cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(paths_are_taken_as_models_write_them),
        cmocka_unit_test(the_tools_are_described),
        cmocka_unit_test(a_uri_leads_back),
        cmocka_unit_test(what_is_no_uri_of_ours),
        cmocka_unit_test(what_is_too_long_is_not_taken),
        cmocka_unit_test(long_cursors_are_none),
        cmocka_unit_test(headers_of_pictures_are_read),
        cmocka_unit_test(text_is_told_from_bytes),
        cmocka_unit_test(contents_are_text_or_a_blob),
        cmocka_unit_test(a_new_session_is_named),
        cmocka_unit_test(pictures_are_shown_within_bounds),
        cmocka_unit_test(files_are_linked),
        cmocka_unit_test(a_limit_has_no_nulls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
