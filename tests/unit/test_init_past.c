/* The workspace as it was: taken, changed in every way, and made so again. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "init/past.h"
#include "init/copies.h"
#include "workspace.h"

#define PLENTY (1u << 30)
#define PAGE 4096u

static struct copies copies;
static bool held; /* by a process of its own */

static pid_t make_holder(void *ctx)
{
    (void)ctx;
    return fork();
}

static int set_up(void **state)
{
    (void)state;
    copies_init(&copies, PLENTY, held ? make_holder : NULL, NULL);
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
    assert_int_equal(copies.used, 0); /* nothing is left */
    pid_t holder = copies.holder;
    copies_forget(&copies);
    if (holder > 0)
        assert_int_equal(waitpid(holder, NULL, 0), holder);
    workspace_close();
    return 0;
}

static struct past take(const struct past *before)
{
    struct past p;
    struct err e;

    assert_int_equal(past_take(&p, before, &copies, &e), 0);
    return p;
}

/* What could not be brought back. */
static const char *not_restored(const struct past *p)
{
    static char names[256];
    cleanup_buf struct buf missing = {0};
    struct err e = {0};

    if (past_restore(p, &missing, &e) < 0)
        fail_msg("%s", e.text);
    snprintf(names, sizeof(names), "%s", buf_text(&missing));
    return names;
}

static void restore(const struct past *p)
{
    assert_string_equal(not_restored(p), "");
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
    (void)state;
    workspace_write("e", "there is no room for a third");
    copies.most = 2 * PAGE;
    struct past p = take(NULL);
    restore(&p); /* nobody has changed it */
    workspace_write("a", "x");
    workspace_write("e", "y");
    assert_string_equal(not_restored(&p), "e");
    check_first();
    past_done(&p);
}

static void room_is_given_back(void **state)
{
    (void)state;
    struct past first = take(NULL);
    assert_int_equal(copies.used, 2 * PAGE);
    workspace_write("a", "changed");
    struct past second = take(&first);
    assert_int_equal(copies.used, 3 * PAGE);
    past_done(&first); /* what the second has too stays */
    assert_int_equal(copies.used, 2 * PAGE);
    workspace_write("a", "x");
    workspace_write("d/b", "y");
    restore(&second);
    assert_true(workspace_has("a", "changed") && workspace_has("d/b", "two"));
    past_done(&second);
}

static void what_is_lost_is_told_and_copied_anew(void **state)
{
    (void)state;
    struct past first = take(NULL);
    workspace_write("a", "changed");
    if (copies.holder > 0) { /* as the kernel does when memory is short */
        kill(copies.holder, SIGKILL);
        assert_int_equal(waitpid(copies.holder, NULL, 0), copies.holder);
        assert_true(copies_reaped(&copies, copies.holder));
        assert_int_equal(past_weight(&first), 0);
    } else {
        copies_forget(&copies);
    }
    assert_int_equal(copies.used, 0);
    assert_string_equal(not_restored(&first), "a");
    assert_true(workspace_has("a", "changed"));
    struct past second = take(&first);
    assert_int_equal(copies.used, 2 * PAGE);
    workspace_write("d/b", "x");
    restore(&second);
    assert_true(workspace_has("a", "changed") && workspace_has("d/b", "two"));
    past_done(&first);
    past_done(&second);
}

/* Nobody has told us yet. */
static void a_holder_that_has_just_died(void **state)
{
    (void)state;
    struct past first = take(NULL);
    if (copies.holder > 0) {
        pid_t holder = copies.holder;
        kill(holder, SIGKILL);
        assert_int_equal(waitpid(holder, NULL, 0), holder);
        workspace_write("a", "changed");
        struct past second = take(&first);
        past_done(&second);
        assert_true(copies_reaped(&copies, holder));
    }
    past_done(&first);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(everything_comes_back),       TEST(kinds_change_places),
        TEST(moments_share_what_stays),    TEST(an_open_file_is_the_same_file),
        TEST(what_is_too_large_is_told),   TEST(modes_and_times_come_back),
        TEST(room_is_given_back),          TEST(what_is_lost_is_told_and_copied_anew),
        TEST(a_holder_that_has_just_died),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    held = true;
    return failed + cmocka_run_group_tests_name("with a holder", tests, NULL, NULL);
}
