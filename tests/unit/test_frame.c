/* Frames on a byte stream, in whatever pieces they come. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "wire/fields.h"
#include "wire/frame.h"

static int ends[2];
static struct frame_reader r;

static int setup(void **state)
{
    (void)state;
    r = (struct frame_reader){0};
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
}

static int teardown(void **state)
{
    (void)state;
    frame_reader_done(&r);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    return 0;
}

static void build(struct buf *b, uint32_t type, const char *text)
{
    cleanup_buf struct buf one = {0};

    frame_begin(&one, type);
    fields_put_text(&one, text);
    frame_seal(&one);
    buf_add(b, one.data, one.len);
}

static void byte_by_byte(void **state)
{
    cleanup_buf struct buf b = {0};
    struct frame f;
    unsigned seen = 0;
    (void)state;

    build(&b, 5, "hello");
    build(&b, 6, "");
    for (size_t i = 0; i < b.len; i++) {
        assert_int_equal(fd_write_all(ends[0], b.data + i, 1), 0);
        assert_int_equal(frame_fill(&r, ends[1]), 1);
        while (frame_next(&r, &f) == 1) {
            assert_int_equal(f.type, 5 + seen);
            assert_int_equal(f.len, seen == 0 ? 9 : 4);
            seen++;
        }
    }
    assert_int_equal(seen, 2);
    assert_int_equal(frame_fill(&r, ends[1]), -1);
    assert_int_equal(errno, EAGAIN);
    fd_close(&ends[0]);
    assert_int_equal(frame_fill(&r, ends[1]), 0);
}

static void many_at_once(void **state)
{
    cleanup_buf struct buf b = {0};
    struct frame f;
    (void)state;

    for (uint32_t i = 0; i < 1000; i++)
        build(&b, i, "x");
    assert_int_equal(fd_write_all(ends[0], b.data, b.len), 0);
    assert_int_equal(frame_fill(&r, ends[1]), 1);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(frame_next(&r, &f), 1);
        assert_int_equal(f.type, i);
    }
    assert_int_equal(frame_next(&r, &f), 0);
}

static void too_long_is_no_frame(void **state)
{
    uint32_t header[2] = {FRAME_MAX + 1, 1};
    struct frame f;
    (void)state;

    assert_int_equal(fd_write_all(ends[0], header, sizeof(header)), 0);
    assert_int_equal(frame_fill(&r, ends[1]), 1);
    assert_int_equal(frame_next(&r, &f), -1);
    assert_true(r.in.cap < (1 << 20)); /* and no memory was taken on its word */
}

/* The biggest frame comes in one piece, in reasonable time, and gives its memory back. */
static void the_longest_gives_its_memory_back(void **state)
{
    static char chunk[64 << 10];
    uint32_t header[2] = {FRAME_MAX, 1};
    struct frame f = {0};
    size_t left = FRAME_MAX;
    (void)state;

    int64_t start = clock_now_ms();
    assert_int_equal(fd_write_all(ends[0], header, sizeof(header)), 0);
    while (left > 0) {
        ssize_t n = write(ends[0], chunk, left < sizeof(chunk) ? left : sizeof(chunk));
        if (n > 0)
            left -= (size_t)n;
        if (frame_fill(&r, ends[1]) == 1)
            frame_next(&r, &f);
    }
    while (f.len != FRAME_MAX) {
        assert_int_equal(frame_fill(&r, ends[1]), 1);
        frame_next(&r, &f);
    }
    print_message("  %u MiB: %d ms\n", FRAME_MAX >> 20, (int)(clock_now_ms() - start));
    assert_int_equal(fd_write_all(ends[0], "x", 1), 0);
    assert_int_equal(frame_fill(&r, ends[1]), 1);
    assert_true(r.in.cap <= (256 << 10));
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(byte_by_byte),
        test(many_at_once),
        test(too_long_is_no_frame),
        test(the_longest_gives_its_memory_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
