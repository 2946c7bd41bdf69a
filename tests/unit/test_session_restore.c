/* Another interpreter takes a dead one's place: what init may answer, and what it may not. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fixture.h"
#include "session/inside.h"
#include "wire/fields.h"

#define SEGFAULT "the interpreter was killed by signal 11 (Segmentation fault)"

static int ends[4]; /* the owner's, of a successor's channel */

static int setup(void **state)
{
    fixture_setup(state);
    f.restores = true;
    for (int i = 0; i < 4; i++)
        ends[i] = -1;
    return 0;
}

static int teardown(void **state)
{
    for (int i = 0; i < 4; i++)
        fd_close(&ends[i]);
    return fixture_teardown(state);
}

/* A cell crashes, and init is asked for another interpreter. */
static void crash(void)
{
    fake_run(&f, "x = 1; crash()");
    fake_print(f.out, "so far");
    fake_died(&f, SIGSEGV, false);
    fake_init_answers(&f);
    assert_false(f.done);
    assert_int_not_equal(f.restore_req, 0);
}

/* The owner has given this init up, and the session with it. */
static void assert_given_up(void)
{
    if (!f.done) {
        fd_close(&f.files);
        fake_turn(&f);
    }
    assert_true(fake_crashed(&f, SEGFAULT));
    assert_false(f.cell->restored);
    assert_string_equal(f.cell->outputs[0].text, "so far");
}

static void assert_goes_on(uint32_t n)
{
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_CRASHED);
    assert_string_equal(f.cell->error.value, SEGFAULT);
    assert_string_equal(f.cell->outputs[0].text, "so far");
    assert_true(f.cell->restored);
    assert_int_equal(f.cell->restored_to, n);
    assert_false(f.cell->session_ended);
    assert_false(session_ended(f.session));
    fake_run(&f, "x");
    fake_print(f.out, "after it");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_string_equal(f.cell->outputs[0].text, "after it");
    assert_false(f.cell->restored);
}

static void a_crash_is_told_and_the_session_goes_on(void **state)
{
    (void)state;
    crash();
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 4, ends, 4);
    assert_goes_on(4);
}

static void files_that_are_missing_are_told(void **state)
{
    (void)state;
    f.missing = "a\nd/b";
    crash();
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 4, ends, 4);
    fake_run(&f, "x");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->outputs[0].kind, OUTPUT_STDERR);
    assert_string_equal(f.cell->outputs[0].text,
                        "retort: changed since, and not brought back: a, d/b\n");
}

static void the_next_death_is_survived_too(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        crash();
        fake_successor(&f, ends);
        fake_restored(&f, f.restore_req, i, ends, 4);
        for (int k = 0; k < 4; k++)
            fd_close(&ends[k]);
        assert_goes_on(i);
    }
}

static void none_waits(void **state)
{
    (void)state;
    f.restores = false;
    fake_run(&f, "crash()");
    fake_print(f.out, "so far");
    fake_died(&f, SIGSEGV, false);
    fake_init_answers(&f);
    assert_given_up();
}

static void one_that_is_killed_for_its_time_is_restored(void **state)
{
    (void)state;
    fake_run(&f, "while True: pass");
    session_interrupt(f.session);
    fake_turn(&f);
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 2, ends, 4);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_INTERRUPTED);
    assert_true(f.cell->restored);
}

/* A signal that is still under way to the dead one would strike the next. */
static void none_is_asked_for_before_the_signals_have_arrived(void **state)
{
    cleanup_buf struct buf b = {0};
    struct msg m;
    struct err e;
    (void)state;

    fake_run(&f, "…");
    session_interrupt(f.session);
    fake_turn(&f);
    msg_begin(&b, KEEPER_DIED);
    fields_put_u32(&b, f.box);
    fields_put_u32(&b, SIGSEGV);
    fields_put_u8(&b, 0);
    assert_int_equal(msg_send(f.keeper, &b, NULL, 0, &e), 0);
    fake_turn(&f);
    fake_init_answers(&f);
    assert_int_equal(f.restore_req, 0);
    fake_keeper_answers(&f);
    fake_init_answers(&f);
    assert_int_not_equal(f.restore_req, 0);
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 1, ends, 4);
    assert_true(f.done && f.cell->restored);
    assert_int_equal(fake_keeper_next(&f, &m), 0);
}

static void text_of_the_dead_is_not_taken_for_the_next_ones(void **state)
{
    (void)state;
    crash();
    int dead = dup(f.out);
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 4, ends, 4);
    assert_int_equal(fd_write_quietly(dead, "late", 4), -1);
    close(dead);
    assert_goes_on(4);
}

