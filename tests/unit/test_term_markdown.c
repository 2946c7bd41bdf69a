/* Markdown on a terminal: layout at two widths, hostile texts, and blocks that come in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "session/utf8.h"
#include "term/markdown.h"
#include "term/width.h"

static char *render(const char *text, unsigned columns, bool colours)
{
    struct paper paper = {.columns = columns, .colours = colours};
    struct buf out = {0};

    markdown_render(&paper, text, strlen(text), &out);
    buf_add(&out, "", 0);
    return buf_steal(&out);
}

static void assert_plain(const char *text, unsigned columns, const char *expected)
{
    cleanup_free char *got = render(text, columns, false);
    assert_string_equal(got, expected);
}

static void assert_coloured(const char *text, const char *expected)
{
    cleanup_free char *got = render(text, 80, true);
    assert_string_equal(got, expected);
}

static void test_text(void **state)
{
    (void)state;
    assert_plain("", 40, "");
    assert_plain("The five cities that sell most are in the north,\nand *all* of them `grow`.", 40,
                 "The five cities that sell most are in\nthe north, and *all* of them `grow`.\n");
    assert_plain("a  \nb\n\nc\n\n---\n\nd", 40,
                 "a\nb\n\nc\n\n────────────────────────────────────────\n\nd\n");
    assert_plain("# One\ntext\n### Three", 40, "# One\n\ntext\n\n### Three\n");
    assert_plain("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b", 40,
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\naaaaaaaaaa b\n");
    assert_plain("5 &lt; 6 &amp; &#8364; &unknown;", 40, "5 < 6 & € &unknown;\n");
    assert_plain("<b>x</b>", 40, "<b>x</b>\n");
}

static void test_colours(void **state)
{
    (void)state;
    assert_coloured("**b** *i* `c` ~~s~~", "\033[0;1mb\033[0m \033[0;3mi\033[0m \033[0;36mc\033[0m "
                                           "\033[0;9ms\033[0m\n");
    assert_coloured("# T", "\033[0;1;4;34mT\033[0m\n");
    assert_coloured("**a *b* c**", "\033[0;1ma \033[0;1;3mb\033[0;1m c\033[0m\n");
    assert_coloured("```python\nimport x\n```", "  \033[0;35mimport\033[0m x\n");
    assert_coloured("```\nimport x\n```", "  import x\n");
}

static void test_lists(void **state)
{
    (void)state;
    assert_plain("Before:\n- one\n- two with a text that is longer than a line\n  1. deep\n  2. "
                 "deeper\n- three",
                 40,
                 "Before:\n\n• one\n• two with a text that is longer than a\n  line\n  1. deep\n  "
                 "2. deeper\n• "
                 "three\n");
    assert_plain("9. nine\n10. ten\n\n    ```\n    code\n    ```", 40,
                 "9. nine\n\n10. ten\n\n      code\n");
    assert_plain("- [x] done\n- [ ] not", 40, "☑ done\n☐ not\n");
    assert_plain("- a\n\n- b\n\nafter", 40, "• a\n\n• b\n\nafter\n");
    assert_plain("-\n- b", 40, "• \n• b\n");
    assert_plain(
        "> quoted text that goes on for longer than one line\n>\n> - and a list\n\nafter", 40,
        "▌ quoted text that goes on for longer\n▌ than one line\n▌\n▌ • and a list\n\nafter\n");
}

static void test_links_show_where_they_lead(void **state)
{
    (void)state;
    assert_plain("see [the bank](https://evil.example/)", 80,
                 "see the bank (https://evil.example/)\n");
    assert_plain("[https://bank.example](https://evil.example)", 80,
                 "https://bank.example (https://evil.example)\n");
    assert_plain("<https://a.example>", 80, "https://a.example\n");
    assert_plain("![chart](sandbox:/mnt/data/x.png)", 80,
                 "picture: chart (sandbox:/mnt/data/x.png)\n");
    assert_coloured("[a](b)", "\033[0;4ma\033[0;2m (b)\033[0m\n");
    cleanup_free char *got = render("[a](https://x.example \"t\")", 80, true);
    assert_null(strstr(got, "\033]"));
}

static void test_tables(void **state)
{
    static const char sales[] = "| city | sales | note |\n|---|---|:-:|\n| Paris | 1,234.50 | a |\n"
                                "| Nice | −7 % | **bold** |\n| Metz | – | |\n";
    (void)state;
    assert_plain(sales, 80,
                 "┌───────┬──────────┬──────────┐\n"
                 "│ city  │    sales │   note   │\n"
                 "├───────┼──────────┼──────────┤\n"
                 "│ Paris │ 1,234.50 │    a     │\n"
                 "│ Nice  │     −7 % │ **bold** │\n"
                 "│ Metz  │        – │          │\n"
                 "└───────┴──────────┴──────────┘\n");
    assert_plain(
        "| a | b |\n|---|---|\n| 1 | a text that has no room in its column at all |\n| 2 | x |\n",
        40,
        "┌───┬──────────────────────────────────┐\n"
        "│ a │ b                                │\n"
        "├───┼──────────────────────────────────┤\n"
        "│ 1 │ a text that has no room in its   │\n"
        "│   │ column at all                    │\n"
        "├───┼──────────────────────────────────┤\n"
        "│ 2 │ x                                │\n"
        "└───┴──────────────────────────────────┘\n");
    /* No room for columns at all. */
    assert_plain(
        "|a|b|c|d|e|f|g|h|\n|-|-|-|-|-|-|-|-|\n|1111|2222|3333|4444|5555|6666|7777|8888|\n", 40,
        "a: 1111\nb: 2222\nc: 3333\nd: 4444\ne: 5555\nf: 6666\ng: 7777\nh: 8888\n");
}

