/* Fields: what is put comes back, and nothing is read past the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/fields.h"

static void what_is_put_comes_back(void **state)
{
    cleanup_buf struct buf b = {0};
    struct fields f;
    char text[8];
    size_t len;
    (void)state;

    fields_put_u8(&b, 0xfe);
    fields_put_u32(&b, 0xdeadbeef);
    fields_put_u64(&b, 0x0123456789abcdef);
    fields_put_bytes(&b, "a\0b", 3);
    fields_put_text(&b, "text");
    fields_put_text(&b, "");
    fields_init(&f, b.data, b.len);
    assert_int_equal(fields_get_u8(&f), 0xfe);
    assert_int_equal(fields_get_u32(&f), 0xdeadbeef);
    assert_true(fields_get_u64(&f) == 0x0123456789abcdef);
    assert_memory_equal(fields_get_bytes(&f, &len), "a\0b", 3);
    assert_int_equal(len, 3);
    fields_get_text(&f, text, sizeof(text));
    assert_string_equal(text, "text");
    assert_false(fields_end(&f));
    fields_get_text(&f, text, sizeof(text));
    assert_string_equal(text, "");
    assert_true(fields_end(&f));
}

static void lies_little_endian(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    fields_put_u32(&b, 1);
    fields_put_bytes(&b, "x", 1);
    assert_int_equal(b.len, 9);
    assert_memory_equal(b.data, "\1\0\0\0\1\0\0\0x", 9);
}

static void fails_once_and_stays_failed(void **state)
{
    struct fields f;
    size_t len = 9;
    (void)state;

    fields_init(&f, "abc", 3);
    assert_int_equal(fields_get_u32(&f), 0);
    assert_true(f.failed);
    assert_int_equal(fields_get_u8(&f), 0); /* though there would be one */
    assert_string_equal(fields_get_bytes(&f, &len), "");
    assert_int_equal(len, 0);
    assert_false(fields_end(&f));
}

static void a_length_over_the_end_fails(void **state)
{
    struct fields f;
    size_t len = 9;
    (void)state;

    fields_init(&f, "\xff\xff\xff\xffxyz", 7);
    fields_get_bytes(&f, &len);
    assert_int_equal(len, 0);
    assert_true(f.failed);
}

static void text_must_fit_and_be_text(void **state)
{
    cleanup_buf struct buf b = {0};
    struct fields f;
    char text[4] = "old";
    (void)state;

    fields_put_text(&b, "four");
    fields_init(&f, b.data, b.len);
    fields_get_text(&f, text, sizeof(text));
    assert_true(f.failed);
    assert_string_equal(text, "");
    b.len = 0;
    fields_put_bytes(&b, "a\0b", 3);
    fields_init(&f, b.data, b.len);
    fields_get_text(&f, text, sizeof(text));
    assert_true(f.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_comes_back),
        cmocka_unit_test(lies_little_endian),
        cmocka_unit_test(fails_once_and_stays_failed),
        cmocka_unit_test(a_length_over_the_end_fails),
        cmocka_unit_test(text_must_fit_and_be_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