/* Its channel is closed before its death is told. */
static void one_that_dies_when_its_cell_is_done(void **state)
{
    (void)state;
    fake_run(&f, "x = 1");
    fake_done(&f, DONE_OK);
    fake_turn(&f);
    fd_close(&f.stream);
    fake_turn(&f);
    fake_init_answers(&f);
    assert_false(f.done);
    fake_died(&f, SIGALRM, false);
    fake_init_answers(&f);
    assert_int_not_equal(f.restore_req, 0);
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 4, ends, 4);
    assert_true(f.done && f.cell->restored && !f.cell->session_ended);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_int_equal(f.cell->restored_to, 4);
}

/* ---- what may not be ---- */

static void too_few_descriptors(void **state)
{
    (void)state;
    crash();
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 4, ends, 3);
    assert_given_up();
}

static void too_many_descriptors(void **state)
{
    (void)state;
    crash();
    fake_successor(&f, ends);
    const int five[] = {ends[0], ends[1], ends[2], ends[3], ends[0]};
    fake_restored(&f, f.restore_req, 4, five, 5);
    assert_given_up();
}

static void a_pipe_in_the_wrong_direction(void **state)
{
    (void)state;
    for (unsigned wrong = 0; wrong < 4; wrong++) {
        if (wrong) {
            teardown(state);
            setup(state);
        }
        crash();
        fake_successor(&f, ends);
        int fds[] = {ends[0], ends[1], ends[2], ends[3]};
        fds[wrong] = wrong == 1 ? ends[0] : ends[1];
        fake_restored(&f, f.restore_req, 4, fds, 4);
        assert_given_up();
    }
}

static void no_pipe(void **state)
{
    int pair[2];
    const int others[] = {open("/dev/zero", O_RDONLY | O_CLOEXEC), open("/", O_PATH | O_CLOEXEC),
                          open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                          socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 ? pair[0] : -1};

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_true(others[i] >= 0);
        if (i) {
            teardown(state);
            setup(state);
        }
        crash();
        fake_successor(&f, ends);
        const int fds[] = {ends[0], ends[1], others[i], ends[3]};
        fake_restored(&f, f.restore_req, 4, fds, 4);
        assert_given_up();
        close(others[i]);
    }
    close(pair[1]);
}

static void a_pipe_that_is_only_a_path(void **state)
{
    char path[64];
    (void)state;

    crash();
    fake_successor(&f, ends);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[2]);
    int only = open(path, O_PATH | O_CLOEXEC);
    assert_true(only >= 0);
    const int fds[] = {ends[0], ends[1], only, ends[3]};
    fake_restored(&f, f.restore_req, 4, fds, 4);
    close(only);
    assert_given_up();
}

/* With no death, and in the middle of a cell: it changes nothing. */
static void unasked(void **state)
{
    (void)state;

    fake_run(&f, "…");
    int copy[] = {dup(f.stream), dup(f.orders), dup(f.out), dup(f.err)};
    fake_successor(&f, ends);
    fake_restored(&f, 76, 4, ends, 4);
    fake_restored(&f, 77, 4, ends, 4);
    assert_false(f.done);
    fd_close(&f.stream);
    fd_close(&f.orders);
    fd_close(&f.out);
    fd_close(&f.err);
    f.stream = copy[0];
    f.orders = copy[1];
    f.out = copy[2];
    f.err = copy[3];
    fake_print(f.out, "the one that always was");
    fake_finish(&f, DONE_OK);
    assert_string_equal(f.cell->outputs[0].text, "the one that always was");
    assert_false(f.cell->restored);
}

static void twice(void **state)
{
    int pipes[8];
    (void)state;

    crash();
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 4, ends, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pipe2(pipes + 2 * i, O_CLOEXEC), 0);
    const int others[] = {pipes[0], pipes[3], pipes[4], pipes[6]};
    fake_restored(&f, f.restore_req, 5, others, 4);
    for (int i = 0; i < 8; i++)
        close(pipes[i]);
    assert_goes_on(4);
}

static void init_leaves(void **state)
{
    (void)state;
    crash();
    fd_close(&f.files);
    fake_turn(&f);
    assert_given_up();
}

static void init_is_mute(void **state)
{
    (void)state;

    crash();
    fake_time_is_up(&f); /* that init has for its answers */
    assert_given_up();
}

/* ---- the next one ---- */

