/* What an owner sees by himself and does not ask init: that there is no file. And what he tells it later: states that
 * are the same. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fixture.h"
#include "session/inside.h"
#include "wire/fields.h"

static char place[] = "/tmp/retort-unasked-XXXXXX";

/* As in a box: a tmpfs of its own, with a bound. Mounts of this process are nobody else's. */
static int make_place(void **state)
{
    char uids[32], gids[32];
    struct err e;
    (void)state;

    snprintf(uids, sizeof(uids), "0 %u 1\n", geteuid());
    snprintf(gids, sizeof(gids), "0 %u 1\n", getegid());
    assert_int_equal(unshare(CLONE_NEWUSER | CLONE_NEWNS), 0);
    assert_int_equal(fd_put_text(AT_FDCWD, "/proc/self/uid_map", uids, &e), 0);
    assert_int_equal(fd_put_text(AT_FDCWD, "/proc/self/setgroups", "deny", &e), 0);
    assert_int_equal(fd_put_text(AT_FDCWD, "/proc/self/gid_map", gids, &e), 0);
    assert_non_null(mkdtemp(place));
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    return rmdir(place);
}

static void open_with(const char *options, bool has_files)
{
    assert_int_equal(mount("tmpfs", place, "tmpfs", 0, options), 0);
    fake_start(&f, NULL);
    f.workspace = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(f.workspace >= 0);
    f.has_files = has_files;
    fake_create(&f, METER_V1);
    assert_true(f.opened);
}

static int setup(void **state)
{
    (void)state;
    open_with("nr_inodes=10", false);
    return 0;
}

static int teardown(void **state)
{
    fixture_teardown(state);
    return umount2(place, MNT_DETACH);
}

static void in_place(const char *name, char ret[128])
{
    snprintf(ret, 128, "%s/%s", place, name);
}

