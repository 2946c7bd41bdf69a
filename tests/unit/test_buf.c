/* Buffers and single allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"

static void grows_and_keeps_what_is_there(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    for (unsigned i = 0; i < 10000; i++)
        buf_add(&b, &i, sizeof(i));
    assert_int_equal(b.len, 40000);
    for (unsigned i = 0; i < 10000; i++) {
        unsigned v;
        memcpy(&v, b.data + i * sizeof(v), sizeof(v));
        assert_int_equal(v, i);
    }
    buf_add(&b, NULL, 0);
    assert_int_equal(b.len, 40000);
}

static void drops_from_the_front(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    buf_drop(&b, 0);
    buf_add_text(&b, "hello world");
    buf_drop(&b, 0);
    assert_string_equal(buf_text(&b), "hello world");
    buf_drop(&b, 6);
    assert_string_equal(buf_text(&b), "world");
    buf_drop(&b, 5);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_text(&b), "");
}

static void formats_and_gives_away(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    buf_add_fmt(&b, "%s-%d", "a", 7);
    buf_add_fmt(&b, "%0300d", 1);
    assert_int_equal(b.len, 303);
    char *text = buf_steal(&b);
    assert_int_equal(strlen(text), 303);
    assert_null(b.data);
    assert_int_equal(b.len, 0);
    free(text);
    text = buf_steal(&b);
    assert_string_equal(text, "");
    free(text);
}

static void strings_of_our_own(void **state)
{
    cleanup_free char *a = xstrdup("a");
    cleanup_free char *b = xasprintf("%s%d", a, 1);
    (void)state;

    assert_string_equal(b, "a1");
}

static void errors_are_sentences(void **state)
{
    struct err e;
    char much[2000];
    (void)state;

    assert_int_equal(err_set(&e, 2, "cannot open %s", "x"), -1);
    assert_string_equal(e.text, "cannot open x: No such file or directory");
    assert_int_equal(err_wrap(&e, "box %d", 3), -1);
    assert_string_equal(e.text, "box 3: cannot open x: No such file or directory");
    assert_int_equal(e.code, 2);
    memset(much, 'x', sizeof(much) - 1);
    much[sizeof(much) - 1] = '\0';
    err_set(&e, 2, "%s", much);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_wrap(&e, "%s", much);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_keeps_what_is_there), cmocka_unit_test(drops_from_the_front),
        cmocka_unit_test(formats_and_gives_away),        cmocka_unit_test(strings_of_our_own),
        cmocka_unit_test(errors_are_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
