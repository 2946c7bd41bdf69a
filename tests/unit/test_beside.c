/* Where the program looks for what comes with it. This program is the one that looks, copied to places. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/beside.h"
#include "base/buf.h"

static char top[] = "/tmp/test-beside-XXXXXX";

static void in_top(const char *command)
{
    cleanup_free char *all = xasprintf("me=$(readlink /proc/$PPID/exe); cd %s && %s", top, command);

    assert_int_equal(system(all), 0);
}

/* What a program at this place finds; "": nothing. Both are below the top. */
static void finds(const char *place, const char *expected)
{
    cleanup_free char *command = xasprintf("%s/%s look 2>&1", top, place);
    cleanup_free char *where = xasprintf("%s/%s", top, expected);
    char found[PATH_MAX] = "";

    FILE *out = popen(command, "r");
    assert_non_null(out);
    if (!fgets(found, sizeof(found), out))
        found[0] = '\0';
    pclose(out);
    if (*expected)
        assert_string_equal(found, where);
    else
        assert_non_null(strstr(found, "cannot find installed-thing, which comes with retort"));
}

static void in_a_build(void **unused)
{
    (void)unused;
    in_top("mkdir -p build/tests/unit && cp $me build/retort && cp $me build/tests/unit/test");
    finds("build/retort", "");
    in_top("touch build/thing");
    finds("build/retort", "build/thing");
    finds("build/tests/unit/test", "build/thing");
}

static void installed(void **unused)
{
    (void)unused;
    in_top("mkdir -p usr/bin usr/lib/retort && cp $me usr/bin/retort");
    finds("usr/bin/retort", "");
    in_top("touch usr/lib/retort/installed-thing");
    finds("usr/bin/retort", "usr/bin/../lib/retort/installed-thing");
    in_top("touch usr/thing thing"); /* further up anybody may have put something */
    finds("usr/bin/retort", "usr/bin/../lib/retort/installed-thing");
}

static int make_top(void **unused)
{
    (void)unused;
    return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **unused)
{
    cleanup_free char *command = xasprintf("rm -r %s", top);

    (void)unused;
    return system(command);
}

static int look(void)
{
    char found[PATH_MAX];
    struct err e = {0};

    fputs(beside_find("thing", "installed-thing", found, sizeof(found), &e) < 0 ? e.text : found,
          stdout);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_build),
        cmocka_unit_test(installed),
    };
    return argc == 2 && strcmp(argv[1], "look") == 0
               ? look()
               : cmocka_run_group_tests(tests, make_top, remove_top);
}
