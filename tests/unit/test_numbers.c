/* Which numbers of an answer stand in no output: each way to write one, and what is not one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "agent/numbers.h"
#include "base/buf.h"

/* The numbers that are pointed out, as "a | b". */
static char *unfounded(const char *answer, const char *evidence)
{
    const char *const texts[] = {"", evidence};
    json_t *list = numbers_unfounded(answer, texts, 2);
    struct buf b = {0};

    for (size_t i = 0; i < json_array_size(list); i++)
        buf_add_fmt(&b, "%s%s", i ? " | " : "", json_string_value(json_array_get(list, i)));
    json_decref(list);
    buf_text(&b);
    return buf_steal(&b);
}

struct example {
    const char *answer, *evidence, *expected;
};

static void check(const struct example *examples, size_t n)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < n; i++) {
        cleanup_free char *found = unfounded(examples[i].answer, examples[i].evidence);
        if (strcmp(found, examples[i].expected) == 0)
            continue;
        print_error("\"%s\" in \"%s\": \"%s\", and not \"%s\"\n", examples[i].answer,
                    examples[i].evidence, found, examples[i].expected);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}
#define CHECK(examples) check(examples, sizeof(examples) / sizeof(examples[0]))

static void digits_and_rounding(void **state)
{
    static const struct example examples[] = {
        {"It is 42.", "42", ""},
        {"It is 42.", "43", "42"},
        {"It is 42", "", "42"},
        {"12.3", "12.3456", ""},
        {"12.3", "12.25", ""},
        {"12.3", "12.35", ""},
        {"12.3", "12.36", "12.3"},
        {"12.3", "12.24", "12.3"},
        {"12.3456", "12.3", "12.3456"},
        {"523", "522.6", ""},
        {"523", "523.51", "523"},
        {"a mean of .25 and 0.5", "0.25 .5", ""},
        {"0.1 + 0.2 is 0.30000000000000004", "0.30000000000000004 0.1 0.2", ""},
        {"12.5 and 12.5 and 13.5", "", "12.5 | 13.5"},
        {"about 1,200 people", "1234", ""},
        {"1,200 people", "1234", "1,200"},
        {"more than **1,200** people", "1234", ""},
        {"~1200 people", "1260", "1200"},
        {"a difference of 30 between 120 and 150", "120 150", "30"},
        {"12345678901234567890", "12345678901234567890", ""},
    };
    (void)state;
    CHECK(examples);
}

static void separators_of_thousands(void **state)
{
    static const struct example examples[] = {
        {"1,234.5", "1234.5", ""},
        {"1 234.5 and 1 234,5", "1234.5", ""},
        {"1\xc2\xa0"
         "234 and 1\xe2\x80\xaf"
         "234 and 1_234 and 1'234 and 1\xe2\x80\x99"
         "234",
         "1234", ""},
        {"1.234,5", "1234.5", ""},
        {"12,5", "12.5", ""},
        {"1,23,456", "123456", ""},
        {"1,234,567", "1234567.2", ""},
        {"1,234,567", "1234568", "1,234,567"},
        {"1234.5", "1,234.5", ""},
        {"1234567", "1.234.567", ""},
        {"234 and 17 and 567", "[1,234,17,567]", ""},
        {"1.5 and 2.25 and 99", "[0.1,0.2,0.3,1.5,4,5,6,7,8,9,10,11,12,13,14,2.25,99]", ""},
        {"0.0025", "[1.5,2.5e-3,4]", ""},
        {"145 and 33 and 12.5", "145 33 12.5", ""},
        {"145 and 233 and 1712.5", "145 233 1712.5 100", ""},
    };
    (void)state;
    CHECK(examples);
}

static void percent_and_scale(void **state)
{
    static const struct example examples[] = {
        {"45 % and 45% and 45 percent and 45 \\%", "0.4512", ""},
        {"45%", "45.2", ""},
        {"45%", "0.46", "45%"},
        {"45.1 %", "0.4512", ""},
        {"45.1 %", "0.452", "45.1 %"},
        {"0.45", "45%", ""},
        {"5 %", "0.061", "5 %"},
        {"5–10 %", "0.05 0.1", ""},
        {"5–12 %", "0.12", "5"},
        {"1.2 million", "1234567", ""},
        {"$1.2M and 1.2 mn", "1234567", ""},
        {"1.2 million", "1.2", ""},
        {"1.2 million", "1251000", "1.2 million"},
        {"2 to 3 million", "2100000 3200000", ""},
        {"3.4bn, 12k", "3.41e9 12,100", ""},
        {"1200000", "1.2M", ""},
        {"45.5 kB", "45512", ""},
        {"45.5 kB", "46592", ""},
        {"1.2e6", "1234567", ""},
        {"1.2 × 10^6 and 1.2 \\times 10^{6} and 1.2×10⁶", "1234567", ""},
        {"1.23e-05", "0.0000123", ""},
        {"grew 2.5x", "2.51", ""},
        {"grew 2x", "3", "2x"},
    };
    (void)state;
    CHECK(examples);
}

