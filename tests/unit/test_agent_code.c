/* The code in what a model writes: in arguments that come in pieces, in arguments of any shape, in fenced blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/blocks.h"
#include "agent/code_scan.h"
#include "agent/reply.h"
#include "base/buf.h"

/* ---- arguments in pieces ---- */

static void assert_scan(const char *arguments, size_t len, const char *code, bool whole)
{
    for (size_t piece = 1; piece <= len; piece++) {
        struct code_scan s = {0};
        cleanup_buf struct buf out = {0};
        for (size_t at = 0; at < len; at += piece)
            code_scan(&s, arguments + at, len - at < piece ? len - at : piece, &out);
        assert_string_equal(buf_text(&out), code);
        assert_int_equal(code_scan_whole(&s), whole);
    }
}

#define scans(arguments, code, whole) assert_scan(arguments, sizeof(arguments) - 1, code, whole)

static void code_is_heard_as_it_comes(void **state)
{
    (void)state;
    scans("{\"code\":\"x = 1\"}", "x = 1", true);
    scans(" { \"code\" : \"a\\n\\\"b\\\"\\t\\\\ \\/\" } ", "a\n\"b\"\t\\ /", true);
    scans("{\"code\":\"caf\\u00e9 \\u20AC \\ud83d\\ude00 é 😀\"}", "café € 😀 é 😀", true);
    scans("{\"a\":{\"code\":\"no\",\"b\":[\"]\\\"}\"]},\"n\":-1.5e3,\"s\":\"\\\"code\\\"\","
          "\"code\":\"yes\"}",
          "yes", true);
    scans("{\"code\":\"x\",\"timeout\":3}", "x", true);
    scans("{\"code\":\"two\nlines\"}", "two\nlines", true);
    scans("{\"code\":\"", "", false);
    scans("{\"code\":\"half \\u00", "half ", false);
    scans("{\"code\":\"x\"", "x", false);
}

static void what_is_none_is_not_made_up(void **state)
{
    (void)state;
    scans("{\"code\":\"\\ud83d!\\ude00\\ud83d\"}", "\xef\xbf\xbd!\xef\xbf\xbd\xef\xbf\xbd", true);
    scans("{\"code\":\"a\\u0000b\"}", "a", false);
    scans("{\"code\":\"a\0b\"}", "a", false);
    scans("{\"code\":\"a\\xb\"}", "a", false);
    scans("{\"code\":\"a\\u12g4\"}", "a", false);
    scans("{\"code\":\"a\",\"code\":\"b\"}", "a", false);
    scans("{\"code\":[\"a\"]}", "", false);
    scans("{\"co\\u0064e\":\"a\"}", "", false);
    scans("{\"codes\":\"a\",\"cod\":\"b\"}", "", false);
    scans("{\"code\":\"a\"}}", "a", false);
    scans("import os", "", false);
    scans("[{\"code\":\"a\"}]", "", false);
    scans("{}", "", false);
}

/* ---- arguments of any shape ---- */

static void assert_code(const char *arguments, size_t len, const char *expected)
{
    struct err e = {0};
    char *code = call_code(arguments, len, &e);

    if (expected) {
        assert_non_null(code);
        assert_string_equal(code, expected);
    } else {
        assert_null(code);
        assert_non_null(strstr(e.text, "{\"code\""));
    }
    free(code);
}

#define code_of(arguments, expected) assert_code(arguments, sizeof(arguments) - 1, expected)

static void shapes_that_models_give_it(void **state)
{
    (void)state;
    code_of("{\"code\":\"x = 1\\n\"}", "x = 1\n");
    code_of("  {\"code\":\"x\"}\n", "x");
    code_of("{\"code\":[\"x = 1\",\"x\"]}", "x = 1\nx");
    code_of("{\"source\":\"x\"}", "x");
    code_of("{\"code\":\"x\",\"why\":\"y\"}", "x");
    code_of("\"x = 1\"", "x = 1");
    code_of("\"{\\\"code\\\":\\\"x\\\"}\"", "x");
    code_of("x = 1\nprint(x)", "x = 1\nprint(x)");
    code_of("42", "42");
    code_of("[1, 2]", "[1, 2]");
    code_of("{\"code\":\"two\nlines\"}", "two\nlines");
    code_of("{\"code\":\"\\ud83d\"}", "\xef\xbf\xbd");
    code_of("{\"code\":\"```python\\nx = 1\\n```\"}", "x = 1\n");
    code_of("{\"code\":\"\\n```\\nx\\n```\\n\"}", "x\n");
    code_of("{\"code\":\"s = '''\\n```\\n'''\"}", "s = '''\n```\n'''");
}

