/* Asking for the variables: a course like a cell's, and nothing of it in the session's history. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fixture.h"
#include "session/cell.h"
#include "session/cell_json.h"
#include "session/inside.h"

#define ONE "{\"name\":\"a\",\"type\":\"int\",\"size\":28,\"text\":\"1\"}"

static void answer(const char *json)
{
    fake_display(&f, VARIABLES_TYPE, json);
    fake_done(&f, DONE_OK);
    fake_turn(&f);
}

static bool heard_nothing(int fd)
{
    struct msg m;
    struct err e;

    fd_set_nonblock(fd);
    return msg_recv(fd, &m, &e) < 0 && e.code == EAGAIN;
}

static void they_are_not_a_cell(void **state)
{
    (void)state;
    fake_run(&f, "a = 1");
    fake_finish(&f, DONE_OK);
    fake_ask_variables(&f);
    assert_true(session_busy(f.session));
    answer("[" ONE "]");
    assert_true(f.done);
    assert_false(session_busy(f.session));
    assert_int_equal(f.cell->n, 0);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_string_equal(f.cell->code, "");
    assert_int_equal(f.cell->n_outputs, 1);
    assert_string_equal(f.cell->outputs[0].parts[0].data, "[" ONE "]");
    /* the next cell tells what became of the files */
    assert_true(heard_nothing(f.files));
    fake_run(&f, "2");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->n, 2);
    assert_int_equal(f.cell->n_outputs, 0);
}

/* A page that looks at the variables must not take a thread's output away from the cells. */
static void what_came_between_cells_stays_for_the_next(void **state)
{
    (void)state;
    fake_run(&f, "1");
    fake_finish(&f, DONE_OK);
    fake_print(f.out, "late");
    fake_turn(&f);
    for (int i = 0; i < 2; i++) {
        fake_ask_variables(&f);
        fake_print(f.out, "repr");
        answer("[]");
        assert_int_equal(f.cell->n_outputs, 2);
        assert_string_equal(f.cell->outputs[0].text, "repr");
    }
    fake_print(f.out, "r");
    fake_turn(&f);
    fake_run(&f, "2");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->n_outputs, 1);
    assert_string_equal(f.cell->outputs[0].text, "later");
}

static void a_session_closed_meanwhile_leaks_nothing(void **state)
{
    (void)state;
    fake_print(f.out, "late");
    fake_turn(&f);
    fake_ask_variables(&f);
    fake_print(f.out, "repr");
    fake_turn(&f);
    session_close(f.session);
    f.session = NULL;
    assert_false(f.done);
}

static void one_at_a_time(void **state)
{
    struct err e;
    (void)state;

    fake_ask_variables(&f);
    assert_int_equal(session_variables(f.session, 0, &e), -1);
    assert_int_equal(e.code, EBUSY);
    assert_int_equal(session_run(f.session, "1", 1, 0, &e), -1);
    answer("[]");
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_int_equal(session_variables(f.session, 0, &e), -1);
}

static void another_number_is_not_its_end(void **state)
{
    (void)state;
    fake_ask_variables(&f);
    f.n = 1;
    fake_done(&f, DONE_OK);
    fake_turn(&f);
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_true(
        fake_crashed(&f, "the interpreter sent something that is not a message of retort's"));
}

static void a_repr_without_end_meets_the_time_limit(void **state)
{
    struct err e;
    struct frame frame;
    (void)state;

    assert_int_equal(session_variables(f.session, 20, &e), 0);
    assert_true(fake_heard(&f, &frame));
    assert_false(fake_wait(&f, &f.done, 100));
    assert_true(fake_keeper_hears(&f, KEEPER_SIGNAL, SIGINT));
    fake_done(&f, DONE_INTERRUPTED);
    fake_turn(&f);
    assert_false(f.done); /* the signal must not strike the next cell */
    fake_keeper_answers(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_LIMIT);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_WALL);
    assert_false(f.cell->session_ended);
    fake_run(&f, "1");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
}

