/* What init does with paths: uploads and deletions, in a workspace where a guest has laid out what it
 * likes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "init/files.h"
#include "init/snapshot.h"
#include "init/transfer.h"
#include "workspace.h"

static struct transfers transfers;

static int setup(void **state)
{
    (void)state;
    workspace_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(transfers.n, 0);
    workspace_close();
    return 0;
}

static void over(void *ctx, uint32_t req, const char *path, const struct err *why)
{
    (void)req;
    (void)path;
    *(int *)ctx = why ? why->code : 0;
}

static int start(uint32_t req, const char *path, int *ret_pipe)
{
    struct err e;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    cleanup_fd int to_read = ends[0];
    if (transfers_begin(&transfers, req, path, &to_read, &e) < 0) {
        close(ends[1]);
        return e.code;
    }
    *ret_pipe = ends[1];
    return 0;
}

static int move(void)
{
    struct pollfd fds[TRANSFERS];
    int result = -1;

    for (int i = 0; i < 1000 && result < 0; i++) {
        nfds_t n = transfers_poll(&transfers, fds);
        poll(fds, n, 0);
        transfers_move(&transfers, fds, n, over, &result);
    }
    return result;
}

/* Upload; the errno. */
static int put_as(const char *path, const char *text, uint64_t announced)
{
    int pipe = -1;
    int error = start(1, path, &pipe);

    if (error)
        return error;
    assert_int_equal(fd_write_all(pipe, text, strlen(text)), 0);
    transfers_end(&transfers, 1, announced);
    close(pipe);
    return move();
}

static int put(const char *path, const char *text)
{
    return put_as(path, text, strlen(text));
}

static int remove_it(const char *path)
{
    struct err e = {0};
    int result = files_delete(path, &e);

    assert_true(result == 0 || (e.code && e.text[0]));
    return result == 0 ? 0 : e.code;
}

static bool there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* ---- uploads ---- */

static void uploads_appear_whole(void **state)
{
    int pipe = -1;
    (void)state;

    assert_int_equal(put("a", "one"), 0);
    assert_int_equal(put("a", "two"), 0);
    assert_true(workspace_has("a", "two"));
    assert_int_equal(put("x/y/z", ""), 0);
    assert_true(workspace_has("x/y/z", ""));
    assert_int_equal(start(2, "later", &pipe), 0);
    assert_int_equal(write(pipe, "half", 4), 4);
    assert_int_equal(move(), -1);
    assert_false(there("later"));
    transfers_end(&transfers, 2, UINT64_MAX);
    assert_int_equal(move(), ECANCELED);
    close(pipe);
    assert_false(there("later"));
}

static void uploads_of_the_wrong_length_are_refused(void **state)
{
    (void)state;
    assert_int_equal(put_as("a", "four", 5), EPIPE);
    assert_int_equal(put_as("a", "four", 3), EFBIG);
    assert_false(there("a"));
}

static void uploads_replace_links_and_pipes_themselves(void **state)
{
    (void)state;
    workspace_write("target", "kept");
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(symlink("/nowhere/at/all", "dangling"), 0);
    assert_int_equal(mkfifo("fifo", 0644), 0);
    assert_int_equal(put("link", "new"), 0);
    assert_int_equal(put("dangling", "new"), 0);
    assert_int_equal(put("fifo", "new"), 0);
    assert_true(workspace_has("target", "kept"));
    assert_true(workspace_has("link", "new"));
    assert_true(workspace_has("dangling", "new"));
    assert_true(workspace_has("fifo", "new"));
}

static void uploads_where_they_cannot_be_say_why(void **state)
{
    char longest[257];
    (void)state;

    workspace_write("file", "x");
    workspace_write("dir/a", "x");
    assert_int_equal(symlink("/tmp", "out"), 0);
    assert_int_equal(symlink("dir", "in"), 0);
    assert_int_equal(put("dir", "x"), EISDIR);
    assert_int_equal(put("file/a", "x"), ENOTDIR);
    assert_int_equal(put("out/a", "x"), ENOTDIR);
    assert_int_equal(put("in/b", "x"), ENOTDIR);
    assert_int_equal(put("../a", "x"), EINVAL);
    assert_int_equal(put("/a", "x"), EINVAL);
    memset(longest, 'n', sizeof(longest));
    longest[256] = '\0';
    assert_int_equal(put(longest, "x"), ENAMETOOLONG);
    longest[255] = '\0';
    assert_int_equal(put(longest, "x"), 0);
    assert_true(workspace_has(longest, "x"));
    assert_int_equal(chmod("dir", 0), 0);
    assert_int_equal(put("dir/b", "x"), EACCES);
    assert_int_equal(chmod("dir", 0755), 0);
    assert_false(there("dir/b"));
}

static void only_so_many_uploads_at_once(void **state)
{
    int pipes[TRANSFERS + 1];
    char name[16];
    (void)state;

    for (uint32_t i = 0; i < TRANSFERS; i++) {
        snprintf(name, sizeof(name), "%u", i);
        assert_int_equal(start(10 + i, name, &pipes[i]), 0);
    }
    assert_int_equal(start(99, "more", &pipes[TRANSFERS]), EBUSY);
    for (uint32_t i = 0; i < TRANSFERS; i++) {
        transfers_end(&transfers, 10 + i, 0);
        close(pipes[i]);
    }
    assert_int_equal(move(), 0);
    assert_true(there("0") && there("15"));
}