static void test_widths(void **state)
{
    (void)state;
    assert_int_equal(width_of('a'), 1);
    assert_int_equal(width_of(0x4e2d), 2);
    assert_int_equal(width_of(0x1f600), 2);
    assert_int_equal(width_of(0x0301), 0);
    assert_int_equal(width_of(0x202e), -1);
    assert_int_equal(width_of(0x9b), -1);
    assert_plain("| 城市 | é | x |\n|---|---|---|\n| 北京 | e\xcc\x81 | 😀 |\n", 80,
                 "┌──────┬───┬────┐\n"
                 "│ 城市 │ é │ x  │\n"
                 "├──────┼───┼────┤\n"
                 "│ 北京 │ e\xcc\x81 │ 😀 │\n"
                 "└──────┴───┴────┘\n");
    /* Chinese is cut anywhere, but no line begins with its full stop. */
    assert_plain("中文字中文字中文字中文字中文字中文字中文。字", 40,
                 "中文字中文字中文字中文字中文字中文字中\n文。字\n");
}

/* Rules of one and two dashes are rules, but not in code. */
static void test_short_rules(void **state)
{
    (void)state;
    assert_plain("|a|b|\n|-|:-:|\n|1|2|", 40,
                 "┌───┬───┐\n│ a │ b │\n├───┼───┤\n│ 1 │ 2 │\n└───┴───┘\n");
    assert_plain("a | b\n-- | --:\n1 | 2", 40,
                 "┌───┬───┐\n│ a │ b │\n├───┼───┤\n│ 1 │ 2 │\n└───┴───┘\n");
    assert_plain("```\n|a|b|\n|-|-|\n```", 40, "  |a|b|\n  |-|-|\n");
}

/* Nothing but characters that can be shown, newlines, and colours as ours are written. */
static void assert_harmless(const char *text)
{
    size_t n;

    for (size_t at = 0, len = strlen(text); at < len; at += n) {
        if (strncmp(text + at, "\033[0", 3) == 0) {
            n = 3 + strspn(text + at + 3, ";0123456789") + 1;
            assert_int_equal(text[at + n - 1], 'm');
            continue;
        }
        assert_int_equal(utf8_next(text + at, len - at, &n), UTF8_WHOLE);
        assert_true(text[at] == '\n' || width_of(width_decode(text + at, n)) >= 0);
    }
}

static void test_hostile(void **state)
{
    static const char *const texts[] = {
        "\033]0;title\007 \033[2J\033[31mred \033P+q\033\\ \xc2\x9b[2J",
        "# ![p](q[) ](q[) a", /* md4c leaves more links than it enters */
        "&#27;]52;c;eA==&#7; &#x1b;[2J &#155;0m &#0; &#8238;abc &#1114112; &#99999999999;",
        "[a\033]8;;x\033\\](http://a/&#27;[2J) ![\033[2J](\033c)",
        "```python\n\033[2J 'x\r\b\v\f\n```\n\n    \033c\n",
        "| \033[2J | &#27; |\n|---|---|\n| \x7f | \xe2\x80\xae |\n",
        "# \033[8mhidden\n> \033[5m\n- \033#8\n",
        "\xff\xfe\xc3 \xed\xa0\x80 broken \xe2\x82",
        "a\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81",
        "line\xe2\x80\xa8separator \xf3\xa0\x81\xa1 tag \xef\xbb\xbf",
        "```\033[31m\nx\n```",
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        for (unsigned columns = 20; columns <= 80; columns += 30) {
            cleanup_free char *got = render(texts[i], columns, true);
            assert_harmless(got);
        }
    }
    cleanup_free char *got = render(texts[8], 80, true);
    assert_int_equal(strlen(got), 1 + 4 * 2 + 1);
}

