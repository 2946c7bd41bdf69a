/* A session against a box that the test plays: order, and the ends of cells. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fixture.h"
#include "session/inside.h"
#include "wire/fields.h"

#define EXITED(status) ((status) << 8)

static void assert_told(const char *text)
{
    assert_int_equal(f.text_len, strlen(text));
    assert_memory_equal(f.text, text, f.text_len);
}

/* ---- sound boxes ---- */

static void a_cell_runs(void **state)
{
    (void)state;
    assert_true(session_from_pool(f.session));
    fake_run(&f, "print('hi')");
    assert_true(session_busy(f.session));
    fake_print(f.out, "hi\n");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_int_equal(f.cell->n, 1);
    assert_string_equal(f.cell->code, "print('hi')");
    assert_int_equal(f.cell->n_outputs, 1);
    assert_string_equal(f.cell->outputs[0].text, "hi\n");
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_NONE);
    assert_false(f.cell->session_ended);
    assert_null(f.cell->error.name);
    assert_false(session_busy(f.session));
    fake_run(&f, "2");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->n, 2);
    assert_int_equal(f.cell->n_outputs, 0);
}

static void the_code_arrives_as_it_is(void **state)
{
    struct frame frame;
    struct fields fields;
    struct err e;
    size_t len;
    (void)state;

    assert_int_equal(session_run(f.session, "a\0b", 3, 0, &e), 0);
    assert_true(fake_heard(&f, &frame));
    assert_int_equal(frame.type, CELL_RUN);
    fields_init(&fields, frame.data, frame.len);
    assert_int_equal(fields_get_u32(&fields), 1);
    assert_memory_equal(fields_get_bytes(&fields, &len), "a\0b", 3);
    assert_int_equal(len, 3);
    assert_int_equal(fields_get_u8(&fields), 0);  /* what is before it need not be kept */
    assert_int_equal(fields_get_u32(&fields), 0); /* pictures are shown as they are */
    assert_true(fields_end(&fields));
}

static void how_large_pictures_may_be_goes_with_the_cell(void **state)
{
    struct frame frame;
    struct fields fields;
    struct err e;
    size_t len;
    (void)state;

    session_pictures(f.session, 640);
    assert_int_equal(session_run(f.session, "1", 1, 0, &e), 0);
    assert_true(fake_heard(&f, &frame));
    fields_init(&fields, frame.data, frame.len);
    fields_get_u32(&fields);
    fields_get_bytes(&fields, &len);
    fields_get_u8(&fields);
    assert_int_equal(fields_get_u32(&fields), 640);
    assert_true(fields_end(&fields));
}

/* A cell larger than the socket takes at once goes in pieces. */
static void a_long_cell_arrives_whole(void **state)
{
    size_t len = 3u << 20;
    char *code = malloc(len);
    struct frame frame = {0};
    struct err e;
    (void)state;

    memset(code, 'x', len);
    assert_int_equal(session_run(f.session, code, len, 0, &e), 0);
    for (int i = 0; i < 10000 && !fake_heard(&f, &frame); i++)
        fake_turn(&f);
    assert_int_equal(frame.type, CELL_RUN);
    assert_int_equal(frame.len, len + 13);
    assert_memory_equal(frame.data + 8, code, len);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
    free(code);
}

static void a_cell_that_is_too_long_is_refused(void **state)
{
    struct err e;
    (void)state;

    assert_int_equal(session_run(f.session, "", FRAME_MAX, 0, &e), -1);
    assert_non_null(strstr(e.text, "too long"));
    assert_false(session_busy(f.session));
}

static void one_cell_at_a_time(void **state)
{
    struct err e;
    (void)state;

    fake_run(&f, "1");
    assert_int_equal(session_run(f.session, "2", 1, 0, &e), -1);
    assert_string_equal(e.text, "the session runs a cell: Device or resource busy");
}

/* Text before a fence comes before text behind it, though two pipes carry it. */
static void fences_keep_the_order(void **state)
{
    struct frame frame;
    (void)state;

    fake_run(&f, "…");
    fake_print(f.out, "a");
    fake_fence(&f, 41);
    fake_turn(&f);
    assert_true(fake_heard(&f, &frame));
    assert_int_equal(frame.type, CELL_PASS);
    uint32_t fence;
    memcpy(&fence, frame.data, 4);
    assert_int_equal(fence, 41);
    fake_print(f.err, "B");
    fake_fence(&f, 42);
    fake_turn(&f);
    fake_print(f.out, "c");
    fake_display(&f, "text/plain", "shown");
    fake_print(f.out, "d");
    fake_finish(&f, DONE_OK);
    assert_told("1a2B1cd");
    /* the display and what was printed after it were in the same turn: the display drained both */
    assert_int_equal(f.cell->n_outputs, 4);
    assert_int_equal(f.cell->outputs[3].kind, OUTPUT_DISPLAY);
}

