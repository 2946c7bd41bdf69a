/* Files: what an owner puts and gets, and what a hostile init may answer. A thread plays init. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fixture.h"
#include "session/inside.h"
#include "wire/fields.h"

/* What the thread does and has seen. */
static struct {
    pthread_t thread;
    enum { READ_ALL, REFUSE_AT_ONCE, STOP_READING, SEND_PIPE, SEND_FILE, SAY_NO, HANG_UP } manner;
    struct buf got;
    uint64_t announced;
} init;

static int teardown(void **state)
{
    buf_done(&init.got);
    memset(&init, 0, sizeof(init));
    return fixture_teardown(state);
}

static void answer_done(uint32_t req, uint32_t error, const char *reason)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    msg_begin(&b, FILE_DONE);
    fields_put_u32(&b, req);
    fields_put_u32(&b, error);
    fields_put_text(&b, reason);
    msg_send(f.files, &b, NULL, 0, &e);
}

static void read_contents(int fd)
{
    char chunk[10000];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
        buf_add(&init.got, chunk, (size_t)n);
        if (init.manner == STOP_READING)
            return;
    }
}

/* A sound init reads while the owner writes, and knows the end by the announced size; the pipe's
 * end of file comes with it. */
static void play_put(uint32_t req, int fd)
{
    cleanup_fd int pipe_end = fd;
    cleanup_msg struct msg m;
    struct fields fields;
    struct err e;

    if (init.manner == REFUSE_AT_ONCE) {
        answer_done(req, EACCES, "no: Permission denied");
        return;
    }
    read_contents(pipe_end);
    fd_close(&pipe_end);
    if (msg_recv(f.files, &m, &e) != 1 || m.type != FILE_PUT_END)
        return;
    fields_init(&fields, m.data, m.len);
    fields_get_u32(&fields);
    init.announced = fields_get_u64(&fields);
    if (init.announced == UINT64_MAX)
        answer_done(req, ENOSPC, "cannot write the file: No space left on device");
    else
        answer_done(req, 0, "");
}

static void play_get(uint32_t req)
{
    cleanup_buf struct buf b = {0};
    int ends[2];
    struct err e;

    if (init.manner == SAY_NO) {
        answer_done(req, ENOENT, "there is no such file: No such file or directory");
        return;
    }
    msg_begin(&b, FILE_OPENED);
    fields_put_u32(&b, req);
    if (init.manner == SEND_PIPE) {
        assert_that(pipe2(ends, O_CLOEXEC) == 0);
    } else {
        ends[0] = memfd_create("file", MFD_CLOEXEC);
        ends[1] = dup(ends[0]);
        fd_write_all(ends[0], "hello", 5);
    }
    msg_send(f.files, &b, ends, 1, &e);
    close(ends[0]);
    close(ends[1]);
}

static void *play(void *unused)
{
    cleanup_msg struct msg m;
    struct fields fields;
    struct err e;
    (void)unused;

    if (msg_recv(f.files, &m, &e) != 1)
        return NULL;
    fields_init(&fields, m.data, m.len);
    uint32_t req = fields_get_u32(&fields);
    if (init.manner == HANG_UP)
        fd_close(&f.files);
    else if (m.type == FILE_PUT)
        play_put(req, msg_take_fd(&m, 0));
    else if (m.type == FILE_GET)
        play_get(req);
    return NULL;
}

static void play_init(int manner)
{
    init.manner = manner;
    assert_int_equal(pthread_create(&init.thread, NULL, play, NULL), 0);
}

static int put(const char *path, int fd, struct err *e)
{
    int result = session_put(f.session, path, fd, e);

    pthread_join(init.thread, NULL);
    return result;
}