/* It crashes, and another takes its place, while init is still asked for the changes: that request. */
static uint32_t restore_before_the_changes(void)
{
    cleanup_msg struct msg m;
    struct fields fields;
    struct err e;

    fake_run(&f, "x = 1; crash()");
    fake_print(f.out, "so far");
    fake_died(&f, SIGSEGV, false);
    assert_int_equal(msg_recv(f.files, &m, &e), 1);
    assert_int_equal(m.type, FILE_CHANGES);
    fields_init(&fields, m.data, m.len);
    fake_init_answers(&f);
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 4, ends, 4);
    assert_false(f.done);
    return fields_get_u32(&fields);
}

static void tell_changes(uint32_t req)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    assert_false(f.done);
    msg_begin(&b, FILE_DONE);
    fields_put_u32(&b, req);
    fields_put_u32(&b, 0);
    fields_put_text(&b, "");
    assert_int_equal(msg_send(f.files, &b, NULL, 0, &e), 0);
    fake_turn(&f);
}

/* The cell is told how the first one ended. */
static void the_next_one_dies_while_it_settles(void **state)
{
    (void)state;
    uint32_t changes = restore_before_the_changes();
    fake_died(&f, SIGKILL, true);
    tell_changes(changes);
    assert_given_up();
}

static void the_next_one_sends_nonsense_while_it_settles(void **state)
{
    (void)state;
    uint32_t changes = restore_before_the_changes();
    fake_frame(&f, 999, NULL);
    fake_turn(&f);
    tell_changes(changes);
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGKILL));
    assert_given_up();
}

static void the_next_one_dies_in_its_first_cell(void **state)
{
    (void)state;
    crash();
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, 4, ends, 4);
    assert_true(f.done);
    f.restores = false;
    fake_run(&f, "y");
    fake_died(&f, SIGABRT, false);
    fake_init_answers(&f);
    assert_true(f.done && f.cell->session_ended && !f.cell->restored);
    assert_int_equal(f.cell->exit_code, 128 + SIGABRT);
}

/* ---- between two cells ---- */

#define TOLD(how, where) "retort: " how " while no cell ran; the session goes on " where "\n"

static void die_between_cells(int status)
{
    f.restore_req = 0;
    fake_died(&f, status, false);
    fake_init_answers(&f);
    assert_false(f.ended);
    assert_false(session_busy(f.session));
    assert_int_not_equal(f.restore_req, 0);
}

static void restore_to(uint32_t n)
{
    fake_successor(&f, ends);
    fake_restored(&f, f.restore_req, n, ends, 4);
    for (int k = 0; k < 4; k++)
        fd_close(&ends[k]);
}

static void assert_next_cell_tells(const char *what)
{
    fake_run(&f, "x");
    fake_print(f.out, "after it");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_false(f.cell->restored || f.cell->session_ended);
    assert_int_equal(f.cell->outputs[0].kind, OUTPUT_STDERR);
    assert_string_equal(f.cell->outputs[0].text, what);
    assert_string_equal(f.cell->outputs[1].text, "after it");
}

static void a_death_between_cells_is_survived(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        die_between_cells(SIGSEGV);
        restore_to(i);
        assert_false(f.ended);
        assert_next_cell_tells(i == 0   ? TOLD(SEGFAULT, "as it began")
                               : i == 1 ? TOLD(SEGFAULT, "with the state after cell 1")
                                        : TOLD(SEGFAULT, "with the state after cell 2"));
    }
}

/* As a guest has it who closes everything: nobody is dead yet. */
static void one_that_closes_its_channel_between_cells(void **state)
{
    bool no = false;
    (void)state;

    fd_close(&f.stream);
    fake_wait(&f, &no, 200);
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGKILL));
    die_between_cells(SIGKILL);
    restore_to(3);
    assert_next_cell_tells(
        TOLD("the interpreter closed its channel to retort", "with the state after cell 3"));
}

static void what_it_wrote_comes_first(void **state)
{
    (void)state;
    fake_print(f.err, "last words\n");
    die_between_cells(SIGSEGV);
    restore_to(1);
    assert_next_cell_tells("last words\n" TOLD(SEGFAULT, "with the state after cell 1"));
}

static void twice_without_a_cell_is_its_end(void **state)
{
    (void)state;
    die_between_cells(SIGSEGV);
    restore_to(1);
    fake_died(&f, SIGSEGV, false);
    assert_true(f.ended);
}