static void text_comes_before_the_frame_behind_it(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_print(f.out, "before");
    fake_display(&f, "text/plain", "x");
    fake_turn(&f);
    fake_print(f.out, "after");
    fake_print(f.err, "trouble");
    fake_error(&f, "KeyError", "'x'");
    fake_finish(&f, DONE_ERROR);
    assert_int_equal(f.cell->n_outputs, 4);
    assert_string_equal(f.cell->outputs[0].text, "before");
    assert_int_equal(f.cell->outputs[1].kind, OUTPUT_DISPLAY);
    assert_string_equal(f.cell->outputs[1].metadata, "{\"a\":[1]}");
    assert_string_equal(f.cell->outputs[2].text, "after");
    assert_string_equal(f.cell->outputs[3].text, "trouble");
    assert_int_equal(f.cell->status, CELL_FAILED);
    assert_string_equal(f.cell->error.name, "KeyError");
    assert_int_equal(f.errors, 1);
    assert_int_equal(f.displays, 1);
}

/* What background threads write between cells is not lost: it opens the next cell. */
static void what_comes_between_cells_opens_the_next(void **state)
{
    struct frame frame;
    (void)state;

    fake_run(&f, "1");
    fake_finish(&f, DONE_OK);
    fake_print(f.out, "late");
    fake_fence(&f, 1);
    fake_turn(&f);
    assert_true(fake_heard(&f, &frame));
    assert_int_equal(frame.type, CELL_PASS);
    fake_display(&f, "text/plain", "late");
    fake_turn(&f);
    assert_int_equal(f.texts, 0);
    assert_int_equal(f.displays, 0);
    fake_run(&f, "2");
    assert_int_equal(f.texts, 1);
    assert_int_equal(f.displays, 1);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->n_outputs, 2);
    assert_string_equal(f.cell->outputs[0].text, "late");
}

/* A box that floods while nobody asked it anything is not read any more, until the next cell. */
static void a_flood_between_cells_is_held_back(void **state)
{
    static char chunk[64 << 10];
    size_t written = 0;
    (void)state;

    memset(chunk, 'y', sizeof(chunk));
    fd_set_nonblock(f.out);
    for (int i = 0; i < 1000; i++) {
        ssize_t n = write(f.out, chunk, sizeof(chunk));
        written += n > 0 ? (size_t)n : 0;
        fake_turn(&f);
    }
    assert_true(written > (2u << 20));
    assert_true(written < (3u << 20));
    fake_run(&f, "1");
    fake_turn(&f);
    assert_true(write(f.out, chunk, sizeof(chunk)) > 0);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_OUTPUT);
    assert_true(f.cell->truncated.stdout_bytes >= (1u << 20));
}

static void sys_exit_leaves_with_its_status(void **state)
{
    (void)state;
    fake_run(&f, "sys.exit(3)");
    fake_finish(&f, DONE_EXIT);
    assert_true(f.cell->left);
    assert_int_equal(f.cell->exit_code, 3);
    assert_int_equal(f.cell->status, CELL_FAILED);
    assert_string_equal(f.cell->error.name, "SystemExit");
    assert_false(f.cell->session_ended);
}

/* ---- ends that are not the end of the code ---- */

static void a_segfault_is_named_and_keeps_the_output(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_print(f.out, "so far");
    fake_display(&f, "text/plain", "x");
    fd_close(&f.stream);
    fake_died(&f, SIGSEGV, false);
    fake_init_answers(&f);
    assert_true(fake_crashed(&f, "the interpreter was killed by signal 11 (Segmentation fault)"));
    assert_int_equal(f.cell->n_outputs, 2);
    assert_string_equal(f.cell->outputs[0].text, "so far");
    assert_int_equal(f.cell->exit_code, 128 + SIGSEGV);
}

static void os_exit_is_named(void **state)
{
    struct err e;
    (void)state;

    fake_run(&f, "…");
    fake_died(&f, EXITED(3), false);
    fake_init_answers(&f);
    assert_true(fake_crashed(&f, "the interpreter left with status 3 (os._exit)"));
    assert_int_equal(f.cell->exit_code, 3);
    assert_int_equal(session_run(f.session, "1", 1, 0, &e), -1);
    assert_string_equal(e.text, "the session has ended");
}

