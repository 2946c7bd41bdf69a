/* Requests for files that do not wait: each is answered once, or never when nobody wants the answer,
 * whatever the owner does in its callbacks and whatever init says. The test plays init. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "fake.h"
#include "session/inside.h"
#include "wire/fields.h"

static struct fake f;
static int lowest_fd;

/* What the owner was told, and what he does then. */
struct told {
    unsigned answers;
    int code, fd;
    char text[256];
    struct file_answer a;
    unsigned entries;
    char listed[256]; /* the first paths, with a space behind each */
    enum { NOTHING, CLOSE, CANCEL_OTHER, ASK_AGAIN, CANCEL_SELF } manner;
    unsigned at_entry; /* do it at this one; 0: at the answer */
    struct file_request *self, *other;
};

static int lowest(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

static int setup(void **state)
{
    (void)state;
    lowest_fd = lowest();
    fake_open(&f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_stop(&f);
    assert_int_equal(lowest(), lowest_fd);
    return 0;
}

static void done(void *ctx, const struct file_answer *a);

static void behave(struct told *t)
{
    struct err e;

    if (t->manner == CLOSE) {
        session_close(f.session);
        f.session = NULL;
    }
    if (t->manner == CANCEL_OTHER)
        session_file_cancel(t->other);
    if (t->manner == CANCEL_SELF)
        session_file_cancel(t->self);
    if (t->manner == ASK_AGAIN)
        session_ask_space(f.session, done, t, &e);
    t->manner = NOTHING;
}

static void done(void *ctx, const struct file_answer *a)
{
    struct told *t = ctx;

    t->answers++;
    t->a = *a;
    t->code = a->e ? a->e->code : 0;
    t->fd = a->fd;
    snprintf(t->text, sizeof(t->text), "%.*s", 255, a->e ? a->e->text : "");
    if (!t->at_entry)
        behave(t);
}

static void entry(void *ctx, const char *path, uint64_t size, uint64_t mtime_ns)
{
    struct told *t = ctx;
    size_t len = strlen(t->listed);

    assert_int_equal(size, 11);
    assert_int_equal(mtime_ns, 22);
    t->entries++;
    snprintf(t->listed + len, sizeof(t->listed) - len, "%s ", path);
    if (t->entries == t->at_entry)
        behave(t);
}

/* ---- init's side ---- */

/* The next question: its number. *ret_fd is the pipe of an upload. */
static uint32_t hear(uint32_t type, const char *path, int *ret_fd)
{
    cleanup_msg struct msg m;
    struct fields fields;
    char text[4097] = "";
    struct err e;

    assert_int_equal(msg_recv(f.files, &m, &e), 1);
    assert_int_equal(m.type, type);
    fields_init(&fields, m.data, m.len);
    uint32_t req = fields_get_u32(&fields);
    if (path) {
        fields_get_text(&fields, text, sizeof(text));
        assert_string_equal(text, path);
    }
    if (ret_fd)
        *ret_fd = msg_take_fd(&m, 0);
    return req;
}

static uint64_t hear_end(uint32_t req)
{
    cleanup_msg struct msg m;
    struct fields fields;
    struct err e;

    assert_int_equal(msg_recv(f.files, &m, &e), 1);
    assert_int_equal(m.type, FILE_PUT_END);
    fields_init(&fields, m.data, m.len);
    assert_int_equal(fields_get_u32(&fields), req);
    return fields_get_u64(&fields);
}

static bool hears_nothing(void)
{
    char byte;

    return recv(f.files, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
}

static void say(struct buf *b, const int *fd)
{
    struct err e;

    assert_int_equal(msg_send(f.files, b, fd, fd ? 1 : 0, &e), 0);
    buf_done(b);
    fake_turn(&f);
}

static void say_done(uint32_t req, uint32_t error, const char *reason)
{
    struct buf b = {0};

    msg_begin(&b, FILE_DONE);
    fields_put_u32(&b, req);
    fields_put_u32(&b, error);
    fields_put_text(&b, reason);
    say(&b, NULL);
}

static void say_opened(uint32_t req, int fd)
{
    struct buf b = {0};

    msg_begin(&b, FILE_OPENED);
    fields_put_u32(&b, req);
    say(&b, fd >= 0 ? &fd : NULL);
}

/* `paths` are separated by spaces. */
static void say_entries(uint32_t req, const char *paths)
{
    struct buf b = {0};

    msg_begin(&b, FILE_ENTRIES);
    fields_put_u32(&b, req);
    for (size_t n; *paths; paths += n + (paths[n] == ' ')) {
        n = strcspn(paths, " ");
        fields_put_u64(&b, 11);
        fields_put_u64(&b, 22);
        fields_put_bytes(&b, paths, n);
    }
    say(&b, NULL);
}

static int make_file(void)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    assert_int_equal(fd_write_all(fd, "hello", 5), 0);
    return fd;
}

/* ---- each kind ---- */

static void a_get_is_answered_later(void **state)
{
    cleanup_fd int file = make_file();
    struct told t = {0};
    struct err e;
    (void)state;

    assert_non_null(session_ask_get(f.session, "a/b.csv", done, &t, &e));
    uint32_t req = hear(FILE_GET, "a/b.csv", NULL);
    fake_turn(&f);
    assert_int_equal(t.answers, 0);
    say_opened(req, file);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.code, 0);
    assert_int_equal(t.a.size, 5); /* by fstat: init's word is not needed */
    assert_true(t.a.mtime_ns > 0);
    assert_true(t.fd >= 0);
    close(t.fd);
    assert_null(f.session->requests);
    say_opened(req, file); /* once more: nobody's */
    assert_int_equal(t.answers, 1);
    assert_false(session_ended(f.session));
}

static void a_get_of_nothing_says_why(void **state)
{
    struct told t = {0};
    struct err e;
    (void)state;

    assert_non_null(session_ask_get(f.session, "a", done, &t, &e));
    say_done(hear(FILE_GET, "a", NULL), ENOENT, "cannot open the file: \xff");
    assert_int_equal(t.code, ENOENT);
    assert_int_equal(t.fd, -1);
    assert_string_equal(t.text, "cannot open the file: \xef\xbf\xbd");
}

static void an_upload_ends_when_it_is_whole(void **state)
{
    struct told t = {0};
    struct err e;
    char text[8] = "";
    int to = -1, from = -1;
    (void)state;

    struct file_request *r = session_ask_put(f.session, "a", &to, done, &t, &e);
    assert_non_null(r);
    assert_true(fcntl(to, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(to, F_GETFD) & FD_CLOEXEC);
    uint32_t req = hear(FILE_PUT, "a", &from);
    assert_int_equal(write(to, "hello", 5), 5);
    assert_int_equal(r->deadline_us, NEVER);
    session_put_all(r, 5);
    assert_true(r->deadline_us != NEVER);
    close(to);
    assert_int_equal(hear_end(req), 5);
    assert_int_equal(read(from, text, sizeof(text)), 5);
    close(from);
    say_done(req, 0, "");
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.code, 0);
}

/* "All is well" before it has everything is a lie. */
static void an_upload_that_is_praised_too_early_has_failed(void **state)
{
    struct told t = {0};
    struct err e;
    int to = -1, from = -1;
    (void)state;

    assert_non_null(session_ask_put(f.session, "a", &to, done, &t, &e));
    uint32_t req = hear(FILE_PUT, "a", &from);
    say_done(req, 0, "");
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.code, EPIPE);
    close(to);
    close(from);
    assert_true(hears_nothing());
}

