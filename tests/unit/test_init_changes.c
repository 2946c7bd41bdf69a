/* Which changes init tells. Every test runs twice: in a small workspace, which is walked for each report,
 * and in one with enough files that inotify is asked. What is told must be the same. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "init/changes.h"
#include "init/files.h"
#include "init/transfer.h"
#include "wire/proto.h"
#include "workspace.h"

static struct changes changes;
static char told[4096];

static void tell(void *ctx, const struct change *c)
{
    size_t len = strlen(told);
    (void)ctx;

    assert_true(c->has_sha256 == (c->kind != FILE_DELETED));
    snprintf(told + len, sizeof(told) - len, "%s%c%s", len ? " " : "", "+~-"[c->kind], c -> path);
}

/* What is told now: "+created ~changed -deleted". */
static const char *report(void)
{
    struct err e;

    told[0] = '\0';
    assert_int_equal(changes_report(&changes, tell, NULL, &e), 0);
    return told;
}

static int set_up(bool large)
{
    char name[32];

    workspace_open();
    memset(&changes, 0, sizeof(changes));
    for (int i = 0; large && i < 300; i++) {
        snprintf(name, sizeof(name), "%s/%03d", i % 2 ? "fill" : "fill/more", i);
        workspace_write(name, "x");
        changes_accept(&changes, name);
    }
    workspace_write("d/old", "x");
    workspace_write("d/sub/older", "x");
    workspace_write("top", "x");
    changes_accept(&changes, "d/old");
    changes_accept(&changes, "d/sub/older");
    changes_accept(&changes, "top");
    assert_string_equal(report(), "");
    if (large && !changes.watch.sound)
        fail_msg("inotify cannot be had: is fs.inotify.max_user_instances used up?");
    assert_int_equal(changes.watch.sound, large);
    assert_string_equal(report(), "");
    assert_int_equal(changes.walks, large ? 1 : 2);
    return 0;
}

static int setup_small(void **state)
{
    (void)state;
    return set_up(false);
}

static int setup_large(void **state)
{
    (void)state;
    return set_up(true);
}

static int teardown(void **state)
{
    (void)state;
    if (changes.watch.started)
        close(changes.watch.fd);
    for (unsigned i = 0; i < changes.watch.n_dirs; i++)
        free(changes.watch.dirs[i].path);
    for (unsigned i = 0; i < changes.watch.n; i++)
        free(changes.watch.list[i].path);
    free(changes.watch.dirs);
    free(changes.watch.list);
    snapshot_done(&changes.known);
    workspace_close();
    return 0;
}

/* These must not cost a walk. */
static void assert_cheap(unsigned walks)
{
    if (changes.known.n > CHANGES_WATCHED)
        assert_int_equal(changes.walks, walks);
}

/* ---- what programs do ---- */

static void files_come_change_and_go(void **state)
{
    unsigned walks = changes.walks;
    (void)state;

    workspace_write("new", "x");
    workspace_write("d/old", "longer");
    assert_int_equal(unlink("top"), 0);
    assert_string_equal(report(), "~d/old +new -top");
    workspace_write("d/old", "long");
    workspace_write("d/new", "");
    assert_string_equal(report(), "+d/new ~d/old");
    assert_int_equal(chmod("new", 0600), 0);
    assert_string_equal(report(), "~new");
    assert_string_equal(report(), "");
    assert_cheap(walks);
}

static void what_comes_and_goes_at_once_is_not_told(void **state)
{
    unsigned walks = changes.walks;
    (void)state;

    workspace_write("tmp", "x");
    assert_int_equal(unlink("tmp"), 0);
    workspace_write("tmp", "y");
    assert_int_equal(rename("tmp", "top"), 0); /* as careful programs write */
    assert_int_equal(mkfifo("fifo", 0644), 0);
    assert_int_equal(symlink("top", "link"), 0);
    assert_string_equal(report(), "~top");
    assert_int_equal(unlink("d/old"), 0);
    assert_int_equal(symlink("../top", "d/old"), 0);
    assert_string_equal(report(), "-d/old");
    assert_cheap(walks);
}

static void a_file_kept_open_is_seen_each_time(void **state)
{
    cleanup_fd int fd = open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    unsigned walks = changes.walks;
    (void)state;

    assert_string_equal(report(), "+log");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(write(fd, "x", 1), 1);
        assert_string_equal(report(), "~log");
    }
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_string_equal(report(), "~log");
    fd_close(&fd);
    assert_string_equal(report(), "");
    assert_cheap(walks);
}

