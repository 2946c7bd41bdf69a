/* A session against a box that the test plays: everything a hostile one may send. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fixture.h"
#include "session/inside.h"
#include "wire/fields.h"

/* The session was killed for something that is no message. */
static void assert_violation(void)
{
    fake_turn(&f);
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGKILL));
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_true(
        fake_crashed(&f, "the interpreter sent something that is not a message of retort's"));
}

static void rejects_unknown_frames(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_print(f.out, "so far");
    fake_frame(&f, 999, NULL);
    assert_violation();
    assert_string_equal(f.cell->outputs[0].text, "so far");
}

static void rejects_frames_of_our_own(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_frame(&f, CELL_RUN, NULL);
    assert_violation();
}

static void rejects_frames_over_the_bound(void **state)
{
    uint32_t header[2] = {FRAME_MAX + 1, CELL_DISPLAY};
    (void)state;

    fake_run(&f, "…");
    assert_int_equal(fd_write_all(f.stream, header, sizeof(header)), 0);
    assert_violation();
}

static void rejects_the_end_of_another_cell(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    fake_run(&f, "…");
    fields_put_u32(&b, 2);
    fields_put_u8(&b, DONE_OK);
    fields_put_u32(&b, 0);
    fields_put_u32(&b, STATE_IS_NEW);
    fake_frame(&f, CELL_DONE, &b);
    assert_violation();
}

static void a_huge_error_is_told_by_head_and_tail(void **state)
{
    static char value[2 * ERROR_VALUE_MAX];
    (void)state;

    memset(value, 'x', sizeof(value) - 1);
    value[0] = 'a';
    value[sizeof(value) - 2] = 'z';
    /* More than a pipe holds: it is read while it is written. */
    int size = fcntl(f.stream, F_SETPIPE_SZ, 1 << 20);
    assert_true(size >= (int)sizeof(value));
    fake_run(&f, "raise E('x' * 10**9)");
    fake_error(&f, "E", value);
    fake_finish(&f, DONE_ERROR);
    size_t len = strlen(f.cell->error.value);
    assert_in_range(len, ERROR_VALUE_MAX, ERROR_VALUE_MAX + 100);
    assert_int_equal(f.cell->error.value[0], 'a');
    assert_int_equal(f.cell->error.value[len - 1], 'z');
    assert_non_null(strstr(f.cell->error.value, "bytes left out"));
}

static void a_callback_closes_between_text_and_error(void **state)
{
    (void)state;
    fake_run(&f, "print(1); 1/0");
    fake_error(&f, "ZeroDivisionError", "division by zero");
    fake_print(f.out, "text that came after the events were taken");
    f.close_in_text = true;
    vessel_enter(f.vessel);
    channel_ready(f.session, 1u << FROM_STREAM);
    vessel_leave(f.vessel);
    assert_null(f.session);
    assert_int_equal(f.errors, 0);
}

static void rejects_a_second_error(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_error(&f, "A", "a");
    fake_error(&f, "B", "b");
    assert_violation();
}

static void rejects_trailing_bytes(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    fake_run(&f, "…");
    fields_put_u32(&b, 1);
    fields_put_u8(&b, 0);
    fake_frame(&f, CELL_FENCE, &b);
    assert_violation();
}

static void rejects_an_unasked_check(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    fake_run(&f, "…");
    fields_put_u8(&b, 0);
    fields_put_text(&b, "");
    fake_frame(&f, CELL_CHECKED, &b);
    assert_violation();
}

/* A forged DONE, and then the real one. */
static void rejects_a_second_end(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_done(&f, DONE_OK);
    fake_done(&f, DONE_OK);
    fake_turn(&f);
    fake_init_answers(&f);
    assert_true(
        fake_crashed(&f, "the interpreter sent something that is not a message of retort's"));
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGKILL));
}

static void an_end_between_cells_ends_the_session(void **state)
{
    (void)state;
    fake_done(&f, DONE_OK);
    fake_turn(&f);
    assert_true(f.ended);
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGKILL));
}

/* Fences without end, whose answers nobody reads: bounded, then over. */
static void fences_without_end_are_bounded(void **state)
{
    struct err e;
    char many[1200];
    uint32_t fence[3] = {4, CELL_FENCE, 1};
    (void)state;

    fake_run(&f, "…");
    for (size_t i = 0; i < sizeof(many); i += sizeof(fence))
        memcpy(many + i, fence, sizeof(fence));
    fd_set_nonblock(f.stream);
    cleanup_msg struct msg m;
    for (int i = 0; i < 2000 && fake_keeper_next(&f, &m) != KEEPER_SIGNAL; i++) {
        ssize_t n = write(f.stream, many, sizeof(many));
        (void)n;
        assert_int_equal(vessel_dispatch(f.vessel, &e), 0);
    }
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_true(
        fake_crashed(&f, "the interpreter sent something that is not a message of retort's"));
}

static void strange_displays_are_cleaned(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    fake_run(&f, "…");
    fields_put_u8(&b, DISPLAY_RESULT);
    fields_put_text(&b, "[not an object]");
    fields_put_u32(&b, 5);
    fields_put_text(&b, "text/html");
    fields_put_bytes(&b, "a\xff\0b", 4);
    fields_put_text(&b, "bad type\n");
    fields_put_text(&b, "x");
    fields_put_text(&b, "");
    fields_put_text(&b, "x");
    fields_put_text(&b, "image/png");
    fields_put_bytes(&b, "\x89PNG\0\xff", 6);
    fields_put_text(&b, "text/html");
    fields_put_text(&b, "twice");
    fake_frame(&f, CELL_DISPLAY, &b);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->n_outputs, 1);
    const struct output *o = &f.cell->outputs[0];
    assert_int_equal(o->kind, OUTPUT_RESULT);
    assert_int_equal(o->n_parts, 2);
    assert_null(o->metadata);
    assert_true(o->parts[0].text);
    assert_int_equal(o->parts[0].len, 6);
    assert_memory_equal(o->parts[0].data, "a\xef\xbf\xbd\0b", 6);
    assert_false(o->parts[1].text);
    assert_memory_equal(o->parts[1].data, "\x89PNG\0\xff", 6);
}

static void an_empty_display_is_nothing(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    fake_run(&f, "…");
    fields_put_u8(&b, DISPLAY_SHOWN);
    fields_put_text(&b, "");
    fields_put_u32(&b, 0);
    fake_frame(&f, CELL_DISPLAY, &b);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->n_outputs, 0);
}

/* Half a frame, and then death. */
static void half_a_frame_is_no_excuse(void **state)
{
    (void)state;
    fake_run(&f, "…");
    assert_int_equal(fd_write_all(f.stream, "\x10\0\0", 3), 0);
    fake_turn(&f);
    fd_close(&f.stream);
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_true(fake_crashed(&f, "the interpreter was killed by signal 9 (Killed)"));
}

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(rejects_unknown_frames),
        test(rejects_frames_of_our_own),
        test(rejects_frames_over_the_bound),
        test(rejects_the_end_of_another_cell),
        test(a_huge_error_is_told_by_head_and_tail),
        test(a_callback_closes_between_text_and_error),
        test(rejects_a_second_error),
        test(rejects_trailing_bytes),
        test(rejects_an_unasked_check),
        test(rejects_a_second_end),
        test(an_end_between_cells_ends_the_session),
        test(fences_without_end_are_bounded),
        test(strange_displays_are_cleaned),
        test(an_empty_display_is_nothing),
        test(half_a_frame_is_no_excuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