static void lists_come_in_order(void **state)
{
    struct told t = {0};
    struct err e;
    (void)state;

    assert_non_null(session_ask_list(f.session, entry, done, &t, &e));
    uint32_t req = hear(FILE_LIST, NULL, NULL);
    say_entries(req, "a a.b a/b");
    say_entries(req, "");
    say_entries(req, "a0 b \xff");
    assert_int_equal(t.answers, 0);
    say_done(req, 0, "");
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.code, 0);
    assert_string_equal(t.listed, "a a.b a/b a0 b \xff ");
}

static void deletes_and_asks_for_space(void **state)
{
    struct told t = {0}, u = {0};
    struct buf b = {0};
    struct err e;
    (void)state;

    assert_non_null(session_ask_delete(f.session, "dir", done, &t, &e));
    assert_non_null(session_ask_space(f.session, done, &u, &e));
    uint32_t first = hear(FILE_DELETE, "dir", NULL);
    uint32_t second = hear(FILE_SPACE, NULL, NULL);
    msg_begin(&b, FILE_USED);
    fields_put_u32(&b, second);
    fields_put_u64(&b, 4096);
    fields_put_u64(&b, 3);
    say(&b, NULL);
    say_done(first, 0, "");
    assert_int_equal(t.answers + u.answers, 2);
    assert_int_equal(t.code + u.code, 0);
    assert_int_equal(u.a.used_bytes, 4096);
    assert_int_equal(u.a.used_files, 3);
}