static void no_code_is_a_sentence_for_the_model(void **state)
{
    (void)state;
    code_of("", NULL);
    code_of(" \n", NULL);
    code_of("{}", NULL);
    code_of("{\"a\":\"x\",\"b\":\"y\"}", NULL);
    code_of("{\"code\":1}", NULL);
    code_of("{\"code\":null}", NULL);
    code_of("{\"code\":\" \\n\"}", NULL);
    code_of("{\"code\":[1]}", NULL);
    code_of("{\"code\":\"a\\u0000b\"}", NULL);
    code_of("a\0b", NULL);
    code_of("{\"code\":\"import os; os.remo", NULL);
    code_of("{\"code\":\"a\",\"code\":\"b\"}", NULL);
    code_of("\"import os", NULL);
}

/* ---- blocks ---- */

/* The blocks of Python, as "code;" each. */
static void assert_blocks(const char *text, const char *expected)
{
    cleanup_buf struct buf found = {0};
    struct block b;
    size_t at = 0;

    while (block_next(text, strlen(text), &at, &b)) {
        cleanup_free char *code = block_code(&b);
        if (b.python)
            buf_add_fmt(&found, "%s%s;", code, b.closed ? "" : "…");
    }
    assert_string_equal(buf_text(&found), expected);
}

static void blocks_of_python(void **state)
{
    (void)state;
    assert_blocks("Look:\n```python\nx = 1\n```\nand\n```py\ny\n\nz\n```\n", "x = 1\n;y\n\nz\n;");
    assert_blocks("~~~python\nx\n~~~\n", "x\n;");
    assert_blocks("```Python3\nx\n```\n``` py title=a\ny\n```\n```{.python}\nz\n```",
                  "x\n;y\n;z\n;");
    assert_blocks(
        "```text\nx\n```\n```json\n{}\n```\n```\nx\n```\n```pycon\n>>> 1\n```\n```bash\nls\n```",
        "");
    assert_blocks("1. so:\n   ```python\n   if x:\n       y\n   ```\n", "if x:\n    y\n;");
    assert_blocks("````markdown\n```python\nx\n```\n````\n```python\ny\n```", "y\n;");
    assert_blocks("````python\ns = '''\n```\n'''\n````\n", "s = '''\n```\n'''\n;");
    assert_blocks("```python\nx\n~~~\n``\ny\n``` \n", "x\n~~~\n``\ny\n;");
    assert_blocks("```python\r\nx\r\n```\r\n", "x\r\n;");
    assert_blocks("use ```python x``` here\n```python x```\n", "");
}

static void a_block_that_is_never_closed(void **state)
{
    (void)state;
    assert_blocks("```python\nx = 1\n", "x = 1\n…;");
    assert_blocks("```python\nx = 1\n```python\ny", "x = 1\n```python\ny…;");
    assert_blocks("```python", "…;");
    assert_blocks("", "");
}

static void take(struct reply *r, const char *text, bool cut)
{
    struct err e;

    reply_init(r, NULL);
    assert_int_equal(reply_add_text(r, text, strlen(text), &e), 0);
    r->over = true;
    r->cut = cut;
    assert_int_equal(reply_finish(r, &e), 0);
    reply_take_blocks(r);
}

static void blocks_become_calls(void **state)
{
    struct reply r;
    (void)state;

    take(&r, "First\n```python\nx = \"é\"\n```\nthen\n```python\nx\n```\n```json\n1\n```", false);
    assert_int_equal(r.n_calls, 2);
    assert_string_equal(buf_text(&r.calls[0].arguments), "{\"code\":\"x = \\\"é\\\"\\n\"}");
    assert_string_equal(r.calls[1].name, "python");
    assert_string_not_equal(r.calls[0].id, r.calls[1].id);
    reply_done(&r);

    take(&r, "```python\nx\n```\n```python\ny", false);
    assert_int_equal(r.n_calls, 2);
    reply_done(&r);
    take(&r, "```python\nx\n```\n```python\nimport os; os.remo", true);
    assert_int_equal(r.n_calls, 1);
    reply_done(&r);
    take(&r, "```python\n\n```\n", false);
    assert_int_equal(r.n_calls, 0);
    reply_done(&r);
}

static void more_blocks_than_calls_are_left(void **state)
{
    cleanup_buf struct buf text = {0};
    struct reply r;
    (void)state;

    for (int i = 0; i < 100; i++)
        buf_add_text(&text, "```python\nx\n```\n");
    take(&r, buf_text(&text), false);
    assert_int_equal(r.n_calls, REPLY_CALLS);
    reply_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_heard_as_it_comes),
        cmocka_unit_test(what_is_none_is_not_made_up),
        cmocka_unit_test(shapes_that_models_give_it),
        cmocka_unit_test(no_code_is_a_sentence_for_the_model),
        cmocka_unit_test(blocks_of_python),
        cmocka_unit_test(a_block_that_is_never_closed),
        cmocka_unit_test(blocks_become_calls),
        cmocka_unit_test(more_blocks_than_calls_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
