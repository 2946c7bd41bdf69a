/* Python in colours: the words, and that pieces make no difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "term/highlight.h"

static void on_line(void *ctx, const struct rich *line)
{
    rich_write(line, 0, line->text.len, true, ctx);
    buf_add_text(ctx, "\n");
}

static void colour(const char *code, size_t piece, struct buf *out)
{
    struct highlight h;

    highlight_init(&h, on_line, out);
    for (size_t at = 0, len = strlen(code); at < len; at += piece)
        highlight_feed(&h, code + at, len - at < piece ? len - at : piece);
    highlight_end(&h);
    highlight_done(&h);
}

/* As "<k>def</k>"-like marks, which are easier to read than what terminals do: a letter for each style. */
static void assert_code(const char *code, const char *expected)
{
    static const char *const marks[][2] = {
        {"\033[0;35m", "{k:"},  {"\033[0;36m", "{n:"}, {"\033[0;32m", "{s:"},
        {"\033[0;2;3m", "{c:"}, {"\033[0;1m", "{d:"},  {"\033[0;1;35m", "{m:"},
        {"\033[0m", "}"},
    };
    cleanup_buf struct buf out = {0}, readable = {0};

    colour(code, 1000, &out);
    for (const char *p = buf_text(&out); *p;) {
        unsigned i = 0;
        while (i < 7 && strncmp(p, marks[i][0], strlen(marks[i][0])) != 0)
            i++;
        buf_add(&readable, i < 7 ? marks[i][1] : p, i < 7 ? strlen(marks[i][1]) : 1);
        p += i < 7 ? strlen(marks[i][0]) : 1;
    }
    assert_string_equal(buf_text(&readable), expected);
}

static void test_words(void **state)
{
    (void)state;
    assert_code("import pandas as pd\n", "{k:import} pandas {k:as} pd\n");
    assert_code("def mean(self, x=1.5e-3):", "{k:def} {d:mean}({n:self}, x={n:1.5e-3}):\n");
    assert_code("class A(B): pass", "{k:class} {d:A}(B): {k:pass}\n");
    assert_code("x.is_in.for_ = None # it's", "x.is_in.for_ = {n:None} {c:# it's}\n");
    assert_code("df.from.x", "df.from.x\n"); /* an attribute is no keyword */
    assert_code("@cache\n@ b", "{k:@cache}\n{k:@} b\n");
    assert_code("0x1F+2 .5 1_000", "{n:0x1F}+{n:2} {n:.5} {n:1_000}\n");
    assert_code("größe = 名前", "größe = 名前\n");
}

static void test_strings(void **state)
{
    (void)state;
    assert_code("a = 'x\\'y' + \"#\"", "a = {s:'x\\'y'} + {s:\"#\"}\n");
    assert_code("rb'\\' f\"{x}\" u''", "{s:rb'\\' f\"{x}\" u''}\n"); /* as Python itself reads it */
    assert_code("s = '''a\n# b\n''' # c", "s = {s:'''a}\n{s:# b}\n{s:'''} {c:# c}\n");
    assert_code("s = 'a\nfor", "s = {s:'a}\n{k:for}\n"); /* not closed: it ends with its line */
    assert_code("s = 'a\\\nfor'\nfor", "s = {s:'a\\}\n{s:for'}\n{k:for}\n");
    assert_code("\"\"\"\"q\"\"\" in", "{s:\"\"\"\"q\"\"\"} {k:in}\n");
    assert_code("bar'x'", "bar{s:'x'}\n"); /* the end of a name is no prefix */
}

static void test_magics(void **state)
{
    (void)state;
    assert_code("%pip install x\n!ls for", "{m:%pip install x}\n{m:!ls for}\n");
    assert_code("%%bash\nfor x", "{m:%%bash}\nfor x\n");
    assert_code("%%time\nfor x", "{m:%%time}\n{k:for} x\n");
    assert_code("a = (5\n  % 3)", "a = ({n:5}\n  % {n:3})\n");
}

static void test_pieces(void **state)
{
    static const char code[] =
        "import os\n\ndef f(x):\r\n    '''doc é名\n  more'''\n    return f\"{x}\" # ü\n"
        "\nprint(0x1f, 'a\\'b')";
    cleanup_buf struct buf whole = {0};

    (void)state;
    colour(code, sizeof(code), &whole);
    for (size_t piece = 1; piece < 20; piece++) {
        cleanup_buf struct buf out = {0};
        colour(code, piece, &out);
        assert_string_equal(buf_text(&out), buf_text(&whole));
    }
}

static void test_escapes_do_not_pass(void **state)
{
    cleanup_buf struct buf out = {0};

    (void)state;
    colour("x = '\033]0;title\007' # \xc2\x9b 31m \xff \xe2\x80\xae", 3, &out);
    for (size_t i = 0; i < out.len; i++) {
        unsigned char c = (unsigned char)out.data[i];
        assert_true(c >= 0x20 || c == '\n' || (c == 033 && out.data[i + 1] == '['));
        assert_false(c == 0xc2 && (unsigned char)out.data[i + 1] < 0xa0);
    }
    assert_null(strstr(buf_text(&out), "\033]"));
    assert_null(strstr(buf_text(&out), "\xe2\x80\xae"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_magics),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_escapes_do_not_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