static void bad_paths_are_not_asked_for(void **state)
{
    struct told t = {0};
    struct err e = {0};
    int to = -1;
    (void)state;

    assert_null(session_ask_get(f.session, "../a", done, &t, &e));
    assert_int_equal(e.code, EINVAL);
    assert_null(session_ask_put(f.session, "/a", &to, done, &t, &e));
    assert_null(session_ask_delete(f.session, "", done, &t, &e));
    assert_int_equal(to, -1);
    assert_true(hears_nothing());
}

/* ---- bounds ---- */

static void only_so_many_at_once(void **state)
{
    struct told t = {0};
    struct err e;
    (void)state;

    for (int i = 0; i < 64; i++)
        assert_non_null(session_ask_space(f.session, done, &t, &e));
    assert_null(session_ask_space(f.session, done, &t, &e));
    assert_int_equal(e.code, EBUSY);
    fake_init_answers(&f);
    assert_int_equal(t.answers, 64);
    assert_non_null(session_ask_space(f.session, done, &t, &e));
}

static void a_list_is_bounded(void **state)
{
    struct told t = {0};
    struct err e;
    char path[32];
    (void)state;

    assert_non_null(session_ask_list(f.session, entry, done, &t, &e));
    uint32_t req = hear(FILE_LIST, NULL, NULL);
    for (int i = 0; i < 20010; i++) {
        snprintf(path, sizeof(path), "%08d", i);
        say_entries(req, path);
    }
    assert_int_equal(t.entries, 20000);
    say_done(req, 0, "");
    assert_int_equal(t.code, E2BIG);
}

static void the_paths_of_a_list_are_bounded(void **state)
{
    struct told t = {0};
    struct err e;
    char path[4000];
    (void)state;

    memset(path, 'x', sizeof(path));
    for (size_t i = 200; i < sizeof(path); i += 200)
        path[i] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_non_null(session_ask_list(f.session, entry, done, &t, &e));
    uint32_t req = hear(FILE_LIST, NULL, NULL);
    for (int i = 0; i < 3000; i++) {
        char number[9];
        snprintf(number, sizeof(number), "%08d", i);
        memcpy(path, number, 8);
        say_entries(req, path);
    }
    assert_in_range(t.entries, 2000, 2200); /* 8 MiB of them */
    say_done(req, 0, "");
    assert_int_equal(t.code, E2BIG);
}

/* A box that does not answer is not waited for; what it says later is nobody's. */
static void an_answer_has_its_time(void **state)
{
    struct told t = {0}, u = {0}, v = {0};
    struct err e;
    bool never = false;
    int to = -1, from = -1;
    (void)state;

    struct file_request *r = session_ask_list(f.session, entry, done, &t, &e);
    assert_in_range(r->deadline_us - clock_now_us(), 29000000, 30000000);
    uint32_t req = hear(FILE_LIST, NULL, NULL);
    r->deadline_us = clock_now_us() + 20000;
    say_entries(req, "a"); /* progress */
    assert_in_range(r->deadline_us - clock_now_us(), 29000000, 30000000);
    r->deadline_us = clock_now_us() + 20000;
    vessel_arm(f.vessel, r->deadline_us);
    struct file_request *put = session_ask_put(f.session, "a", &to, done, &u, &e);
    uint32_t put_req = hear(FILE_PUT, "a", &from);
    struct file_request *later = session_ask_space(f.session, done, &v, &e);
    hear(FILE_SPACE, NULL, NULL);
    later->deadline_us = clock_now_us() + 40000; /* the timer is set anew when it went off */
    fake_wait(&f, &never, 150);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.code, ETIMEDOUT);
    assert_int_equal(v.code, ETIMEDOUT);
    assert_int_equal(u.answers, 0);
    session_put_all(put, 0);
    assert_int_equal(hear_end(put_req), 0);
    put->deadline_us = clock_now_us() + 20000;
    vessel_arm(f.vessel, put->deadline_us);
    fake_wait(&f, &never, 100);
    assert_int_equal(u.code, ETIMEDOUT);
    assert_int_equal(hear_end(put_req), UINT64_MAX); /* nothing is left behind */
    say_entries(req, "b");
    say_done(put_req, 0, "");
    assert_int_equal(t.answers + u.answers, 2);
    assert_false(session_ended(f.session));
    close(to);
    close(from);
}

/* ---- who does not want the answer ---- */

