/* Limits as people write them, and as they travel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "wire/limits_wire.h"

static void defaults_are_the_contracts(void **state)
{
    struct limits l;
    (void)state;

    limits_default(&l);
    assert_int_equal(l.timeout_ms, 60000);
    assert_true(l.cpu_ms == LIMIT_NONE);
    assert_int_equal(l.memory, 1 << 30);
    assert_int_equal(l.disk, 512 << 20);
    assert_int_equal(l.files, 10000);
    assert_int_equal(l.pids, 64);
    assert_int_equal(l.output, 1 << 20);
    assert_int_equal(l.cpus_milli, 1000);
}

static void sizes_as_people_write_them(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"1", 1},           {"512k", 512 << 10}, {"64M", 64 << 20},   {"2g", 2ull << 30},
                {"1t", 1ull << 40}, {"1.5k", 1536},      {"2GB", 2ull << 30}, {"0", 0}};
    static const char *const bad[] = {"",     "k",   "-1",  "+1",   "1x", "1kk", "1kbb",
                                      "0x10", "inf", "nan", "1e30", " 1", "1 ",  "99999999999g"};
    struct err e;
    (void)state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t bytes = 7;
        assert_int_equal(limits_parse_size(good[i].text, &bytes, &e), 0);
        assert_true(bytes == good[i].bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t bytes = 7;
        assert_int_equal(limits_parse_size(bad[i], &bytes, &e), -1);
        assert_int_equal(bytes, 7);
    }
}

static void checkpoints_are_a_number(void **state)
{
    static const char *const bad[] = {"",    "x",    "-1", "+1",         "33",
                                      "1.5", "none", " 1", "99999999999"};
    unsigned n = 77;
    struct err e;
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(limits_parse_checkpoints(bad[i], &n, &e), -1);
    assert_int_equal(n, 77);
    assert_non_null(strstr(e.text, "0 to 32"));
    assert_int_equal(limits_parse_checkpoints("0", &n, &e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(limits_parse_checkpoints("32", &n, &e), 0);
    assert_int_equal(n, 32);
}

static void sets_by_name(void **state)
{
    struct limits l;
    struct err e;
    (void)state;

    limits_default(&l);
    assert_int_equal(limits_set(&l, "timeout", "2.5", &e), 0);
    assert_int_equal(l.timeout_ms, 2500);
    assert_int_equal(limits_set(&l, "timeout", "5m", &e), 0);
    assert_int_equal(l.timeout_ms, 300000);
    assert_int_equal(limits_set(&l, "memory", "64m", &e), 0);
    assert_int_equal(l.memory, 64 << 20);
    assert_int_equal(limits_set(&l, "cpus", "0.5", &e), 0);
    assert_int_equal(l.cpus_milli, 500);
    assert_int_equal(limits_set(&l, "timeout", "none", &e), 0);
    assert_true(l.timeout_ms == LIMIT_NONE);
}

static void refuses_with_a_reason(void **state)
{
    static const struct {
        const char *name, *value, *part;
    } bad[] = {
        {"speed", "1", "there is no limit called \"speed\""},
        {"memory", "0", "say \"none\""},
        {"timeout", "0", "say \"none\""},
        {"memory", "1k", "too little"},
        {"pids", "1.5", "not a whole number"},
        {"pids", "many", "not a number"},
        {"pids", "99999999999999", "more than can be"},
        {"cpus", "5000000", "more than can be"},
        {"timeout", "-3", "timeout: \"-3\" is not a time"},
        {"timeout", "", "not a time"},
        {"timeout", "1e13", "not a time"},
        {"cpus", "1m", "not a number"},
        {"disk", "12q", "not a size"},
    };
    struct limits l, before;
    struct err e;
    (void)state;

    limits_default(&l);
    before = l;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(limits_set(&l, bad[i].name, bad[i].value, &e), -1);
        assert_non_null(strstr(e.text, bad[i].part));
    }
    assert_memory_equal(&l, &before, sizeof(l));
}

static void names_and_values_for_people(void **state)
{
    struct limits l;
    int none;
    (void)state;

    limits_default(&l);
    assert_string_equal(limits_name(0), "timeout");
    assert_float_equal((float)limits_value(&l, 0, &none), 60, 0);
    assert_false(none);
    limits_value(&l, 1, &none);
    assert_true(none);
    assert_null(limits_name(8));
}

static void travel_whole(void **state)
{
    cleanup_buf struct buf b = {0};
    struct limits l, back;
    struct fields f;
    (void)state;

    limits_default(&l);
    l.pids = 3;
    limits_put(&b, &l);
    fields_init(&f, b.data, b.len);
    limits_get(&f, &back);
    assert_true(fields_end(&f));
    assert_memory_equal(&l, &back, sizeof(l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_contracts),
        cmocka_unit_test(sizes_as_people_write_them),
        cmocka_unit_test(checkpoints_are_a_number),
        cmocka_unit_test(sets_by_name),
        cmocka_unit_test(refuses_with_a_reason),
        cmocka_unit_test(names_and_values_for_people),
        cmocka_unit_test(travel_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