static int make_source(size_t size)
{
    int fd = memfd_create("source", MFD_CLOEXEC);

    for (size_t i = 0; i < size; i += 1000) {
        char line[1000];
        memset(line, 'a' + (int)(i / 1000 % 26), sizeof(line));
        fd_write_all(fd, line, size - i < 1000 ? size - i : 1000);
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void puts_a_file_whole(void **state)
{
    static const size_t sizes[] = {0, 1, 5000, 3000000};
    struct err e;
    (void)state;

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        cleanup_fd int fd = make_source(sizes[i]);
        char *contents = malloc(sizes[i] + 1);
        assert_int_equal(pread(fd, contents, sizes[i], 0), sizes[i]);
        init.got.len = 0;
        play_init(READ_ALL);
        assert_int_equal(put("dir/a.csv", fd, &e), 0);
        assert_int_equal(init.got.len, sizes[i]);
        assert_int_equal(init.announced, sizes[i]);
        if (sizes[i])
            assert_memory_equal(init.got.data, contents, sizes[i]);
        free(contents);
    }
}

static void a_refusal_says_why(void **state)
{
    cleanup_fd int fd = make_source(1000000);
    struct err e;
    (void)state;

    play_init(REFUSE_AT_ONCE);
    assert_int_equal(put("a.csv", fd, &e), -1);
    assert_int_equal(e.code, EACCES);
    assert_string_equal(e.text, "cannot write a.csv: no: Permission denied");
}

/* init ran out of space half-way and closed the pipe: no SIGPIPE, and its reason is told. */
static void a_full_disk_half_way_says_why(void **state)
{
    cleanup_fd int fd = make_source(3000000); /* more than a pipe holds */
    struct err e;
    (void)state;

    play_init(STOP_READING);
    assert_int_equal(put("a.csv", fd, &e), -1);
    assert_int_equal(e.code, ENOSPC);
    assert_non_null(strstr(e.text, "No space left on device"));
    assert_int_equal(init.announced, UINT64_MAX);
}

static void an_unreadable_source_leaves_nothing(void **state)
{
    cleanup_fd int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e;
    (void)state;

    play_init(READ_ALL);
    assert_int_equal(put("a.csv", fd, &e), -1);
    assert_int_equal(e.code, EISDIR);
    assert_int_equal(init.announced, UINT64_MAX);
    fake_turn(&f); /* its late answer is about nobody's request */
    assert_false(session_ended(f.session));
}

static void an_init_that_dies_is_told(void **state)
{
    cleanup_fd int fd = make_source(1000000);
    struct err e;
    (void)state;

    play_init(HANG_UP);
    assert_int_equal(put("a.csv", fd, &e), -1);
}

static void gets_a_descriptor(void **state)
{
    struct err e;
    char text[8] = "";
    int fd = -1;
    (void)state;

    play_init(SEND_FILE);
    assert_int_equal(session_get(f.session, "a.csv", &fd, &e), 0);
    pthread_join(init.thread, NULL);
    assert_int_equal(pread(fd, text, sizeof(text), 0), 5);
    assert_string_equal(text, "hello");
    close(fd);
}

static void a_missing_file_is_told(void **state)
{
    struct err e;
    int fd = -1;
    (void)state;

    play_init(SAY_NO);
    assert_int_equal(session_get(f.session, "a.csv", &fd, &e), -1);
    pthread_join(init.thread, NULL);
    assert_string_equal(e.text,
                        "cannot read a.csv: there is no such file: No such file or directory");
    assert_int_equal(fd, -1);
}

/* A pipe in place of a file would hold its reader for ever. */
static void a_pipe_is_not_a_file(void **state)
{
    struct err e;
    int fd = -1;
    (void)state;

    play_init(SEND_PIPE);
    assert_int_equal(session_get(f.session, "a.csv", &fd, &e), -1);
    pthread_join(init.thread, NULL);
    assert_int_equal(fd, -1);
}

static void paths_stay_in_the_workspace(void **state)
{
    static const char *const bad[] = {"", "/a", "a//b", "..", "../a", "a/./b"};
    struct err e;
    int fd;
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(session_get(f.session, bad[i], &fd, &e), -1);
}

/* ---- what a hostile init says after a cell ---- */

static void begin_change(struct buf *b, uint32_t req, unsigned change, const char *hash, size_t n,
                         const char *path)
{
    msg_begin(b, FILE_CHANGE);
    fields_put_u32(b, req);
    fields_put_u8(b, (uint8_t)change);
    fields_put_u64(b, 10);
    fields_put_bytes(b, hash, n);
    fields_put_text(b, path);
}

/* Run a cell to its FILE_CHANGES; returns the request. */
static uint32_t ask_changes(void)
{
    cleanup_msg struct msg m;
    struct fields fields;
    struct err e;

    fake_run(&f, "1");
    fake_done(&f, DONE_OK);
    fake_turn(&f);
    assert_int_equal(msg_recv(f.files, &m, &e), 1);
    assert_int_equal(m.type, FILE_CHANGES);
    fields_init(&fields, m.data, m.len);
    return fields_get_u32(&fields);
}

static void say(const struct buf *b, const int *fd)
{
    struct err e;

    assert_int_equal(msg_send(f.files, b, fd, fd ? 1 : 0, &e), 0);
    fake_turn(&f);
}

static void changes_are_noted(void **state)
{
    cleanup_buf struct buf b = {0}, d = {0};
    char hash[32];
    (void)state;

    memset(hash, 0xab, sizeof(hash));
    uint32_t req = ask_changes();
    begin_change(&b, req, FILE_CREATED, hash, 32, "dir/plot.png");
    say(&b, NULL);
    begin_change(&d, req, FILE_DELETED, "", 0, "old");
    say(&d, NULL);
    answer_done(req, 0, "");
    fake_turn(&f);
    fake_init_answers(&f); /* SPACE */
    assert_true(f.done);
    assert_int_equal(f.cell->n_files, 2);
    assert_string_equal(f.cell->files[0].path, "dir/plot.png");
    assert_true(f.cell->files[0].has_sha256);
    assert_int_equal(f.cell->files[0].sha256[31], 0xab);
    assert_int_equal(f.cell->files[0].size, 10);
    assert_int_equal(f.cell->files[1].change, FILE_DELETED);
    assert_false(f.cell->session_ended);
}

static void a_path_out_of_the_workspace_ends_the_session(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    begin_change(&b, ask_changes(), FILE_CREATED, "", 0, "../../etc/passwd");
    say(&b, NULL);
    assert_true(f.done);
    assert_int_equal(f.cell->n_files, 0);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_true(f.cell->session_ended);
}

static void half_a_hash_ends_the_session(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    begin_change(&b, ask_changes(), FILE_CREATED, "abc", 3, "a");
    say(&b, NULL);
    assert_true(f.cell->session_ended);
}

static void answers_to_nobody_are_dropped(void **state)
{
    cleanup_buf struct buf b = {0}, o = {0};
    int fd = make_source(1);
    (void)state;

    uint32_t req = ask_changes();
    begin_change(&b, req + 100, FILE_CREATED, "", 0, "a");
    say(&b, NULL);
    msg_begin(&o, FILE_OPENED);
    fields_put_u32(&o, req + 100);
    int before = dup(fd);
    close(before);
    for (int i = 0; i < 50; i++)
        say(&o, &fd);
    int after = dup(fd);
    close(after);
    assert_int_equal(before, after); /* no descriptor stayed */
    answer_done(req, 0, "");
    fake_turn(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->n_files, 0);
    close(fd);
}

static void notes_are_bounded(void **state)
{
    (void)state;
    uint32_t req = ask_changes();
    for (int i = 0; i < 20500; i++) {
        cleanup_buf struct buf b = {0};
        begin_change(&b, req, FILE_CREATED, "", 0, "a");
        say(&b, NULL);
    }
    answer_done(req, 0, "");
    fake_turn(&f);
    fake_init_answers(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->n_files, 20000);
}

/* ---- is it complete? ---- */

static void *play_kernel(void *text)
{
    cleanup_buf struct buf b = {0};
    struct frame frame;

    while (!fake_heard(&f, &frame))
        usleep(1000);
    assert_that(frame.type == CELL_CHECK);
    fields_put_u8(&b, CHECK_INCOMPLETE);
    fields_put_text(&b, text);
    fake_frame(&f, CELL_CHECKED, &b);
    return NULL;
}

static void checks_code(void **state)
{
    pthread_t thread;
    struct err e;
    int what = -1;
    char *indent = NULL;
    (void)state;

    pthread_create(&thread, NULL, play_kernel, "    ");
    assert_int_equal(session_check(f.session, "if x:", 5, &what, &indent, &e), 0);
    pthread_join(thread, NULL);
    assert_int_equal(what, CHECK_INCOMPLETE);
    assert_string_equal(indent, "    ");
    free(indent);
    /* what is no indentation is no answer */
    pthread_create(&thread, NULL, play_kernel, "\033[2J");
    assert_int_equal(session_check(f.session, "if x:", 5, &what, &indent, &e), -1);
    pthread_join(thread, NULL);
    assert_true(session_ended(f.session));
}

static void a_late_check_is_forgiven(void **state)
{
    cleanup_buf struct buf b = {0};
    struct frame frame;
    struct err e;
    int what;
    char *indent;
    (void)state;

    assert_int_equal(session_check(f.session, "x", 1, &what, &indent, &e), -1);
    assert_int_equal(e.code, ETIMEDOUT);
    assert_true(fake_heard(&f, &frame));
    fields_put_u8(&b, CHECK_COMPLETE);
    fields_put_text(&b, "");
    fake_frame(&f, CELL_CHECKED, &b);
    fake_turn(&f);
    assert_false(session_ended(f.session));
    fake_run(&f, "1");
    fake_finish(&f, DONE_OK);
}

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(puts_a_file_whole),
        test(a_refusal_says_why),
        test(a_full_disk_half_way_says_why),
        test(an_unreadable_source_leaves_nothing),
        test(an_init_that_dies_is_told),
        test(gets_a_descriptor),
        test(a_missing_file_is_told),
        test(a_pipe_is_not_a_file),
        test(paths_stay_in_the_workspace),
        test(changes_are_noted),
        test(a_path_out_of_the_workspace_ends_the_session),
        test(half_a_hash_ends_the_session),
        test(answers_to_nobody_are_dropped),
        test(notes_are_bounded),
        test(checks_code),
        test(a_late_check_is_forgiven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