/* ---- deletions ---- */

static void deletes_what_has_the_name(void **state)
{
    (void)state;
    workspace_write("file", "x");
    workspace_write("target", "kept");
    workspace_write("full/a", "kept");
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(symlink("full", "link-to-dir"), 0);
    assert_int_equal(mkfifo("fifo", 0644), 0);
    assert_int_equal(mkdir("empty", 0755), 0);
    assert_int_equal(remove_it("file"), 0);
    assert_int_equal(remove_it("link"), 0);
    assert_int_equal(remove_it("link-to-dir"), 0);
    assert_int_equal(remove_it("fifo"), 0);
    assert_int_equal(remove_it("empty"), 0);
    assert_false(there("file") || there("link") || there("link-to-dir") || there("fifo") ||
                 there("empty"));
    assert_true(workspace_has("target", "kept"));
    assert_true(workspace_has("full/a", "kept"));
}

/* The classic: a tree with links that lead out of it. */
static void a_tree_goes_and_nothing_that_it_points_to(void **state)
{
    (void)state;
    workspace_write("kept/a", "kept");
    workspace_write("tree/b/c/d", "x");
    workspace_write("tree/shut/e", "x");
    workspace_write("tree/shut/f/g", "x");
    assert_int_equal(symlink("../../kept", "tree/b/out"), 0);
    assert_int_equal(symlink("/", "tree/root"), 0);
    assert_int_equal(mkfifo("tree/fifo", 0), 0);
    assert_int_equal(chmod("tree/shut/f", 0), 0);
    assert_int_equal(chmod("tree/shut", 0), 0);
    assert_int_equal(remove_it("tree"), 0);
    assert_false(there("tree"));
    assert_true(workspace_has("kept/a", "kept"));
}

static void what_cannot_be_deleted_says_why(void **state)
{
    (void)state;
    workspace_write("file", "x");
    workspace_write("dir/a", "kept");
    assert_int_equal(symlink("dir", "link"), 0);
    assert_int_equal(remove_it("nothing"), ENOENT);
    assert_int_equal(remove_it("no/where"), ENOENT);
    assert_int_equal(remove_it("file/a"), ENOTDIR);
    assert_int_equal(remove_it("link/a"), ENOTDIR);
    assert_int_equal(remove_it(""), EINVAL);
    assert_int_equal(remove_it("."), EINVAL);
    assert_int_equal(remove_it(".."), EINVAL);
    assert_int_equal(remove_it("dir/.."), EINVAL);
    assert_int_equal(remove_it("dir/"), EINVAL);
    assert_int_equal(remove_it("/dev/null"), EINVAL);
    assert_true(workspace_has("dir/a", "kept"));
}

static void very_deep_trees_are_left(void **state)
{
    char path[300] = "d";
    (void)state;

    for (int i = 0; i < 70; i++) {
        assert_int_equal(mkdir(path, 0755), 0);
        strcat(path, "/d");
    }
    assert_int_equal(remove_it("d"), E2BIG);
    assert_int_equal(remove_it("d/d/d/d/d/d/d/d/d/d/d"), 0);
    assert_int_equal(remove_it("d"), 0);
    assert_false(there("d"));
}

/* ---- lists ---- */

static void a_snapshot_has_regular_files_in_order(void **state)
{
    static const char *const expected[] = {"a", "a.b", "a/b", "a0", "\xff"};
    struct snapshot now;
    struct err e;
    (void)state;

    workspace_write("a0", "x");
    workspace_write("\xff", "x");
    workspace_write("a.b", "four");
    mkfifo("fifo", 0644);
    assert_int_equal(symlink("a0", "link"), 0);
    assert_int_equal(symlink("/", "root"), 0);
    mkdir("empty", 0755);
    /* "a" cannot be both a file and a directory: a/b is another tree's */
    workspace_write("b/a", "x");
    assert_int_equal(rename("b/a", "a"), 0);
    assert_int_equal(snapshot_take(&now, NULL, NULL, &e), 0);
    assert_int_equal(now.n, 4);
    for (unsigned i = 0, k = 0; k < 5; k++)
        if (strcmp(expected[k], "a/b") != 0)
            assert_string_equal(now.list[i++].path, expected[k]);
    assert_int_equal(now.list[1].size, 4);
    assert_false(now.cut || now.shut || now.linked);
    snapshot_done(&now);
    assert_int_equal(unlink("a"), 0);
    workspace_write("a/b", "x");
    assert_int_equal(link("a/b", "other"), 0);
    assert_int_equal(chmod("empty", 0), 0);
    assert_int_equal(snapshot_take(&now, NULL, NULL, &e), 0);
    assert_int_equal(now.n, 5);
    assert_string_equal(now.list[1].path, "a/b"); /* '/' is after '.' and before '0' */
    assert_true(now.shut && now.linked);
    snapshot_done(&now);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(uploads_appear_whole),
        test(uploads_of_the_wrong_length_are_refused),
        test(uploads_replace_links_and_pipes_themselves),
        test(uploads_where_they_cannot_be_say_why),
        test(only_so_many_uploads_at_once),
        test(deletes_what_has_the_name),
        test(a_tree_goes_and_nothing_that_it_points_to),
        test(what_cannot_be_deleted_says_why),
        test(very_deep_trees_are_left),
        test(a_snapshot_has_regular_files_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
