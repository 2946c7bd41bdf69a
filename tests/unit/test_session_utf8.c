/* UTF-8: what is a character, what is broken, and how many replacements that makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session/utf8.h"

#define R UTF8_REPLACEMENT

/* The expected counts are those of Python's bytes.decode("utf-8", "replace"). */
static void repairs_as_python_does(void **state)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\x80", R},
        {"\xbf\xbf", R R},
        {"\xc0\x80", R R}, /* overlong NUL */
        {"\xc1\xbf", R R},
        {"\xe0\x80\x80", R R R}, /* overlong */
        {"\xe0\x9f\xbf", R R R},
        {"\xe0\xa0\x80", "\xe0\xa0\x80"},
        {"\xed\x9f\xbf", "\xed\x9f\xbf"},
        {"\xed\xa0\x80", R R R}, /* surrogate */
        {"\xed\xbf\xbf", R R R},
        {"\xee\x80\x80", "\xee\x80\x80"},
        {"\xf0\x8f\xbf\xbf", R R R R}, /* overlong */
        {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"\xf4\x90\x80\x80", R R R R}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", R R R R},
        {"\xff\xfe", R R},
        {"\xe2\x82", R}, /* cut: one part, one replacement */
        {"\xf0\x9f\x98", R},
        {"\xf0\x9f\x98x", R "x"},
        {"\xe2\x82\xe2\x82\xac", R "\xe2\x82\xac"},
        {"a\xe2\x28\xa1z", "a" R "(" R "z"},
        {"0123456789abcdef\xc3", "0123456789abcdef" R},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].bytes);
        char *text = utf8_repaired(cases[i].bytes, len);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(utf8_repaired_len(cases[i].bytes, len), strlen(cases[i].text));
        assert_int_equal(utf8_valid(text, strlen(text)), strlen(text));
        free(text);
    }
}

static void a_nul_is_replaced_in_strings(void **state)
{
    (void)state;
    char *text = utf8_repaired("a\0b\0", 4);
    assert_string_equal(text, "a" R "b" R);
    free(text);
    assert_int_equal(utf8_valid("a\0b", 3), 3);
}

static void finds_the_cut_character_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(utf8_whole("", 0), 0);
    assert_int_equal(utf8_whole("ab", 2), 2);
    assert_int_equal(utf8_whole("ab\xe2\x82", 4), 2);
    assert_int_equal(utf8_whole("ab\xe2\x82\xac", 5), 5);
    assert_int_equal(utf8_whole("ab\xf0\x9f\x98", 5), 2);
    assert_int_equal(utf8_whole("ab\xff", 3), 3); /* cannot be completed */
    assert_int_equal(utf8_whole("ab\x80\x80\x80\x80", 6), 6);
    assert_int_equal(utf8_whole("\xed\xa0", 2), 2); /* a surrogate: broken already */
    assert_int_equal(utf8_whole("\xc3", 1), 0);
}

static void fits_whole_characters(void **state)
{
    static const char text[] = "a\xe2\x82\xac"
                               "b";
    (void)state;

    assert_int_equal(utf8_fit(text, 5, 9), 5);
    assert_int_equal(utf8_fit(text, 5, 4), 4);
    assert_int_equal(utf8_fit(text, 5, 3), 1);
    assert_int_equal(utf8_fit(text, 5, 1), 1);
    assert_int_equal(utf8_fit(text, 5, 0), 0);
}

/* Every code point, written by a second implementation. */
static size_t encode(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

static void knows_every_character(void **state)
{
    char text[4];
    size_t n;
    (void)state;

    for (uint32_t c = 0; c < 0x1FFFFF; c++) {
        size_t len = encode(c, text);
        bool valid = c < 0x110000 && !(c >= 0xD800 && c < 0xE000);
        assert_int_equal(utf8_valid(text, len) == len, valid);
        for (size_t cut = 1; valid && cut < len; cut++)
            assert_int_equal(utf8_next(text, cut, &n), UTF8_CUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repairs_as_python_does),
        cmocka_unit_test(a_nul_is_replaced_in_strings),
        cmocka_unit_test(finds_the_cut_character_at_the_end),
        cmocka_unit_test(fits_whole_characters),
        cmocka_unit_test(knows_every_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