static void signs_and_currencies(void **state)
{
    static const struct example examples[] = {
        {"fell by 12.3", "-12.3", ""},
        {"-12.3 and \xe2\x88\x92"
         "12.3",
         "-12.3", ""},
        {"-12.3", "12.3", "-12.3"},
        {"+12.3", "12.3", ""},
        {"-$12.5", "-12.5", ""},
        {"$12 and € 12 and 12 €", "12", ""},
        {"$5", "7", "$5"},
        {"5 €", "7", "5"},
        {"15-25 and 15–25", "15 25", ""},
        {"between 15 and 25", "15", "25"},
    };
    (void)state;
    CHECK(examples);
}

static void days_and_times(void **state)
{
    static const struct example examples[] = {
        {"on 2026-03-15", "2026-03-15 00:00:00", ""},
        {"on 2026-03-16", "2026-03-15 2026-02-16", "2026-03-16"},
        {"on March 15, 2026", "2026-03-15", ""},
        {"on 15 March 2026", "2026-03-15", ""},
        {"on March 15th, 2026", "2026-03-15", ""},
        {"on Sept. 15, 2026", "2026-09-15", ""},
        {"on March 17, 2026", "2026-03-15", "March 17, 2026"},
        {"15.03.2026 and 3/15/2026 and 15/03/26", "2026-03-15", ""},
        {"2026-03-15", "20260315", ""},
        {"2026-03-15", "15 Mar 2026", ""},
        {"March 2026", "2026-03-15", ""},
        {"March 2025", "2026-03-15", "2025"},
        {"from 2019-2023", "2019 2023", ""},
        {"at 14:30", "2026-03-15 14:30:12", ""},
        {"at 14:31", "2026-03-15 14:30:12", "14:31"},
        {"at 2:30 pm", "14:30", ""},
        {"at 14:00", "hour 14", ""},
    };
    (void)state;
    CHECK(examples);
}

static void what_is_no_claim(void **state)
{
    static const struct example examples[] = {
        {"the 5 cities, 10 rows, three of them, 0 errors", "", ""},
        {"the 11 cities", "", "11"},
        {"1. one\n2. two\n  12) twelve", "", "12"},
        {"10. ten\n11. eleven\n12. **twelve**\n## 13. thirteen", "", ""},
        {"the total was\n512. That is all", "", "512"},
        {"42.", "", "42"},
        {"|#|a|\n|-|-|\n| 10 | x |\n| 11 | y |\n| 12 | 77 |", "", "77"},
        {"the 1st, 22nd and 95th percentile; #17 and [12] and R^2 and R^{12}", "", ""},
        {"`x = 99` and ``y ` 98``", "", ""},
        {"a ` alone 99", "", "99"},
        {"```\n99\n```\n98\n~~~~ python\n97\n~~~\n96\n~~~~\n95", "", "98 | 95"},
        {"```\n99", "", ""},
        {"sales_2023.csv, 2023-sales.xlsx, 2024.csv, out/2025/fig12.png", "", ""},
        {"Q3 of GPT-4, COVID-19, H20, v1.22, col_12, 3d_plot12, 1.22.3, 0x7f33, utf-16", "", ""},
        {"see [here](http://a.b/99) or https://c.d/98?x=97 or <a href=\"96\">b</a>", "", ""},
        {"a 95% confidence interval (95 % CI), p < 0.05, p <0.001", "", ""},
        {"p = 0.04", "0.0512", "0.04"},
        {"the 1990s", "", ""},
        {"it took 30s and 12kg", "31", "30 | 12"},
        {"销售额为1234元", "1234", ""},
        {"销售额为1234元", "", "1234"},
        {"640x480 pixels", "", ""},
    };
    (void)state;
    CHECK(examples);
}

static void odd_bytes_do_no_harm(void **state)
{
    static const struct example examples[] = {
        {"\xff\xfe 12 \xe2", "", "12"},
        {"\xe2\x82", "\xe2\x82", ""},
        {"-", "-", ""},
        {".", ".", ""},
        {"1e", "1e", ""},
        {"12e999 and 13e99999", "1", ""},
        {"12 × 10^", "12", ""},
        {"", "", ""},
        {"|", "|", ""},
        {"12:", "12", ""},
        {"$", "5", ""},
    };
    (void)state;
    CHECK(examples);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Time is in proportion, also for what is written against it. */
static void large_texts_take_their_time_and_no_more(void **state)
{
    static const char *const pieces[] = {"1234.5 ", "1-",  "` ",  "](", "<a ", "1,",     "9",
                                         "1.1.",    "1:2", "a1-", "#1", "\\",  "1 234 ", "|1|\n"};
    (void)state;

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        cleanup_buf struct buf answer = {0}, evidence = {0};
        while (answer.len < NUMBERS_ANSWER_MAX + 100)
            buf_add_text(&answer, pieces[i]);
        while (evidence.len < 4u << 20)
            buf_add_text(&evidence, pieces[i]);
        double begin = seconds();
        free(unfounded(buf_text(&answer), buf_text(&evidence)));
        double took = seconds() - begin;
        if (took > 10)
            fail_msg("\"%s\": %.1f s", pieces[i], took);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_and_rounding),
        cmocka_unit_test(separators_of_thousands),
        cmocka_unit_test(percent_and_scale),
        cmocka_unit_test(signs_and_currencies),
        cmocka_unit_test(days_and_times),
        cmocka_unit_test(what_is_no_claim),
        cmocka_unit_test(odd_bytes_do_no_harm),
        cmocka_unit_test(large_texts_take_their_time_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
