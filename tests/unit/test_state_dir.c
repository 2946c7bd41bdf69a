/* Where the server's state is: the same for the server and for `retort token`, and nobody else's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "gate/state_dir.h"

#define OTHER 4321

static char top[64];

static int setup(void **state)
{
    (void)state;
    strcpy(top, "/tmp/retort-state-XXXXXX");
    return mkdtemp(top) && chmod(top, 0755) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    cleanup_free char *command = xasprintf("rm -rf %s", top);

    (void)state;
    return system(command);
}

/* In a child, whose uid and directory are its own. */
static void elsewhere(int (*act)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(act());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int say(int line)
{
    fprintf(stderr, "line %d does not hold\n", line);
    return 1;
}
#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return say(__LINE__);                                                                  \
    } while (0)

static mode_t mode_of(const char *path)
{
    struct stat sb;

    return stat(path, &sb) < 0 ? 0 : sb.st_mode & 07777;
}

static void it_is_made_for_its_owner_alone(void **state)
{
    cleanup_free char *deep = xasprintf("%s/a/b", top), *above = xasprintf("%s/a", top);
    cleanup_free char *dir = NULL, *again = NULL;
    struct err e;
    (void)state;

    assert_int_equal(state_dir(deep, false, &dir, &e), -1);
    assert_int_equal(e.code, ENOENT);
    assert_null(dir);
    umask(0);
    assert_int_equal(state_dir(deep, true, &dir, &e), 0);
    umask(022);
    assert_string_equal(dir, deep);
    assert_int_equal(mode_of(deep), 0700);
    assert_int_equal(mode_of(above), 0700);
    assert_int_equal(state_dir(deep, true, &again, &e), 0);
    assert_int_equal(state_dir("", true, &again, &e), -1);
    assert_int_equal(state_dir("/proc/self/comm", true, &again, &e), -1);
    assert_int_equal(state_dir("/proc/self/comm/x", true, &again, &e), -1);
}

static void one_that_others_may_write_to_is_refused(void **state)
{
    char *dir = NULL;
    struct err e;
    (void)state;

    assert_int_equal(state_dir("/tmp", true, &dir, &e), -1);
    assert_non_null(strstr(e.text, "chmod go-w"));
    assert_int_equal(chmod(top, 0775), 0);
    assert_int_equal(state_dir(top, false, &dir, &e), -1);
    assert_int_equal(chmod(top, 0755), 0);
    assert_int_equal(state_dir(top, false, &dir, &e), 0);
    free(dir);
}

static int try_default(void)
{
    cleanup_free char *xdg = xasprintf("%s/xdg/retort", top);
    cleanup_free char *home = xasprintf("%s/.local/state/retort", top);
    cleanup_free char *base = xasprintf("%s/xdg", top);
    char *dir = NULL;
    struct err e;

    if (geteuid() == 0)
        must(chown(top, OTHER, OTHER) == 0 && setresuid(OTHER, OTHER, OTHER) == 0);
    setenv("HOME", top, 1);
    setenv("XDG_STATE_HOME", base, 1);
    must(state_dir(NULL, true, &dir, &e) == 0 && strcmp(dir, xdg) == 0);
    free(dir);
    setenv("XDG_STATE_HOME", "not/absolute", 1);
    must(state_dir(NULL, true, &dir, &e) == 0 && strcmp(dir, home) == 0);
    free(dir);
    must(mode_of(home) == 0700);
    return 0;
}

static void people_have_their_own(void **state)
{
    (void)state;
    elsewhere(try_default);
}

static int try_enter(void)
{
    char here[128];
    struct err e;

    if (geteuid() == 0)
        must(chown(top, OTHER, OTHER + 1) == 0);
    must(state_dir_enter(top, &e) == 0);
    must(getcwd(here, sizeof(here)) && strcmp(here, top) == 0);
    must(geteuid() == getuid() && geteuid() != 0);
    if (geteuid() == OTHER)
        must(getegid() == OTHER + 1 && getgroups(0, NULL) == 0 && setuid(0) < 0);
    return 0;
}

static void root_becomes_its_owner(void **state)
{
    (void)state;
    elsewhere(try_enter);
}

static int try_give(void)
{
    cleanup_free char *db = xasprintf("%s/retort.db", top), *wal = xasprintf("%s-wal", db);
    cleanup_free char *outside = xasprintf("%s-outside", top);
    struct stat sb;
    struct err e;

    must(close(open(outside, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
    must(close(open(db, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
    must(symlink(outside, wal) == 0);
    must(state_dir_give(top, OTHER, OTHER, &e) == 0);
    must(stat(top, &sb) == 0 && sb.st_uid == OTHER && sb.st_gid == OTHER);
    must(stat(db, &sb) == 0 && sb.st_uid == OTHER);
    must(stat(outside, &sb) == 0 && sb.st_uid == 0); /* no link is followed */
    must(unlink(outside) == 0);
    must(state_dir_give(top, OTHER, OTHER, &e) == 0);
    must(state_dir_give(top, OTHER + 1, OTHER, &e) < 0);
    must(strstr(e.text, "change its owner"));
    return 0;
}

static void root_gives_what_is_its_own(void **state)
{
    (void)state;
    if (geteuid() == 0)
        elsewhere(try_give);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_made_for_its_owner_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_others_may_write_to_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(people_have_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(root_becomes_its_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(root_gives_what_is_its_own, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
