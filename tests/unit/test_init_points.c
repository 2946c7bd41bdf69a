/* Which states are the same: what init makes of what it is told, also of nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "init/points.h"

static struct points p;

static int setup(void **state)
{
    (void)state;
    p = (struct points){.n = 2, .list = {{.n = 1, .up_to = 1}, {.n = 5, .up_to = 5}}};
    return 0;
}

static void those_that_follow(void **state)
{
    (void)state;
    points_same(&p, 5, 6, 8);
    assert_int_equal(points_find(&p, 8), 1);
    points_same(&p, 8, 9, 9);
    assert_int_equal(points_find(&p, 9), 1);
    assert_int_equal(points_find(&p, 10), -1);
}

static void of_an_older_one_told_late(void **state)
{
    (void)state;
    points_same(&p, 1, 2, 4);
    assert_int_equal(points_find(&p, 4), 0);
    assert_int_equal(points_find(&p, 5), 1);
}

static void not_what_was_gone_back_from(void **state)
{
    (void)state;
    p.list[1].gone_back = true;
    points_same(&p, 5, 9, 10);
    assert_int_equal(points_find(&p, 5), 1);
    assert_int_equal(points_find(&p, 6), -1);
    assert_int_equal(points_find(&p, 8), -1);
    assert_int_equal(points_find(&p, 9), 1);
    assert_int_equal(points_find(&p, 10), 1);
}

static void of_one_that_is_not_kept(void **state)
{
    (void)state;
    points_same(&p, 3, 4, 4);
    assert_int_equal(points_find(&p, 4), -1);
}

static void not_over_another(void **state)
{
    (void)state;
    points_same(&p, 1, 2, 5);
    points_same(&p, 1, 2, UINT32_MAX);
    assert_int_equal(p.list[0].up_to, 1);
    assert_int_equal(points_find(&p, 5), 1);
}

static void not_backwards(void **state)
{
    (void)state;
    points_same(&p, 5, 8, 6);
    points_same(&p, 5, 4, 6);
    assert_int_equal(p.list[1].up_to, 5);
    p.n = 0;
    points_same(&p, 5, 6, 6);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(those_that_follow),
        TEST(of_an_older_one_told_late),
        TEST(not_what_was_gone_back_from),
        TEST(of_one_that_is_not_kept),
        TEST(not_over_another),
        TEST(not_backwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