static void directories_may_be_moved_around(void **state)
{
    (void)state;
    workspace_write("e/f/g", "x");
    assert_string_equal(report(), "+e/f/g");
    workspace_write("e/f/h", "x"); /* the new directory is seen into */
    assert_string_equal(report(), "+e/f/h");
    assert_int_equal(rename("d/sub", "e/sub"), 0);
    assert_string_equal(report(), "-d/sub/older +e/sub/older");
    workspace_write("e/sub/older", "changed");
    assert_string_equal(report(), "~e/sub/older");
    /* two change places: every path is there as before, and each is another file */
    assert_int_equal(renameat2(AT_FDCWD, "d", AT_FDCWD, "e", RENAME_EXCHANGE), 0);
    assert_string_equal(report(), "+d/f/g +d/f/h -d/old +d/sub/older -e/f/g -e/f/h +e/old "
                                  "-e/sub/older");
}

static void a_directory_becomes_a_link(void **state)
{
    (void)state;
    assert_int_equal(rename("d", "moved"), 0);
    assert_int_equal(symlink("moved", "d"), 0);
    assert_string_equal(report(), "-d/old -d/sub/older +moved/old +moved/sub/older");
    workspace_write("d/old", "through the link");
    assert_string_equal(report(), "~moved/old");
}

static void trees_go(void **state)
{
    (void)state;
    assert_int_equal(system("rm -rf d"), 0);
    assert_string_equal(report(), "-d/old -d/sub/older");
    workspace_write("d/old", "x");
    assert_string_equal(report(), "+d/old");
}

/* ---- what a guest may try ---- */

/* Nothing in a shut directory has been deleted, and it is no news when it is opened again. */
static void a_shut_directory_hides_nothing(void **state)
{
    (void)state;
    assert_int_equal(chmod("d", 0), 0);
    assert_string_equal(report(), "");
    workspace_write("new", "x");
    assert_string_equal(report(), "+new");
    assert_int_equal(chmod("d", 0300), 0); /* it can be written to, and not read */
    workspace_write("d/old", "changed");
    assert_int_equal(unlink("d/sub/older"), 0);
    workspace_write("d/hidden", "x");
    assert_string_equal(report(), "~d/old -d/sub/older");
    assert_int_equal(chmod("d", 0755), 0);
    assert_string_equal(report(), "+d/hidden");
    assert_string_equal(report(), "");
}

/* Shut before it could be watched. */
static void a_directory_that_was_always_shut_is_looked_at(void **state)
{
    (void)state;
    if (changes.watch.started)
        close(changes.watch.fd);
    changes.watch.started = changes.watch.sound = false;
    assert_int_equal(chmod("d", 0300), 0);
    assert_string_equal(report(), "");
    workspace_write("d/old", "changed");
    assert_string_equal(report(), "~d/old");
}

static void a_file_with_two_names_changes_under_both(void **state)
{
    (void)state;
    assert_int_equal(link("top", "d/other"), 0);
    assert_string_equal(report(), "+d/other ~top");
    workspace_write("d/other", "changed");
    assert_string_equal(report(), "~d/other ~top");
    assert_int_equal(unlink("d/other"), 0);
    assert_string_equal(report(), "-d/other ~top");
}

/* Opened by a name that is gone, or by none: the events do not tell which file it is. */
static void a_write_through_a_name_that_is_gone_is_seen(void **state)
{
    cleanup_fd int gone = open("top", O_WRONLY | O_CLOEXEC);
    cleanup_fd int nameless = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    char self[64];
    (void)state;

    assert_int_equal(link("top", "d/heir"), 0);
    assert_int_equal(unlink("top"), 0);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", nameless);
    assert_int_equal(linkat(AT_FDCWD, self, AT_FDCWD, "d/named", AT_SYMLINK_FOLLOW), 0);
    assert_string_equal(report(), "+d/heir +d/named -top");
    assert_string_equal(report(), "");
    assert_int_equal(write(gone, "longer", 6), 6);
    assert_string_equal(report(), "~d/heir");
    assert_int_equal(write(nameless, "longer", 6), 6);
    assert_string_equal(report(), "~d/named");
    workspace_write("top", "another");
    assert_string_equal(report(), "+top");
    assert_int_equal(write(gone, "longer", 6), 6);
    assert_string_equal(report(), "~d/heir");
}

/* More events than the kernel keeps. */
static void a_full_queue_loses_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 12000; i++) {
        assert_int_equal(rename("top", "pot"), 0);
        assert_int_equal(rename("pot", "top"), 0);
    }
    workspace_write("d/old", "changed");
    assert_string_equal(report(), "~d/old ~top");
    workspace_write("d/old", "once more");
    assert_string_equal(report(), "~d/old");
}