static void a_repr_that_crashes_ends_the_session(void **state)
{
    (void)state;
    fake_ask_variables(&f);
    fake_died(&f, SIGSEGV, false);
    fake_init_answers(&f);
    assert_true(fake_crashed(&f, "the interpreter was killed by signal 11 (Segmentation fault)"));
    assert_int_equal(f.cell->n, 0);
}

static void without_a_meter_init_tells_what_it_took(void **state)
{
    (void)state;
    fake_stop(&f);
    fake_start(&f, NULL);
    fake_create(&f, METER_NONE);
    fake_ask_variables(&f);
    answer("[]");
    assert_false(f.done);
    fake_init_answers(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_OK);
}

/* ---- what is in the answer ---- */

static json_t *read_back(const char *json)
{
    fake_ask_variables(&f);
    answer(json);
    assert_true(f.done);
    return cell_variables_json(f.cell);
}

static void sound_answers_are_taken(void **state)
{
    static const char *const sound[] = {
        "[]",
        "[" ONE "]",
        "[{\"name\":\"a\",\"type\":\"ndarray\",\"shape\":[2,3],\"size\":0,\"text\":\"\"}," ONE "]",
        "[{\"name\":\"a\",\"type\":\"list\",\"length\":7,\"size\":0,\"text\":\"\\u00e9\"}]",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(sound) / sizeof(sound[0]); i++) {
        json_t *j = read_back(sound[i]);
        assert_true(json_is_array(j));
        json_decref(j);
    }
}

static void others_are_not(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[1]",
        "[" ONE ",",
        "[{}]",
        "[{\"name\":1,\"type\":\"int\",\"size\":28,\"text\":\"1\"}]",
        "[{\"name\":\"a\",\"type\":\"int\",\"size\":-1,\"text\":\"1\"}]",
        "[{\"name\":\"a\",\"type\":\"int\",\"size\":1,\"text\":\"1\",\"more\":1}]",
        "[{\"name\":\"a\",\"type\":\"int\",\"shape\":3,\"size\":1,\"text\":\"1\"}]",
        "[{\"name\":\"a\",\"type\":\"int\",\"shape\":[-3],\"size\":1,\"text\":\"1\"}]",
        "[{\"name\":\"a\",\"type\":\"int\",\"shape\":[],\"length\":1,\"size\":1,\"text\":\"1\"}]",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (read_back(bad[i]))
            fail_msg("%s was taken", bad[i]);
}

static void they_are_bounded(void **state)
{
    cleanup_buf struct buf many = {0}, text = {0};
    (void)state;

    buf_add_text(&many, "[" ONE);
    for (int i = 1; i < VARIABLES_MAX; i++)
        buf_add_text(&many, "," ONE);
    size_t len = many.len;
    buf_add_text(&many, "]");
    json_t *j = read_back(buf_text(&many));
    assert_int_equal(json_array_size(j), VARIABLES_MAX);
    json_decref(j);
    many.len = len;
    buf_add_text(&many, "," ONE "]");
    assert_null(read_back(buf_text(&many)));

    buf_add_text(&text, "[{\"name\":\"a\",\"type\":\"int\",\"size\":1,\"text\":\"");
    for (int i = 0; i < VARIABLES_TEXT_MAX; i++)
        buf_add_text(&text, "é");
    len = text.len;
    buf_add_text(&text, "\"}]");
    j = read_back(buf_text(&text));
    assert_int_equal(json_array_size(j), 1);
    json_decref(j);
    text.len = len;
    buf_add_text(&text, "x\"}]");
    assert_null(read_back(buf_text(&text)));
}

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(they_are_not_a_cell),
        test(what_came_between_cells_stays_for_the_next),
        test(a_session_closed_meanwhile_leaks_nothing),
        test(one_at_a_time),
        test(another_number_is_not_its_end),
        test(a_repr_without_end_meets_the_time_limit),
        test(a_repr_that_crashes_ends_the_session),
        test(without_a_meter_init_tells_what_it_took),
        test(sound_answers_are_taken),
        test(others_are_not),
        test(they_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