static void a_cancelled_request_is_not_answered(void **state)
{
    cleanup_fd int file = make_file();
    struct told t = {0};
    struct err e;
    int to = -1, from = -1;
    (void)state;

    session_file_cancel(session_ask_get(f.session, "a", done, &t, &e));
    say_opened(hear(FILE_GET, "a", NULL), file); /* teardown looks for its descriptor */
    struct file_request *r = session_ask_put(f.session, "a", &to, done, &t, &e);
    uint32_t req = hear(FILE_PUT, "a", &from);
    session_file_cancel(r);
    assert_int_equal(hear_end(req), UINT64_MAX);
    say_done(req, ECANCELED, "the upload was given up");
    assert_int_equal(t.answers, 0);
    assert_null(f.session->requests);
    assert_false(session_ended(f.session));
    close(to);
    close(from);
}

/* init is busy and its socket full: the end of an upload comes to it all the same. */
static void the_end_of_an_upload_is_never_lost(void **state)
{
    struct told t = {0};
    struct err e;
    int to[2] = {-1, -1}, from[2] = {-1, -1}, size = 4096;
    unsigned waiting = 0;
    (void)state;

    struct file_request *whole = session_ask_put(f.session, "a", &to[0], done, &t, &e);
    struct file_request *unwanted = session_ask_put(f.session, "b", &to[1], done, &t, &e);
    uint32_t first = hear(FILE_PUT, "a", &from[0]);
    uint32_t second = hear(FILE_PUT, "b", &from[1]);
    setsockopt(f.session->sources[FROM_FILES].fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    while (session_ask_space(f.session, done, &t, &e))
        waiting++;
    assert_int_equal(e.code, EBUSY);
    assert_in_range(waiting, 1, 61);
    session_put_all(whole, 0);
    session_file_cancel(unwanted);
    fake_turn(&f);
    for (unsigned i = 0; i < waiting; i++)
        hear(FILE_SPACE, NULL, NULL);
    fake_turn(&f);
    uint64_t sizes[2];
    for (int i = 0; i < 2; i++) {
        cleanup_msg struct msg m;
        struct fields fields;
        assert_int_equal(msg_recv(f.files, &m, &e), 1);
        assert_int_equal(m.type, FILE_PUT_END);
        fields_init(&fields, m.data, m.len);
        uint32_t req = fields_get_u32(&fields);
        assert_true(req == first || req == second);
        sizes[req == second] = fields_get_u64(&fields);
    }
    assert_int_equal(sizes[0], 0);
    assert_int_equal(sizes[1], UINT64_MAX);
    say_done(first, 0, "");
    assert_int_equal(t.answers, 1);
    for (int i = 0; i < 2; i++) {
        close(to[i]);
        close(from[i]);
    }
}

static void closing_answers_nothing(void **state)
{
    struct told t = {0};
    struct err e;
    int to = -1;
    (void)state;

    session_ask_get(f.session, "a", done, &t, &e);
    session_ask_list(f.session, entry, done, &t, &e);
    session_ask_put(f.session, "b", &to, done, &t, &e);
    session_close(f.session);
    f.session = NULL;
    fake_turn(&f);
    assert_int_equal(t.answers, 0);
    close(to);
}

static void an_owner_may_do_anything_at_the_answer(void **state)
{
    struct told t = {.manner = ASK_AGAIN}, u = {0}, v = {.manner = CLOSE}, w = {0};
    struct err e;
    (void)state;

    session_ask_space(f.session, done, &t, &e);
    fake_init_answers(&f);
    fake_init_answers(&f);
    assert_int_equal(t.answers, 2);
    t = (struct told){.manner = CANCEL_OTHER};
    session_ask_space(f.session, done, &t, &e);
    t.other = session_ask_get(f.session, "a", done, &u, &e);
    fake_init_answers(&f);
    assert_int_equal(t.answers, 1);
    assert_int_equal(u.answers, 0);
    session_ask_get(f.session, "a", done, &v, &e);
    session_ask_get(f.session, "b", done, &w, &e);
    say_done(hear(FILE_GET, "a", NULL), ENOENT, "no");
    assert_null(f.session);
    assert_int_equal(v.answers, 1);
    assert_int_equal(w.answers, 0);
}

static void a_list_may_be_cancelled_while_it_comes(void **state)
{
    struct told t = {.manner = CANCEL_SELF, .at_entry = 2};
    struct err e;
    (void)state;

    t.self = session_ask_list(f.session, entry, done, &t, &e);
    uint32_t req = hear(FILE_LIST, NULL, NULL);
    say_entries(req, "a b c");
    say_entries(req, "d");
    say_done(req, 0, "");
    assert_int_equal(t.entries, 2);
    assert_int_equal(t.answers, 0);
    assert_false(session_ended(f.session));
}

static void a_session_may_be_closed_while_a_list_comes(void **state)
{
    struct told t = {.manner = CLOSE, .at_entry = 2};
    struct err e;
    (void)state;

    session_ask_list(f.session, entry, done, &t, &e);
    say_entries(hear(FILE_LIST, NULL, NULL), "a b c");
    assert_int_equal(t.entries, 2);
    assert_int_equal(t.answers, 0);
    assert_null(f.session);
}

/* ---- an init that is none ---- */

static void a_dead_init_is_told_to_all(void **state)
{
    struct told t = {0}, u = {0};
    struct err e;
    int to = -1;
    (void)state;

    session_ask_get(f.session, "a", done, &t, &e);
    session_file_cancel(session_ask_put(f.session, "b", &to, done, &u, &e));
    session_ask_put(f.session, "b", &u.fd, done, &t, &e);
    close(u.fd);
    fd_close(&f.files);
    fake_turn(&f);
    assert_int_equal(t.answers, 2);
    assert_int_equal(t.code, EPIPE);
    assert_int_equal(u.answers, 0);
    assert_null(session_ask_get(f.session, "a", done, &t, &e));
    assert_int_equal(e.code, EPIPE);
    close(to);
}

static void after_a_close_no_more_is_told(void **state)
{
    struct told t = {.manner = CLOSE};
    struct err e;
    (void)state;

    session_ask_get(f.session, "a", done, &t, &e);
    session_ask_get(f.session, "b", done, &t, &e);
    fd_close(&f.files);
    fake_turn(&f);
    assert_int_equal(t.answers, 1);
    assert_null(f.session);
}

static void a_lost_keeper_is_told_to_all(void **state)
{
    struct told t = {0};
    struct err e;
    (void)state;

    session_ask_get(f.session, "a", done, &t, &e);
    fd_close(&f.keeper);
    fake_turn(&f);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.code, EPIPE);
}