/* The cell was done; the interpreter died right after it: that is no crash of this cell. */
static void death_after_done_is_not_the_cells(void **state)
{
    (void)state;
    fake_run(&f, "1");
    fake_done(&f, DONE_OK);
    fake_died(&f, EXITED(0), false);
    fake_init_answers(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_true(f.cell->session_ended);
}

static void death_between_cells_ends_the_session(void **state)
{
    (void)state;
    fake_died(&f, EXITED(0), false);
    fake_init_answers(&f); /* that none waits */
    assert_true(f.ended);
    assert_true(session_ended(f.session));
    assert_false(f.done);
}

static void death_without_init_is_enough(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fd_close(&f.files);
    fake_turn(&f);
    fake_died(&f, SIGABRT, false);
    assert_true(fake_crashed(&f, "the interpreter was killed by signal 6 (Aborted)"));
}

/* User code closed every descriptor, and goes on. */
static void a_closed_channel_is_told_from_death(void **state)
{
    (void)state;
    fake_run(&f, "os.closerange(0, 256)");
    fd_close(&f.stream);
    fake_turn(&f);
    assert_false(f.done);
    assert_false(fake_wait(&f, &f.done, 200));
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGKILL));
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_true(fake_crashed(&f, "the interpreter closed its channel to retort"));
}

static void closed_pipes_do_not_spin(void **state)
{
    (void)state;
    fake_run(&f, "os.close(1); os.close(2)");
    fd_close(&f.out);
    fd_close(&f.err);
    fake_turn(&f);
    struct err e;
    assert_int_equal(vessel_wait(f.vessel, &f.done, 50, &e), 0);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
}

/* A keeper whose word does not come must not hang its owner: the cell ends some time. */
static void a_keeper_that_does_not_tell_is_not_waited_for(void **state)
{
    (void)state;
    fake_run(&f, "…");
    fake_frame(&f, 999, NULL);
    fake_turn(&f);
    assert_false(fake_wait(&f, &f.done, 50));
    fake_time_is_up(&f);
    assert_false(f.done); /* init has still to tell what became of the files */
    fake_init_answers(&f);
    assert_true(
        fake_crashed(&f, "the interpreter sent something that is not a message of retort's"));
}

static void an_init_that_is_mute_breaks_the_session(void **state)
{
    (void)state;
    fake_stop(&f);
    struct limits l;
    limits_default(&l);
    l.disk = 1 << 20;
    fake_start(&f, &l);
    fake_create(&f, METER_V1);
    fake_run(&f, "1");
    fake_done(&f, DONE_OK);
    assert_false(fake_wait(&f, &f.done, 50));
    fake_time_is_up(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_true(f.cell->session_ended);
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGKILL));
}

static void the_keeper_goes(void **state)
{
    struct err e;
    (void)state;

    fake_run(&f, "…");
    fake_print(f.out, "so far");
    fd_close(&f.keeper);
    assert_int_equal(vessel_dispatch(f.vessel, &e), -1);
    assert_string_equal(e.text, "retort's keeper is gone");
    assert_true(fake_crashed(&f, "retort's keeper is gone"));
    assert_string_equal(f.cell->outputs[0].text, "so far");
    assert_int_equal(vessel_dispatch(f.vessel, &e), -1);
    assert_int_equal(session_run(f.session, "1", 1, 0, &e), -1);
}

/* The cell's end was in the channel when the keeper went, and init is gone as well. */
static void the_keeper_goes_as_the_cell_ends(void **state)
{
    (void)state;

    fake_run(&f, "1");
    fd_close(&f.files);
    fake_done(&f, DONE_OK);
    vessel_enter(f.vessel);
    link_lost(f.vessel, ""); /* before the frame was read */
    vessel_leave(f.vessel);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_true(f.cell->session_ended);
}

static void the_keeper_says_why_it_goes(void **state)
{
    cleanup_buf struct buf b = {0};
    struct err e;
    (void)state;

    msg_begin(&b, KEEPER_GONE);
    fields_put_text(&b, "no zygote can be started");
    assert_int_equal(msg_send(f.keeper, &b, NULL, 0, &e), 0);
    assert_int_equal(vessel_dispatch(f.vessel, &e), -1);
    assert_string_equal(e.text, "retort's keeper is gone: no zygote can be started");
    assert_true(f.ended);
}

