/* Files of "key = value": what is a line, and what a comment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/keyvalue.h"

static int note(void *ctx, unsigned line, const char *key, char *value, struct err *e)
{
    if (strcmp(key, "bad") == 0)
        return err_set(e, 0, "no \"%s\" here", value);
    buf_add_fmt(ctx, "%u(%s)(%s)", line, key, value);
    return 0;
}

static int read_text(const char *text, struct buf *ret, struct err *e)
{
    cleanup_free char *copy = xstrdup(text);

    return keyvalue_each("x.conf", copy, note, ret, e);
}

static void assert_reads(const char *text, const char *noted)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    assert_int_equal(read_text(text, &b, &e), 0);
    assert_string_equal(buf_text(&b), noted);
}

static void lines(void **state)
{
    (void)state;
    assert_reads("", "");
    assert_reads("a = b", "1(a)(b)");
    assert_reads("a=b\n", "1(a)(b)");
    assert_reads("\n \t a\t=  b c \r\n\n b =\n", "2(a)(b c)4(b)()");
    assert_reads("a = b = c", "1(a)(b = c)");
}

static void comments(void **state)
{
    (void)state;
    assert_reads("# a = b\n  # c\na = b # c\n", "3(a)(b)");
    assert_reads("a = b\t#c", "1(a)(b)");
    assert_reads("a = b#c #d", "1(a)(b#c)");
}

static void errors_name_the_line(void **state)
{
    cleanup_buf struct buf b = {0};
    struct err e;
    (void)state;

    assert_int_equal(read_text("a = 1\n\nword\nb = 2\n", &b, &e), -1);
    assert_string_equal(e.text, "x.conf:3: \"word\" is not \"key = value\"");
    assert_string_equal(buf_text(&b), "1(a)(1)");
    assert_int_equal(read_text("bad = 1", &b, &e), -1);
    assert_string_equal(e.text, "x.conf:1: no \"1\" here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(comments),
        cmocka_unit_test(errors_name_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
