/* Paths of files in a workspace: which are taken, and what is said about the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/path.h"

#define LONGEST_PART 255

static void good_paths(void **state)
{
    static const char *const good[] = {"a", "a/b", "a.b", "..a", "...", ".hidden", "\xff", "a b\n"};
    (void)state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(path_check(good[i], strlen(good[i])), PATH_FINE);
    assert_int_equal(path_check("a/", 1), PATH_FINE); /* the length says where it ends */
}

static void bad_paths(void **state)
{
    static const struct {
        const char *path;
        enum path_fault fault;
    } bad[] = {
        {"", PATH_EMPTY},        {"/", PATH_EMPTY_PART},    {"/a", PATH_EMPTY_PART},
        {"a/", PATH_EMPTY_PART}, {"a//b", PATH_EMPTY_PART}, {".", PATH_DOTS},
        {"..", PATH_DOTS},       {"a/..", PATH_DOTS},       {"../a", PATH_DOTS},
        {"a/./b", PATH_DOTS},    {"./a", PATH_DOTS},        {"a/../b", PATH_DOTS},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (path_check(bad[i].path, strlen(bad[i].path)) != bad[i].fault)
            fail_msg("\"%s\" is not: %s", bad[i].path, path_fault_text(bad[i].fault));
    }
    assert_int_equal(path_check("a\0b", 3), PATH_NUL);
}

static void bounds(void **state)
{
    char path[4097];
    (void)state;

    memset(path, 'x', sizeof(path));
    assert_int_equal(path_check(path, LONGEST_PART), PATH_FINE);
    assert_int_equal(path_check(path, LONGEST_PART + 1), PATH_LONG_PART);
    for (size_t i = LONGEST_PART; i < sizeof(path); i += LONGEST_PART + 1)
        path[i] = '/';
    assert_int_equal(path_check(path, 4095), PATH_FINE);
    path[4095] = 'x'; /* too long in all, whatever its parts are */
    assert_int_equal(path_check(path, 4096), PATH_LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_paths),
        cmocka_unit_test(bad_paths),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