/* ---- opening and closing ---- */

static void a_box_that_fails_is_told(void **state)
{
    cleanup_buf struct buf b = {0};
    cleanup_msg struct msg m;
    struct err e;
    (void)state;

    fake_stop(&f);
    fake_start(&f, NULL);
    assert_int_equal(fake_keeper_next(&f, &m), KEEPER_CREATE);
    msg_begin(&b, KEEPER_FAILED);
    buf_add(&b, m.data, 4);
    fields_put_text(&b, "mount /proc: no");
    assert_int_equal(msg_send(f.keeper, &b, NULL, 0, &e), 0);
    fake_turn(&f);
    assert_true(f.failed);
    assert_string_equal(f.open_error, "mount /proc: no");
    assert_true(session_ended(f.session));
}

/* Closed while it was being made: the box that comes is not wanted. */
static void a_box_nobody_waits_for_is_destroyed(void **state)
{
    cleanup_msg struct msg m;
    (void)state;

    fake_stop(&f);
    fake_start(&f, NULL);
    session_close(f.session);
    f.session = NULL;
    fake_create(&f, METER_V1);
    assert_false(f.opened);
    assert_int_equal(fake_keeper_next(&f, &m), KEEPER_GIVE_UP);
    msg_done(&m);
    assert_int_equal(fake_keeper_next(&f, &m), KEEPER_DESTROY);
}

static void closing_destroys_the_box(void **state)
{
    (void)state;
    fake_run(&f, "…");
    session_close(f.session);
    f.session = NULL;
    assert_true(fake_keeper_hears(&f, KEEPER_DESTROY, 0));
    fake_died(&f, SIGKILL, false); /* about nobody any more */
    assert_false(f.done);
}

static void an_owner_may_close_in_text(void **state)
{
    (void)state;
    f.close_in_text = true;
    fake_run(&f, "…");
    fake_print(f.out, "a");
    fake_print(f.err, "b");
    fake_display(&f, "text/plain", "x");
    fake_done(&f, DONE_OK);
    fake_turn(&f);
    assert_int_equal(f.texts, 1);
    assert_false(f.done);
}

static void an_owner_may_close_in_done(void **state)
{
    (void)state;
    f.close_in_done = true;
    fake_run(&f, "1");
    fake_finish(&f, DONE_OK);
    assert_null(f.session);
}

static void an_owner_may_close_while_the_tail_is_told(void **state)
{
    static char text[800 << 10];
    (void)state;

    fake_run(&f, "…");
    memset(text, 'x', sizeof(text) - 1);
    for (size_t at = 0; at < sizeof(text) - 1; at += 32 << 10) {
        size_t n = sizeof(text) - 1 - at;
        assert_int_equal(fd_write_all(f.out, text + at, n < (32 << 10) ? n : 32 << 10), 0);
        fake_turn(&f);
    }
    f.close_in_text = true;
    fake_done(&f, DONE_OK);
    fake_turn(&f);
    fake_init_answers(&f);
    assert_false(f.done);
    assert_null(f.session);
}

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_cell_runs),
        test(the_code_arrives_as_it_is),
        test(how_large_pictures_may_be_goes_with_the_cell),
        test(a_long_cell_arrives_whole),
        test(a_cell_that_is_too_long_is_refused),
        test(one_cell_at_a_time),
        test(fences_keep_the_order),
        test(text_comes_before_the_frame_behind_it),
        test(what_comes_between_cells_opens_the_next),
        test(a_flood_between_cells_is_held_back),
        test(sys_exit_leaves_with_its_status),
        test(a_segfault_is_named_and_keeps_the_output),
        test(os_exit_is_named),
        test(death_after_done_is_not_the_cells),
        test(death_between_cells_ends_the_session),
        test(death_without_init_is_enough),
        test(a_closed_channel_is_told_from_death),
        test(closed_pipes_do_not_spin),
        test(a_keeper_that_does_not_tell_is_not_waited_for),
        test(an_init_that_is_mute_breaks_the_session),
        test(the_keeper_goes),
        test(the_keeper_goes_as_the_cell_ends),
        test(the_keeper_says_why_it_goes),
        test(a_box_that_fails_is_told),
        test(a_box_nobody_waits_for_is_destroyed),
        test(closing_destroys_the_box),
        test(an_owner_may_close_in_text),
        test(an_owner_may_close_in_done),
        test(an_owner_may_close_while_the_tail_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
