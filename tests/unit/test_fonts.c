/* Which of fontconfig's caches come into a box. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "box/fonts.h"

static char top[64];

static int setup(void **state)
{
    (void)state;
    strcpy(top, "/tmp/retort-fonts-XXXXXX");
    return mkdtemp(top) && chdir(top) == 0 && mkdir("from", 0755) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    cleanup_free char *command = xasprintf("rm -rf %s", top);

    (void)state;
    return chdir("/") == 0 ? system(command) : -1;
}

/* A cache as fontconfig's own tool makes them, of this directory, whose name stands at `at`. */
static void put_cache(const char *path, const char *dir, uint64_t at)
{
    const uint32_t magic[] = {0xFC02FC04, 8};
    const uint64_t more[] = {0, at, 0, 0, 0, 0, 0};
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fwrite(magic, sizeof(magic), 1, f);
    fwrite(more, sizeof(more), 1, f);
    fwrite(dir, strlen(dir) + 1, 1, f);
    fclose(f);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void only_those_of_usr(void **state)
{
    struct err e;
    (void)state;

    put_cache("from/system", "/usr/share/fonts/truetype", 64);
    put_cache("from/local", "/usr/local/share/fonts", 64);
    put_cache("from/secret", "/root/.fonts", 64);
    put_cache("from/similar", "/usrs/share/fonts", 64);
    put_cache("from/cut", "/usr/share/fonts", 4000);
    put_cache("from/wild", "/usr/share/fonts", UINT64_MAX - 3);
    assert_int_equal(symlink("system", "from/link"), 0);
    assert_int_equal(mkdir("from/directory", 0755), 0);
    assert_int_equal(fonts_copy_caches("from", "to", &e), 0);
    assert_true(is_there("to/system") && is_there("to/local"));
    assert_false(is_there("to/secret"));
    assert_false(is_there("to/similar"));
    assert_false(is_there("to/cut") || is_there("to/wild"));
    assert_false(is_there("to/link") || is_there("to/directory"));
}

static void a_host_without_any(void **state)
{
    struct err e;
    (void)state;

    assert_int_equal(fonts_copy_caches("nowhere", "to", &e), 0);
    assert_false(is_there("to"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_those_of_usr, setup, teardown),
        cmocka_unit_test_setup_teardown(a_host_without_any, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
