/* Messages with descriptors: none is lost, none stays behind. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "wire/fields.h"
#include "wire/msg.h"

static int ends[2];

static int setup(void **state)
{
    struct err e;
    (void)state;

    return msg_pair(ends, &e);
}

static int teardown(void **state)
{
    (void)state;
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    return 0;
}

/* The lowest free descriptor: rises when one is left behind. */
static int lowest(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

static void send_raw(const void *data, size_t len, const int *fds, unsigned n_fds)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)] = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

    if (n_fds > 0) {
        h.msg_control = control;
        h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
    }
    assert_int_equal(sendmsg(ends[0], &h, 0), len);
}

static void carries_fields_and_descriptors(void **state)
{
    cleanup_buf struct buf b = {0};
    cleanup_msg struct msg m;
    struct fields f;
    struct err e;
    int pipes[2];
    char byte;
    (void)state;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    msg_begin(&b, 7);
    fields_put_u32(&b, 42);
    assert_int_equal(msg_send(ends[0], &b, pipes, 2, &e), 0);
    assert_int_equal(msg_recv(ends[1], &m, &e), 1);
    assert_int_equal(m.type, 7);
    assert_int_equal(m.n_fds, 2);
    fields_init(&f, m.data, m.len);
    assert_int_equal(fields_get_u32(&f), 42);
    assert_true(fields_end(&f));
    assert_true(fcntl(m.fds[0], F_GETFD) & FD_CLOEXEC);
    cleanup_fd int taken = msg_take_fd(&m, 1);
    assert_int_equal(write(taken, "x", 1), 1);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    assert_int_equal(msg_take_fd(&m, 1), -1);
    assert_int_equal(msg_take_fd(&m, 2), -1);
    close(pipes[0]);
    close(pipes[1]);
}

static void what_is_not_taken_is_closed(void **state)
{
    cleanup_buf struct buf b = {0};
    struct err e;
    int fds[MSG_FDS];
    (void)state;

    for (unsigned i = 0; i < MSG_FDS; i++)
        fds[i] = ends[0];
    msg_begin(&b, 7);
    int before = lowest();
    for (int i = 0; i < 10; i++) {
        cleanup_msg struct msg m;
        assert_int_equal(msg_send(ends[0], &b, fds, MSG_FDS, &e), 0);
        assert_int_equal(msg_recv(ends[1], &m, &e), 1);
        assert_int_equal(m.n_fds, MSG_FDS);
    }
    assert_int_equal(lowest(), before);
}

/* An empty message looks like the end; the descriptors it brings must not stay with us. */
static void an_empty_message_leaves_no_descriptor(void **state)
{
    struct err e;
    (void)state;

    int before = lowest();
    for (int i = 0; i < 10; i++) {
        cleanup_msg struct msg m;
        send_raw("", 0, &ends[0], 1);
        assert_int_equal(msg_recv(ends[1], &m, &e), 0);
    }
    assert_int_equal(lowest(), before);
}

static void more_descriptors_than_agreed_are_refused(void **state)
{
    struct err e;
    int fds[100];
    (void)state;

    for (unsigned i = 0; i < 100; i++)
        fds[i] = ends[0];
    int before = lowest();
    cleanup_msg struct msg m;
    send_raw("\7\0\0\0", 4, fds, 100);
    assert_int_equal(msg_recv(ends[1], &m, &e), -1);
    assert_int_equal(e.code, EBADMSG);
    assert_int_equal(lowest(), before);
}

static void what_was_cut_off_is_refused(void **state)
{
    cleanup_msg struct msg m;
    char *big = calloc(1, MSG_SIZE + 1);
    struct err e;
    (void)state;

    int before = lowest();
    send_raw(big, MSG_SIZE + 1, &ends[0], 1);
    assert_int_equal(msg_recv(ends[1], &m, &e), -1);
    assert_int_equal(e.code, EBADMSG);
    send_raw("\7\0\0", 3, &ends[0], 1);
    assert_int_equal(msg_recv(ends[1], &m, &e), -1);
    assert_int_equal(e.code, EBADMSG);
    assert_int_equal(lowest(), before);
    send_raw(big, MSG_SIZE, NULL, 0);
    assert_int_equal(msg_recv(ends[1], &m, &e), 1);
    assert_int_equal(m.len, MSG_SIZE - 4);
    free(big);
}

static void the_end_and_nothing_are_told_apart(void **state)
{
    cleanup_msg struct msg m;
    cleanup_buf struct buf b = {0};
    struct err e;
    (void)state;

    fd_set_nonblock(ends[1]);
    assert_int_equal(msg_recv(ends[1], &m, &e), -1);
    assert_int_equal(e.code, EAGAIN);
    fd_close(&ends[0]);
    assert_int_equal(msg_recv(ends[1], &m, &e), 0);
    msg_begin(&b, 1);
    assert_int_equal(msg_send(ends[1], &b, NULL, 0, &e), -1); /* and no SIGPIPE */
    assert_int_equal(e.code, EPIPE);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(carries_fields_and_descriptors),        test(what_is_not_taken_is_closed),
        test(an_empty_message_leaves_no_descriptor), test(more_descriptors_than_agreed_are_refused),
        test(what_was_cut_off_is_refused),           test(the_end_and_nothing_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
