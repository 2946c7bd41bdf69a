/* States that are kept, in real boxes: surviving what kills an interpreter, and going back. Runs as root and
 * as an ordinary user. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "house.h"
#include "wire/proto.h"

#define FILES 1000
#define A_WHILE_US 300000 /* in which an interpreter that nobody asks is kept */

static bool done;
static struct cell *last;

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    (void)ctx, (void)s;
    cell_free(last);
    last = c;
    done = true;
}

static int setup(void **state)
{
    (void)state;
    house_session(FILES, on_done);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    session_close(session);
    cell_free(last);
    last = NULL;
    return 0;
}

/* The result's text, or "". */
static const char *run(const char *code)
{
    struct err e = {0};

    done = false;
    assert_int_equal(session_run(session, code, strlen(code), 0, &e), 0);
    house_wait(&done);
    for (unsigned i = 0; i < last->n_outputs; i++)
        if (last->outputs[i].kind == OUTPUT_RESULT)
            return last->outputs[i].parts[0].data;
    return "";
}

static void run_well(const char *code)
{
    run(code);
    if (last->status != CELL_OK)
        fail_msg("%s\n%s", code, last->error.traceback ? last->error.traceback : "");
}

static void go_back(uint32_t n)
{
    struct err e = {0};

    done = false;
    assert_int_equal(session_rollback(session, n, &e), 0);
    house_wait(&done);
    if (!last->restored || last->session_ended)
        fail_msg("to %u: %s %s", n, last->session_ended ? "the session has ended" : "",
                 last->error.value ? last->error.value : "");
    assert_int_equal(last->restored_to, n);
}

/* ---- the list ---- */

struct listed {
    bool answered;
    char text[1024]; /* "n-up_to …" */
};

static void on_point(void *ctx, const struct session_point *p)
{
    struct listed *l = ctx;
    size_t len = strlen(l->text);

    assert_true(p->taken_ms > 0);
    snprintf(l->text + len, sizeof(l->text) - len, "%s%u-%u%s%s", len ? " " : "", p->n, p->up_to,
             p->lost[0] ? ":" : "", p->lost);
}

static void on_listed(void *ctx, const struct file_answer *a)
{
    struct listed *l = ctx;

    assert_null(a->e);
    l->answered = true;
}

static const char *points(void)
{
    static struct listed l;
    struct err e = {0};

    l = (struct listed){0};
    assert_non_null(session_ask_points(session, on_point, on_listed, &l, &e));
    house_wait(&l.answered);
    return l.text;
}

/* ---- tests ---- */

static void a_death_is_survived(void **state)
{
    (void)state;
    run_well("x = [1]");
    run_well("y = 2");
    run("x.append(3); import os; os._exit(5)");
    assert_int_equal(last->status, CELL_CRASHED);
    assert_true(last->restored && !last->session_ended);
    assert_int_equal(last->restored_to, 2);
    assert_string_equal(run("x, y"), "([1], 2)");
    run("os.abort()");
    assert_string_equal(run("x, y"), "([1], 2)");
}

static void back_to_an_earlier_cell(void **state)
{
    (void)state;
    run_well("x = 1; open('a', 'w').write('one')");
    run_well("x = 2; open('a', 'w').write('two'); open('b', 'w').write('new')");
    run_well("import os; x = 3; os.unlink('a')");
    run_well("x"); /* so that the third is kept */
    go_back(2);
    assert_string_equal(run("x, open('a').read(), open('b').read()"), "(2, 'two', 'new')");
    go_back(1);
    assert_string_equal(run("import os; x, open('a').read(), os.listdir()"), "(1, 'one', ['a'])");
    assert_int_equal(last->n_files, 0);
    assert_int_equal(last->n, 6);
    run_well("x = 10");
    run("os._exit(1)");
    assert_int_equal(last->restored_to, 7);
    assert_string_equal(run("x"), "10");
}

static void cells_without_a_trace_are_reached_too(void **state)
{
    (void)state;
    run_well("x = 1");
    run_well("x + 1");
    run_well("2");
    run_well("x = 4");
    run_well("x");
    assert_non_null(strstr(points(), "1-3 4-5"));
    go_back(3);
    assert_string_equal(run("x"), "1");
    assert_non_null(strstr(points(), "1-"));
    assert_null(strstr(points(), "4-5"));
}

static void what_is_lost_is_listed(void **state)
{
    (void)state;
    run_well(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,), name='worker-1', daemon=True).start()");
    run_well("1");
    assert_non_null(strstr(points(), "thread worker-1"));
}

static void old_ones_are_thinned(void **state)
{
    char code[32];
    (void)state;

    for (unsigned i = 1; i <= 30; i++) {
        snprintf(code, sizeof(code), "x = %u", i);
        run_well(code);
    }
    run_well("1");
    const char *text = points();
    unsigned n = 1;
    for (const char *at = text; (at = strchr(at, ' ')); at++)
        n++;
    assert_int_equal(n, 8);
    assert_non_null(strstr(text, "30-31"));
    assert_non_null(strstr(text, "29-29"));
}

/* What is said instead. */
static const char *no_way_to(uint32_t n)
{
    struct err e = {0};

    done = false;
    assert_int_equal(session_rollback(session, n, &e), 0);
    house_wait(&done);
    assert_true(!last->session_ended && !last->restored);
    assert_string_equal(last->error.name, NO_POINT);
    return last->error.value;
}

static void there_is_no_way_to_what_was_not_kept(void **state)
{
    (void)state;
    run_well("x = 1");
    run_well("1");
    assert_non_null(strstr(no_way_to(77), " 1 to 2"));
    assert_string_equal(run("x"), "1");
}

/* A cell that left no trace, after a way back, does not make those reachable that were undone. */
static void what_was_undone_stays_so(void **state)
{
    (void)state;
    run_well("x = 1");
    run_well("x = 2");
    run_well("x = 3");
    go_back(1);
    assert_string_equal(run("x"), "1");
    assert_non_null(strstr(no_way_to(2), " 1, 4"));
    no_way_to(3);
    go_back(4);
    assert_string_equal(run("x"), "1");
    assert_non_null(strstr(no_way_to(1), " 4 to 5"));
}

/* The interpreter is to be kept when nobody has asked for anything for a moment; its owner may be slower to ask what the
 * cell did to the files. */
static void kept_before_its_owner_has_looked(void **state)
{
    static const char two[] = "open('a', 'w').write('two')";
    struct err e = {0};
    (void)state;

    run_well("open('a', 'w').write('one')");
    usleep(A_WHILE_US);
    done = false;
    assert_int_equal(session_run(session, two, strlen(two), 0, &e), 0);
    usleep(A_WHILE_US);
    house_wait(&done);
    run_well("x = 3");
    go_back(2);
    assert_string_equal(run("open('a').read()"), "'two'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_death_is_survived, setup, teardown),
        cmocka_unit_test_setup_teardown(back_to_an_earlier_cell, setup, teardown),
        cmocka_unit_test_setup_teardown(cells_without_a_trace_are_reached_too, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_lost_is_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(old_ones_are_thinned, setup, teardown),
        cmocka_unit_test_setup_teardown(there_is_no_way_to_what_was_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_undone_stays_so, setup, teardown),
        cmocka_unit_test_setup_teardown(kept_before_its_owner_has_looked, setup, teardown),
    };
    return cmocka_run_group_tests(tests, house_open, house_close);
}