/* `text` so often, between two others. */
static char *repeated(const char *before, const char *text, unsigned n, const char *after)
{
    struct buf b = {0};

    buf_add_text(&b, before);
    for (unsigned i = 0; i < n; i++)
        buf_add_text(&b, text);
    buf_add_text(&b, after);
    buf_add(&b, "", 1);
    return buf_steal(&b);
}

static void test_huge(void **state)
{
    static const struct {
        const char *before, *text;
        unsigned n;
    } cases[] = {{"", "> ", 20000},
                 {"", "- ", 20000},
                 {"", "[", 100000},
                 {"", "*a _b", 40000},
                 {"", "`a``b", 40000},
                 {"", "a ", 120000},
                 {"", "![[](", 40000},
                 {"", "a\n", 2000000},
                 {"|a|\n|-|\n", "|\n", 60000},
                 {"|a|b|c|d|e|f|g|h|\n|-|-|-|-|-|-|-|-|\n", "|\n", 60000},
                 {"", "&#27;", 50000},
                 {"", "1. a\n   ", 5000}};

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int64_t from = clock_now_ms();
        cleanup_free char *text = repeated(cases[i].before, cases[i].text, cases[i].n, "x");
        cleanup_free char *got = render(text, 80, true);
        assert_harmless(got);
        assert_true(strlen(got) < 32 * strlen(text) + 100000);
        assert_true(clock_now_ms() - from < 20000);
    }
    /* A row for each line, a cell for each column: such a table is shown as it is written. */
    cleanup_free char *head = repeated("", "|a", 1000, "|\n");
    cleanup_free char *rule = repeated("", "|-", 1000, "|\n");
    cleanup_free char *both = xasprintf("%s%s", head, rule);
    cleanup_free char *wide = repeated(both, "|x\n", 20000, "");
    cleanup_free char *got = render(wide, 80, false);
    assert_null(strstr(got, "┌"));
    assert_non_null(strstr(got, "|x"));
}

/* ---- pieces ---- */

static const char document[] = "# Title\n\nA paragraph\nof two lines.\n\n- one\n\n  still one\n\n- "
                               "two\n  ```python\n  x = 1\n\n  y = 2\n  ```\n\n"
                               "~~~\ncode\n\n# not a title\n~~~\nafter\n\n| a | b |\n|---|---|\n| "
                               "1 | 2 |\n\n1. x\n\n2. y\n\nThe end";

/* The blocks that came out, with a line between them. */
static void flow_in_pieces(size_t piece, struct buf *out)
{
    struct flow f = {0};
    cleanup_buf struct buf whole = {0};

    for (size_t at = 0, len = strlen(document); at < len; at += piece) {
        flow_feed(&f, document + at, len - at < piece ? len - at : piece, &whole);
        if (whole.len > 0) {
            buf_add(out, whole.data, whole.len);
            buf_add_text(out, "=\n");
        }
        whole.len = 0;
    }
    flow_end(&f, &whole);
    buf_add(out, whole.data, whole.len);
    flow_done(&f);
}

static void test_blocks_in_pieces(void **state)
{
    static const char expected[] = "# Title\n\n=\nA paragraph\nof two lines.\n\n=\n- one\n\n  "
                                   "still one\n\n- two\n  ```python\n  x = 1\n\n  y = "
                                   "2\n  ```\n\n=\n~~~\ncode\n\n# not a title\n~~~\nafter\n\n=\n| "
                                   "a | b |\n|---|---|\n| 1 | 2 |\n\n=\n1. x\n\n2. "
                                   "y\n\nThe end";

    (void)state;
    for (size_t piece = 1; piece < 4; piece++) {
        cleanup_buf struct buf out = {0};
        flow_in_pieces(piece, &out);
        assert_string_equal(buf_text(&out), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),   cmocka_unit_test(test_colours),
        cmocka_unit_test(test_lists),  cmocka_unit_test(test_links_show_where_they_lead),
        cmocka_unit_test(test_tables), cmocka_unit_test(test_short_rules),
        cmocka_unit_test(test_widths), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_huge),   cmocka_unit_test(test_blocks_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