static int make(const char *name)
{
    char path[128];

    in_place(name, path);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void unmake(const char *name)
{
    char path[128];

    in_place(name, path);
    assert_int_equal(unlink(path), 0);
}

static bool init_has_mail(void)
{
    struct pollfd p = {.fd = f.files, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/* Run one, to the moment where init may be asked. */
static void run(void)
{
    fake_run(&f, "…");
    fake_done(&f, DONE_OK);
    fake_turn(&f);
}

static void assert_asked(void)
{
    assert_false(f.done);
    assert_true(init_has_mail());
    fake_init_answers(&f);
    assert_true(f.done);
}

static void assert_unasked(void)
{
    assert_true(f.done);
    assert_false(init_has_mail());
    assert_int_equal(f.cell->status, CELL_OK);
    assert_int_equal(f.cell->n_files, 0);
}

/* init says so of a file, and that this is all. */
static void tell(int change, const char *path)
{
    cleanup_buf struct buf b = {0};
    cleanup_msg struct msg m;
    struct fields asked;
    struct err e;

    assert_true(init_has_mail());
    assert_int_equal(msg_recv(f.files, &m, &e), 1);
    assert_int_equal(m.type, FILE_CHANGES);
    fields_init(&asked, m.data, m.len);
    uint32_t req = fields_get_u32(&asked);
    msg_begin(&b, FILE_CHANGE);
    fields_put_u32(&b, req);
    fields_put_u8(&b, (uint8_t)change);
    fields_put_u64(&b, 0);
    fields_put_bytes(&b, "", 0);
    fields_put_text(&b, path);
    assert_int_equal(msg_send(f.files, &b, NULL, 0, &e), 0);
    b.len = 0;
    msg_begin(&b, FILE_DONE);
    fields_put_u32(&b, req);
    fields_put_u32(&b, 0);
    fields_put_text(&b, "");
    assert_int_equal(msg_send(f.files, &b, NULL, 0, &e), 0);
    fake_turn(&f);
    fake_init_answers(&f); /* how full it is */
    assert_true(f.done);
}

/* One cell has made a file, which was told; when the next one ends it is gone. */
static void run_after_a_file(void)
{
    close(make("a"));
    run();
    tell(FILE_CREATED, "a");
    unmake("a");
    run();
}

/* ---- files ---- */

static void not_of_an_empty_workspace(void **state)
{
    (void)state;
    run();
    assert_unasked();
    run();
    assert_unasked();
}

static void of_one_with_a_file(void **state)
{
    (void)state;
    close(make("a"));
    run();
    assert_asked();
    run();
    assert_asked(); /* it may have changed */
}

static void of_a_file_that_is_gone(void **state)
{
    (void)state;
    run_after_a_file();
    tell(FILE_DELETED, "a"); /* it is empty, but that has to be told */
    assert_int_equal(f.cell->n_files, 1);
    run();
    assert_unasked();
}

static void of_a_file_that_came_while_init_looked(void **state)
{
    (void)state;
    run_after_a_file();
    tell(FILE_CREATED, "b"); /* which is gone again by now */
    run();
    assert_asked();
}

/* A branch whose guest has deleted what came along, before its first cell. */
static void of_files_that_were_there_at_first(void **state)
{
    (void)state;
    teardown(NULL);
    open_with("nr_inodes=10", true);
    run();
    assert_asked();
}

static void of_a_file_without_a_name(void **state)
{
    (void)state;
    cleanup_fd int fd = make("a");
    unmake("a");
    run();
    assert_asked();
}

static void answered(void *ctx, const struct file_answer *a)
{
    (void)ctx, (void)a;
}

static void of_one_that_its_owner_fills(void **state)
{
    int pipe = -1;
    struct err e;
    (void)state;

    struct file_request *r = session_ask_put(f.session, "a", &pipe, answered, NULL, &e);
    assert_non_null(r);
    run();
    assert_asked();
    close(pipe);
}

static void where_nothing_is_counted(void **state)
{
    (void)state;
    teardown(NULL);
    open_with("nr_inodes=0", false);
    run();
    assert_asked();
}

static void where_the_disk_was_full(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_error(&f, "OSError", "[Errno 28] No space left on device");
    fake_done(&f, DONE_ERROR);
    fake_turn(&f);
    assert_asked();
}

static void of_the_dead(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_died(&f, SIGSEGV, false);
    assert_asked();
}

/* ---- states ---- */

static void same(uint32_t as)
{
    f.same_as = as + 1;
    run();
    f.same_as = 0;
}

static void assert_told(uint32_t of, uint32_t from, uint32_t to)
{
    cleanup_msg struct msg m;
    struct fields told;
    struct err e;

    assert_true(init_has_mail());
    assert_int_equal(msg_recv(f.files, &m, &e), 1);
    assert_int_equal(m.type, FILE_SAME);
    fields_init(&told, m.data, m.len);
    fields_get_u32(&told);
    assert_int_equal(fields_get_u32(&told), of);
    assert_int_equal(fields_get_u32(&told), from);
    assert_int_equal(fields_get_u32(&told), to);
    assert_true(fields_end(&told));
}

static void assert_next(uint32_t type)
{
    cleanup_msg struct msg m;
    struct err e;

    assert_true(init_has_mail());
    assert_int_equal(msg_recv(f.files, &m, &e), 1);
    assert_int_equal(m.type, type);
}

static void states_that_are_the_same_are_told_together_and_first(void **state)
{
    struct err e;
    (void)state;

    for (uint32_t n = 0; n < 3; n++)
        same(n);
    assert_unasked();
    assert_int_equal(session_rollback(f.session, 2, &e), 0);
    assert_told(0, 1, 3);
    assert_next(FILE_STATES);
    assert_false(init_has_mail());
}

static void each_row_of_them_by_itself(void **state)
{
    (void)state;
    same(0);
    run();
    assert_false(init_has_mail());
    same(2);
    assert_told(0, 1, 1);
    assert_false(init_has_mail());
    close(make("a"));
    run();
    assert_told(2, 3, 3);
    assert_next(FILE_CHANGES);
}

static void before_a_branch_is_made(void **state)
{
    struct err e;
    (void)state;

    same(0);
    struct session *branch = session_branch(f.session, &(struct session_departure){.n = 1},
                                            &f.limits, &(struct session_events){0}, NULL);
    assert_told(0, 1, 1);
    session_close(branch);
    assert_int_equal(session_run(f.session, "1", 1, 0, &e), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(not_of_an_empty_workspace),
        TEST(of_one_with_a_file),
        TEST(of_a_file_that_is_gone),
        TEST(of_a_file_that_came_while_init_looked),
        TEST(of_files_that_were_there_at_first),
        TEST(of_a_file_without_a_name),
        TEST(of_one_that_its_owner_fills),
        TEST(where_nothing_is_counted),
        TEST(where_the_disk_was_full),
        TEST(of_the_dead),
        TEST(states_that_are_the_same_are_told_together_and_first),
        TEST(each_row_of_them_by_itself),
        TEST(before_a_branch_is_made),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