static void none_waits_between_cells(void **state)
{
    (void)state;
    f.restores = false;
    fake_died(&f, SIGSEGV, false);
    assert_false(f.ended);
    fake_init_answers(&f);
    assert_true(f.ended && !f.done);
}

static void nothing_is_kept_and_nobody_is_asked(void **state)
{
    (void)state;
    session_keep(f.session, 0);
    fake_died(&f, SIGSEGV, false);
    assert_true(f.ended);
    fake_init_answers(&f);
    assert_int_equal(f.restore_req, 0);
}

static void order(const char *code)
{
    struct err e;

    f.done = false;
    assert_int_equal(session_run(f.session, code, strlen(code), 0, &e), 0);
    assert_true(session_busy(f.session));
    assert_int_equal(session_run(f.session, "2", 1, 0, &e), -1);
    assert_int_equal(e.code, EBUSY);
}

static void assert_ordered(unsigned type)
{
    struct frame frame;
    struct fields fields;

    assert_true(fake_heard(&f, &frame));
    assert_int_equal(frame.type, type);
    fields_init(&fields, frame.data, frame.len);
    f.n = type == CELL_RUN ? fields_get_u32(&fields) : 0;
}

static void what_is_ordered_meanwhile_waits(void **state)
{
    (void)state;
    die_between_cells(SIGSEGV);
    order("x = 1");
    restore_to(4);
    assert_ordered(CELL_RUN);
    assert_int_equal(f.n, 1);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->n, 1);
    assert_string_equal(f.cell->code, "x = 1");
    assert_string_equal(f.cell->outputs[0].text, TOLD(SEGFAULT, "with the state after cell 4"));
}

static void and_may_be_interrupted(void **state)
{
    (void)state;
    die_between_cells(SIGSEGV);
    order("while True: pass");
    session_interrupt(f.session);
    fake_keeper_rests(&f);
    restore_to(4);
    assert_ordered(CELL_RUN);
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGINT));
    fake_keeper_answers(&f);
    fake_finish(&f, DONE_INTERRUPTED);
    assert_int_equal(f.cell->status, CELL_INTERRUPTED);
}

static void also_variables(void **state)
{
    struct err e;
    (void)state;

    die_between_cells(SIGSEGV);
    assert_int_equal(session_variables(f.session, 0, &e), 0);
    restore_to(4);
    assert_ordered(CELL_VARIABLES);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->n_outputs, 0);
    assert_next_cell_tells(TOLD(SEGFAULT, "with the state after cell 4"));
}

static void what_was_ordered_is_told_the_end(void **state)
{
    (void)state;
    die_between_cells(SIGSEGV);
    order("x");
    fd_close(&f.files);
    fake_turn(&f);
    assert_true(fake_crashed(&f, SEGFAULT));
    assert_string_equal(f.cell->code, "x");
    assert_false(f.ended);
}

static void closed_meanwhile(void **state)
{
    (void)state;
    die_between_cells(SIGSEGV);
    order("x");
    session_close(f.session);
    f.session = NULL;
    fake_turn(&f);
    assert_false(f.done || f.ended);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_crash_is_told_and_the_session_goes_on),
        TEST(files_that_are_missing_are_told),
        TEST(the_next_death_is_survived_too),
        TEST(none_waits),
        TEST(one_that_is_killed_for_its_time_is_restored),
        TEST(none_is_asked_for_before_the_signals_have_arrived),
        TEST(text_of_the_dead_is_not_taken_for_the_next_ones),
        TEST(one_that_dies_when_its_cell_is_done),
        TEST(too_few_descriptors),
        TEST(too_many_descriptors),
        TEST(a_pipe_in_the_wrong_direction),
        TEST(no_pipe),
        TEST(a_pipe_that_is_only_a_path),
        TEST(unasked),
        TEST(twice),
        TEST(init_leaves),
        TEST(init_is_mute),
        TEST(the_next_one_dies_while_it_settles),
        TEST(the_next_one_sends_nonsense_while_it_settles),
        TEST(the_next_one_dies_in_its_first_cell),
        TEST(a_death_between_cells_is_survived),
        TEST(one_that_closes_its_channel_between_cells),
        TEST(what_it_wrote_comes_first),
        TEST(twice_without_a_cell_is_its_end),
        TEST(none_waits_between_cells),
        TEST(nothing_is_kept_and_nobody_is_asked),
        TEST(what_is_ordered_meanwhile_waits),
        TEST(and_may_be_interrupted),
        TEST(also_variables),
        TEST(what_was_ordered_is_told_the_end),
        TEST(closed_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