/* The instances of inotify are the host's: others need some too, and who is idle none. */
static void instances_are_left_to_others(void **state)
{
    int taken[2000], n = 0;
    (void)state;

    changes_idle(&changes);
    assert_int_equal(changes.watch.started, changes.known.n > CHANGES_WATCHED);
    changes.reported_us -= 11000000;
    changes_idle(&changes);
    assert_false(changes.watch.started);
    while (n < 2000 && (taken[n] = inotify_init1(IN_CLOEXEC)) >= 0)
        n++;
    for (int i = 0; i < 10 && n > 0; i++)
        close(taken[--n]); /* ten are free */
    workspace_write("new", "x");
    assert_string_equal(report(), "+new");
    assert_false(changes.watch.started && n < 1980);
    while (n > 0)
        close(taken[--n]);
    changes.watch.rest = 0;
    workspace_write("new", "longer");
    assert_string_equal(report(), "~new");
    assert_int_equal(changes.watch.started, changes.known.n > CHANGES_WATCHED);
    assert_string_equal(report(), "");
}

static void many_names_are_all_told(void **state)
{
    char name[32];
    (void)state;

    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "d/%d", i);
        workspace_write(name, "x");
        if (i % 2)
            unlink(name);
    }
    report();
    assert_int_equal(changes.known.n % 300, 1500 % 300 + 3);
    assert_string_equal(report(), "");
}

static void a_workspace_that_is_too_deep_is_walked(void **state)
{
    char path[400] = "deep";
    struct err e;
    (void)state;

    for (int i = 0; i < 70; i++)
        strcat(path, "/d");
    strcat(path, "/file");
    workspace_write(path, "x");
    assert_int_equal(changes_report(&changes, tell, NULL, &e), -1);
    assert_int_equal(e.code, E2BIG);
    assert_false(changes.watch.sound);
    workspace_write("top", "changed");
    told[0] = '\0';
    assert_int_equal(changes_report(&changes, tell, NULL, &e), -1);
    assert_string_equal(told, "~top");
}

/* ---- what the owner does ---- */

static void over(void *ctx, uint32_t req, const char *path, const struct err *why)
{
    (void)ctx;
    (void)req;
    assert_null(why);
    changes_accept(&changes, path);
}

static void upload(const char *path, const char *text)
{
    static struct transfers transfers;
    struct pollfd fds[TRANSFERS];
    struct err e;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(transfers_begin(&transfers, 1, path, &ends[0], &e), 0);
    assert_int_equal(fd_write_all(ends[1], text, strlen(text)), 0);
    transfers_end(&transfers, 1, strlen(text));
    close(ends[1]);
    while (transfers.n > 0) {
        nfds_t n = transfers_poll(&transfers, fds);
        poll(fds, n, 0);
        transfers_move(&transfers, fds, n, over, NULL);
    }
}

static void uploads_and_deletions_are_not_told(void **state)
{
    unsigned walks = changes.walks;
    struct err e;
    (void)state;

    upload("up", "loaded");
    upload("top", "replaced");
    workspace_write("new", "x");
    assert_string_equal(report(), "+new");
    assert_cheap(walks);
    upload("into/a/dir", "loaded");
    assert_string_equal(report(), "");
    workspace_write("up", "changed");
    assert_string_equal(report(), "~up");
    assert_int_equal(files_delete("up", &e), 0);
    changes_forget(&changes, "up");
    assert_int_equal(files_delete("d", &e), 0);
    changes_forget(&changes, "d");
    assert_string_equal(report(), "");
    workspace_write("up", "x");
    assert_string_equal(report(), "+up");
}

/* What only half succeeded is forgotten by half. */
static void only_what_is_gone_is_forgotten(void **state)
{
    (void)state;
    workspace_write("d-e", "x");
    assert_string_equal(report(), "+d-e");
    assert_int_equal(unlink("d/sub/older"), 0);
    changes_forget(&changes, "d");
    assert_string_equal(report(), "");
    assert_int_equal(unlink("d/old"), 0);
    assert_string_equal(report(), "-d/old");
}

#define both(name)                                                                                 \
    {#name " (walked)", name, setup_small, teardown, NULL},                                        \
    {                                                                                              \
#name " (watched)", name, setup_large, teardown, NULL                                      \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        both(files_come_change_and_go),
        both(what_comes_and_goes_at_once_is_not_told),
        both(a_file_kept_open_is_seen_each_time),
        both(directories_may_be_moved_around),
        both(a_directory_becomes_a_link),
        both(trees_go),
        both(a_shut_directory_hides_nothing),
        both(a_directory_that_was_always_shut_is_looked_at),
        both(a_file_with_two_names_changes_under_both),
        both(a_write_through_a_name_that_is_gone_is_seen),
        both(a_full_queue_loses_nothing),
        both(instances_are_left_to_others),
        both(many_names_are_all_told),
        both(a_workspace_that_is_too_deep_is_walked),
        both(uploads_and_deletions_are_not_told),
        both(only_what_is_gone_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
