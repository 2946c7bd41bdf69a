/* "Is it complete?", asked without waiting: answers in order, late, never, and of a hostile box. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "wire/fields.h"

static struct told {
    bool answered;
    int state, code;
    char indent[64];
} told[20];

static int setup(void **state)
{
    memset(told, 0, sizeof(told));
    return fixture_setup(state);
}

static void on_answer(void *ctx, const struct check_answer *a)
{
    struct told *t = ctx;

    assert_false(t->answered);
    t->answered = true;
    t->state = a->state;
    t->code = a->e ? a->e->code : 0;
    if (!a->e)
        strncpy(t->indent, a->indent, sizeof(t->indent) - 1);
}

static struct check_request *ask(unsigned i)
{
    struct err e;

    return session_ask_check(f.session, "if x:", 5, on_answer, &told[i], &e);
}

static void answer(unsigned state, const char *indent)
{
    cleanup_buf struct buf b = {0};

    fields_put_u8(&b, (uint8_t)state);
    fields_put_text(&b, indent);
    fake_frame(&f, CELL_CHECKED, &b);
    fake_turn(&f);
}

static void answers_come_in_their_order(void **state)
{
    (void)state;
    assert_non_null(ask(0));
    assert_non_null(ask(1));
    answer(CHECK_INCOMPLETE, "    ");
    assert_true(told[0].answered && !told[1].answered);
    assert_int_equal(told[0].state, CHECK_INCOMPLETE);
    assert_string_equal(told[0].indent, "    ");
    answer(CHECK_INVALID, "");
    assert_int_equal(told[1].state, CHECK_INVALID);
}

static void a_cancelled_one_takes_its_answer_along(void **state)
{
    (void)state;
    session_check_cancel(ask(0));
    ask(1);
    answer(CHECK_INVALID, "");
    assert_false(told[0].answered || told[1].answered);
    answer(CHECK_COMPLETE, "\t");
    assert_true(told[1].answered && !told[0].answered);
    assert_string_equal(told[1].indent, "\t");
}

static void the_time_is_bounded(void **state)
{
    (void)state;
    ask(0);
    assert_true(fake_wait(&f, &told[0].answered, FAKE_PATIENCE_MS));
    assert_int_equal(told[0].code, ETIMEDOUT);
    answer(CHECK_COMPLETE, ""); /* late: nobody's */
    assert_false(session_ended(f.session));
    ask(1);
    answer(CHECK_COMPLETE, "");
    assert_true(told[1].answered && told[1].code == 0);
}

static void the_number_is_bounded(void **state)
{
    struct err e;
    (void)state;

    for (unsigned i = 0; i < 16; i++)
        assert_non_null(ask(i));
    assert_null(session_ask_check(f.session, "", 0, on_answer, &told[16], &e));
    assert_int_equal(e.code, EBUSY);
}

static void one_that_is_not_read_is_the_last(void **state)
{
    cleanup_buf struct buf code = {0};
    struct frame frame;
    struct err e;
    (void)state;

    memset(buf_room(&code, 8 << 20), '#', 8 << 20); /* more than any pipe takes */
    assert_non_null(session_ask_check(f.session, code.data, 8 << 20, on_answer, &told[0], &e));
    assert_null(session_ask_check(f.session, "", 0, on_answer, &told[1], &e));
    assert_int_equal(e.code, EBUSY);
    for (unsigned i = 0; i < 10000 && !fake_heard(&f, &frame); i++)
        fake_turn(&f);
    assert_non_null(ask(1));
}

static void not_while_a_cell_runs(void **state)
{
    struct err e;
    (void)state;

    fake_run(&f, "1");
    assert_null(session_ask_check(f.session, "", 0, on_answer, &told[0], &e));
    assert_int_equal(e.code, EBUSY);
    fake_finish(&f, DONE_OK);
    assert_non_null(ask(0));
}

static void a_cell_may_follow_at_once(void **state)
{
    struct frame frame;
    (void)state;

    ask(0);
    assert_true(fake_heard(&f, &frame) && frame.type == CELL_CHECK);
    fake_run(&f, "1");
    answer(CHECK_COMPLETE, "");
    assert_true(told[0].answered);
    fake_finish(&f, DONE_OK);
    assert_true(f.done);
}

static void the_end_is_told(void **state)
{
    (void)state;
    ask(0);
    session_check_cancel(ask(1));
    answer(CHECK_COMPLETE, "rm -rf"); /* no indentation: the box lies */
    assert_true(session_ended(f.session));
    assert_int_equal(told[0].code, EPIPE);
    assert_false(told[1].answered);
}

static void an_answer_nobody_asked_for_ends_it(void **state)
{
    (void)state;
    answer(CHECK_COMPLETE, "");
    assert_true(session_ended(f.session));
}

static void nothing_is_told_of_a_closed_one(void **state)
{
    (void)state;
    ask(0);
    session_close(f.session);
    f.session = NULL;
    fake_turn(&f);
    assert_false(told[0].answered);
}

static void close_it(void *ctx, const struct check_answer *a)
{
    (void)a;
    session_close(f.session);
    f.session = NULL;
    *(bool *)ctx = true;
}

static void the_answer_may_close_the_session(void **state)
{
    bool answered = false;
    struct err e;
    (void)state;

    session_ask_check(f.session, "", 0, close_it, &answered, &e);
    ask(0);
    answer(CHECK_COMPLETE, "");
    assert_true(answered);
    assert_false(told[0].answered);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(answers_come_in_their_order),
        test(a_cancelled_one_takes_its_answer_along),
        test(the_time_is_bounded),
        test(the_number_is_bounded),
        test(one_that_is_not_read_is_the_last),
        test(not_while_a_cell_runs),
        test(a_cell_may_follow_at_once),
        test(the_end_is_told),
        test(an_answer_nobody_asked_for_ends_it),
        test(nothing_is_told_of_a_closed_one),
        test(the_answer_may_close_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