/* What a sound init never says: whoever waits for it hears that it is lost. */
static void wrong_answers_are_not_believed(void **state)
{
    static const char *const lists[] = {"b a", "a a", "a ../b", "a/b a", "/", "a//b"};
    (void)state;

    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists) + 4; i++) {
        struct told t = {0};
        struct err e;
        if (i > 0)
            fake_open(&f);
        cleanup_fd int file = i % 2 ? make_file() : open("/proc/self/exe", O_PATH | O_CLOEXEC);
        if (i < sizeof(lists) / sizeof(*lists)) {
            session_ask_list(f.session, entry, done, &t, &e);
            say_entries(hear(FILE_LIST, NULL, NULL), lists[i]);
        } else if (i == sizeof(lists) / sizeof(*lists)) { /* O_PATH */
            session_ask_get(f.session, "a", done, &t, &e);
            say_opened(hear(FILE_GET, NULL, NULL), file);
        } else if (i == sizeof(lists) / sizeof(*lists) + 1) {
            session_ask_space(f.session, done, &t, &e);
            say_opened(hear(FILE_SPACE, NULL, NULL), file);
        } else if (i == sizeof(lists) / sizeof(*lists) + 2) {
            session_ask_get(f.session, "a", done, &t, &e);
            say_opened(hear(FILE_GET, NULL, NULL), -1);
        } else {
            session_ask_get(f.session, "a", done, &t, &e);
            say_entries(hear(FILE_GET, NULL, NULL), "a");
        }
        assert_int_equal(t.answers, 1);
        assert_int_equal(t.code, EPIPE);
        assert_int_equal(t.fd, -1);
        if (i < sizeof(lists) / sizeof(*lists) + 3)
            fake_stop(&f);
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_get_is_answered_later),
        test(a_get_of_nothing_says_why),
        test(an_upload_ends_when_it_is_whole),
        test(an_upload_that_is_praised_too_early_has_failed),
        test(lists_come_in_order),
        test(deletes_and_asks_for_space),
        test(bad_paths_are_not_asked_for),
        test(only_so_many_at_once),
        test(a_list_is_bounded),
        test(the_paths_of_a_list_are_bounded),
        test(an_answer_has_its_time),
        test(a_cancelled_request_is_not_answered),
        test(the_end_of_an_upload_is_never_lost),
        test(closing_answers_nothing),
        test(an_owner_may_do_anything_at_the_answer),
        test(a_list_may_be_cancelled_while_it_comes),
        test(a_session_may_be_closed_while_a_list_comes),
        test(a_dead_init_is_told_to_all),
        test(after_a_close_no_more_is_told),
        test(a_lost_keeper_is_told_to_all),
        test(wrong_answers_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
