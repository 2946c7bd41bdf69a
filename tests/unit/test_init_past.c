/* The workspace as it was: taken, changed in every way, and made so again. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "init/past.h"
#include "workspace.h"

#define PLENTY (1u << 30)

static int set_up(void **state)
{
    (void)state;
    workspace_open();
    workspace_write("a", "one");
    workspace_write("d/b", "two");
    assert_int_equal(mkdir("empty", 0750), 0);
    assert_int_equal(symlink("a", "link"), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    workspace_close();
    return 0;
}

static struct past take(const struct past *before)
{
    struct past p;
    struct err e;

    assert_int_equal(past_take(&p, before, PLENTY, &e), 0);
    return p;
}

static void restore(const struct past *p)
{
    struct err e = {0};

    if (past_restore(p, &e) < 0)
        fail_msg("%s", e.text);
}

static void check_first(void)
{
    struct stat st;
    char target[16] = "";

    assert_true(workspace_has("a", "one"));
    assert_true(workspace_has("d/b", "two"));
    assert_int_equal(stat("empty", &st), 0);
    assert_true(S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0750);
    assert_true(readlink("link", target, sizeof(target) - 1) == 1 && target[0] == 'a');
}

static void everything_comes_back(void **state)
{
    struct past p = take(NULL);
    (void)state;

    workspace_write("a", "another text");
    workspace_write("new", "x");
    workspace_write("d/sub/new", "x");
    assert_int_equal(unlink("d/b"), 0);
    assert_int_equal(rmdir("empty"), 0);
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(symlink("new", "link"), 0);
    restore(&p);
    check_first();
    assert_true(access("new", F_OK) < 0 && access("d/sub", F_OK) < 0);
    past_done(&p);
}

static void kinds_change_places(void **state)
{
    struct past p = take(NULL);
    (void)state;

    assert_int_equal(unlink("a"), 0);
    workspace_write("a/deep/in", "x");
    assert_int_equal(rmdir("empty"), 0);
    workspace_write("empty", "a file");
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(mkfifo("link", 0600), 0);
    assert_int_equal(unlink("d/b"), 0);
    assert_int_equal(symlink("/etc/passwd", "d/b"), 0);
    restore(&p);
    check_first();
    past_done(&p);
}

static void moments_share_what_stays(void **state)
{
    struct past first = take(NULL);
    (void)state;

    workspace_write("c", "three");
    struct past second = take(&first);
    assert_int_equal(second.copied, 5);
    workspace_write("a", "changed");
    struct past third = take(&second);
    assert_int_equal(third.copied, 7);
    past_done(&second); /* one that others share with goes */
    restore(&first);
    check_first();
    assert_true(access("c", F_OK) < 0);
    restore(&third);
    assert_true(workspace_has("a", "changed") && workspace_has("c", "three"));
    past_done(&first);
    past_done(&third);
}

static void an_open_file_is_the_same_file(void **state)
{
    struct past p = take(NULL);
    char text[16] = "";
    (void)state;

    cleanup_fd int fd = open("a", O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "XX", 2, 1), 2);
    restore(&p);
    assert_int_equal(pread(fd, text, sizeof(text) - 1, 0), 3);
    assert_string_equal(text, "one");
    past_done(&p);
}

static void what_is_too_large_is_told(void **state)
{
    struct past p;
    struct err e;
    (void)state;

    workspace_write("e", "this is more than ten bytes");
    assert_int_equal(past_take(&p, NULL, 10, &e), 0);
    restore(&p); /* nobody has changed it */
    workspace_write("a", "x");
    workspace_write("e", "y");
    assert_int_equal(past_restore(&p, &e), -1);
    assert_non_null(strstr(e.text, "e was too large"));
    check_first();
    past_done(&p);
}

static void modes_and_times_come_back(void **state)
{
    struct stat before, after;
    struct past p;
    (void)state;

    assert_int_equal(chmod("a", 0741), 0);
    assert_int_equal(stat("a", &before), 0);
    p = take(NULL);
    workspace_write("a", "other");
    assert_int_equal(chmod("a", 0600), 0);
    restore(&p);
    assert_int_equal(stat("a", &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    past_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kinds_change_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moments_share_what_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_open_file_is_the_same_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_too_large_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(modes_and_times_come_back, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
