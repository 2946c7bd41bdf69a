/* Sessions that split, in real boxes. Runs as root and as an ordinary user. */
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

#include "box/steps.h"
#include "house.h"
#include "wire/proto.h"

#define FILES 1000

/* One session and what came of its last cell. */
struct line {
    struct session *session;
    struct cell *last;
    bool opened, done, gone;
    char why[600];
};

static struct line trunk;

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    struct line *l = ctx;
    (void)s;

    l->opened = true;
    snprintf(l->why, sizeof(l->why), "%s", e ? e->text : "");
}

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    struct line *l = ctx;
    (void)s;

    cell_free(l->last);
    l->last = c;
    l->done = true;
}

static const struct session_events events = {.opened = on_opened, .done = on_done};

static struct limits limits(void)
{
    struct limits l;

    limits_default(&l);
    l.files = FILES;
    l.timeout_ms = LIMIT_NONE; /* an emulated machine is slow */
    return l;
}

static void line_close(struct line *l)
{
    if (l->session)
        session_close(l->session);
    cell_free(l->last);
    *l = (struct line){0};
}

static int setup(void **state)
{
    struct limits l = limits();
    (void)state;

    trunk = (struct line){0};
    trunk.session = session_open(vessel, 0, &l, &events, &trunk);
    house_wait(&trunk.opened);
    assert_string_equal(trunk.why, "");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    line_close(&trunk);
    return 0;
}

static void begin(struct line *l, const char *code)
{
    struct err e = {0};

    l->done = false;
    assert_int_equal(session_run(l->session, code, strlen(code), 0, &e), 0);
}

static const char *end(struct line *l)
{
    house_wait(&l->done);
    for (unsigned i = 0; i < l->last->n_outputs; i++)
        if (l->last->outputs[i].kind == OUTPUT_RESULT)
            return l->last->outputs[i].parts[0].data;
    return "";
}

static const char *run(struct line *l, const char *code)
{
    begin(l, code);
    return end(l);
}

static void run_well(struct line *l, const char *code)
{
    run(l, code);
    if (l->last->status != CELL_OK)
        fail_msg("%s\n%s", code, l->last->error.traceback ? l->last->error.traceback : "");
}

/* What the last cell left is kept a moment after its answer. */
static void rest(void)
{
    bool never = false;
    struct err e;

    vessel_wait(vessel, &never, 300, &e);
}

static void ask_branch(struct line *ret, struct line *from, uint32_t n, bool present)
{
    struct limits l = limits();
    const struct session_departure at = {.n = n, .present = present};

    *ret = (struct line){0};
    ret->session = session_branch(from->session, &at, &l, &events, ret);
}

static void branch(struct line *ret, struct line *from, uint32_t n)
{
    ask_branch(ret, from, n, true);
    house_wait(&ret->opened);
    assert_string_equal(ret->why, "");
}

/* ---- tests ---- */

static void it_begins_as_the_other_was(void **state)
{
    struct line b;
    (void)state;

    run_well(&trunk, "x = [1, 2]; open('a.txt', 'w').write('hello')");
    branch(&b, &trunk, 1);
    assert_string_equal(run(&b, "x, open('a.txt').read()"), "([1, 2], 'hello')");
    assert_int_equal(b.last->n, 2);
    assert_int_equal(b.last->n_files, 0); /* it has done nothing to them */
    line_close(&b);
    assert_string_equal(run(&trunk, "x"), "[1, 2]");
}

/* What is kept was so for an earlier cell, and is good for this one too. */
static void after_a_cell_that_left_no_trace(void **state)
{
    struct line b, c;
    (void)state;

    run_well(&trunk, "x = 1");
    rest();
    run_well(&trunk, "x");
    branch(&b, &trunk, 2);
    branch(&c, &b, 2);
    assert_string_equal(run(&c, "x"), "1");
    assert_int_equal(c.last->n, 3);
    line_close(&c);
    line_close(&b);
}

static void from_then_on_they_are_apart(void **state)
{
    struct line b;
    (void)state;

    run_well(&trunk, "x = 1; open('a', 'w').write('one'); import os");
    rest();
    branch(&b, &trunk, 1);
    run_well(&b, "x = 'b'; open('a', 'w').write('of b'); open('b', 'w').write('b')");
    run_well(&trunk, "x = 't'; open('a', 'w').write('of t'); open('t', 'w').write('t')");
    assert_string_equal(run(&b, "x, open('a').read(), sorted(os.listdir())"),
                        "('b', 'of b', ['a', 'b'])");
    assert_string_equal(run(&trunk, "x, open('a').read(), sorted(os.listdir())"),
                        "('t', 'of t', ['a', 't'])");
    line_close(&b);
}

static void an_earlier_state(void **state)
{
    struct line b;
    (void)state;

    run_well(&trunk, "x = 1; open('a', 'w').write('one')");
    run_well(&trunk, "x = 2; open('a', 'w').write('two')");
    run_well(&trunk, "x = 3");
    rest();
    ask_branch(&b, &trunk, 1, false);
    house_wait(&b.opened);
    if (geteuid() == 0) { /* without cgroups only the last is kept */
        assert_string_equal(b.why, "");
        assert_string_equal(run(&b, "x, open('a').read()"), "(1, 'one')");
    }
    line_close(&b);
    ask_branch(&b, &trunk, 77, false);
    house_wait(&b.opened);
    assert_string_equal(b.why, LENT_NOT_KEPT);
    line_close(&b);
}

static void it_has_no_rights(void **state)
{
    struct line b;
    (void)state;

    run_well(&trunk, "x = 1");
    rest();
    branch(&b, &trunk, 1);
    run_well(
        &b,
        "s = open('/proc/self/status').read()\n"
        "assert all(set(l.split()[1]) == {'0'} for l in s.splitlines() if l.startswith('Cap')), s\n"
        "assert 'NoNewPrivs:\\t1' in s and 'Seccomp:\\t2' in s, s\n"
        "import os\n"
        "assert os.getuid() == 1000 and os.getcwd() == '/mnt/data'\n"
        "for fd in os.listdir('/proc/self/fd'):\n"
        "    try: name = os.readlink('/proc/self/fd/' + fd)\n"
        "    except OSError: continue\n"
        "    assert ':[' not in name or name.startswith(('pipe:', 'socket:')), name\n"
        "assert sorted(p for p in os.listdir('/proc') if p.isdigit())[0] == '1'\n"
        "mine = [p for p in os.listdir('/proc') if p.isdigit()]\n"
        "assert len(mine) <= 3, mine\n");
    line_close(&b);
}

/* Names that a machine, a network or an ipc namespace gives out are not shared. */
static void they_do_not_meet(void **state)
{
    struct line b;
    (void)state;

    run_well(&trunk, "import socket, ctypes, os\n"
                     "a = socket.socket(socket.AF_UNIX); a.bind('\\0meet'); a.listen()\n"
                     "t = socket.socket(); t.bind(('127.0.0.1', 5005)); t.listen()\n"
                     "libc = ctypes.CDLL(None, use_errno=True)\n"
                     "q = libc.msgget(77, 0o1666)\n"
                     "assert q >= 0\n"
                     "open('/tmp/x', 'w').write('x'); open('/dev/shm/x', 'w').write('x')\n"
                     "def meets(act):\n"
                     "    try: return act()\n"
                     "    except OSError: return False\n");
    branch(&b, &trunk, 1);
    run_well(&b, "assert meets(lambda: socket.socket(socket.AF_UNIX).connect('\\0meet')) is False\n"
                 "assert meets(lambda: socket.create_connection(('127.0.0.1', 5005))) is False\n"
                 "assert libc.msgget(77, 0) == -1\n"
                 "assert not os.path.exists('/tmp/x') and not os.path.exists('/dev/shm/x')\n"
                 "os.system('kill -9 -1'); os.kill(0, 0)\n");
    assert_string_equal(
        run(&trunk, "meets(lambda: socket.create_connection(('127.0.0.1', 5005))) is not False"),
        "True");
    line_close(&b);
}

static void the_other_may_end_first(void **state)
{
    struct line b, c;
    (void)state;

    run_well(&trunk, "x = 1; open('a', 'w').write('a')");
    rest();
    branch(&b, &trunk, 1);
    line_close(&trunk);
    run_well(&b, "y = x + 1");
    rest();
    branch(&c, &b, 2);
    line_close(&b);
    assert_string_equal(run(&c, "x, y, open('a').read()"), "(1, 2, 'a')");
    line_close(&c);
    setup(NULL);
}

static void many_at_once(void **state)
{
    enum { MANY = 16 };
    struct line b[MANY];
    char code[64];
    (void)state;

    run_well(&trunk, "import random, time; x = 7");
    rest();
    for (int i = 0; i < MANY; i++)
        ask_branch(&b[i], &trunk, 1, true);
    for (int i = 0; i < MANY; i++) {
        house_wait(&b[i].opened);
        assert_string_equal(b[i].why, "");
        snprintf(code, sizeof(code), "x += %d; time.sleep(0.2); x", i);
        begin(&b[i], code);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(code, sizeof(code), "%d", 7 + i);
        assert_string_equal(end(&b[i]), code);
    }
    char seen[MANY][256];
    for (int i = 0; i < MANY; i++) {
        snprintf(seen[i], sizeof(seen[i]), "%s",
                 run(&b[i], "import ssl, uuid\n"
                            "random.random(), ssl.RAND_bytes(4), uuid.uuid4().hex[:8]"));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(seen[k], seen[i]);
    }
    for (int i = 0; i < MANY; i++)
        line_close(&b[i]);
}

static void it_survives_too(void **state)
{
    struct line b;
    (void)state;

    run_well(&trunk, "x = 1");
    rest();
    branch(&b, &trunk, 1);
    run_well(&b, "x = 2");
    run(&b, "import os; os._exit(3)");
    assert_int_equal(b.last->status, CELL_CRASHED);
    assert_true(b.last->restored && !b.last->session_ended);
    assert_int_equal(b.last->restored_to, 2);
    assert_string_equal(run(&b, "x"), "2");
    assert_string_equal(run(&trunk, "x"), "1");
    line_close(&b);
}

static void open_files_are_its_own(void **state)
{
    struct line b;
    (void)state;

    run_well(
        &trunk,
        "f = open('a', 'w+'); f.write('12345'); f.flush(); f.seek(2); t = open('/tmp/t', 'w')");
    rest();
    branch(&b, &trunk, 1);
    assert_string_equal(run(&b, "f.read()"), "'345'");
    run_well(&b, "f.seek(0); f.write('b'); f.flush()");
    assert_string_equal(run(&trunk, "f.read(), open('a').read()"), "('345', '12345')");
    assert_string_equal(run(&b, "open('a').read()"), "'b2345'");
    line_close(&b);
}

/* A keeper in which this step fails. */
static int setup_fault(void **state)
{
    setenv("RETORT_FAULT", *state, 1);
    steps_inject(*state);
    house_open(NULL);
    return setup(NULL);
}

static int teardown_fault(void **state)
{
    teardown(NULL);
    unsetenv("RETORT_FAULT");
    steps_inject(NULL);
    return house_close(state);
}

static void a_step_that_fails(void **state)
{
    struct line b;

    run_well(&trunk, "x = 1");
    ask_branch(&b, &trunk, 1, true);
    house_wait(&b.opened);
    if (!strstr(b.why, *state) || !strstr(b.why, "on purpose"))
        fail_msg("%s: \"%s\"", (const char *)*state, b.why);
    line_close(&b);
    assert_string_equal(run(&trunk, "x"), "1");
}

static int test_faults(void)
{
    enum { MOST = 32 };
    struct CMUnitTest tests[MOST];
    unsigned n = 0;

    for (const char *name; (name = steps_branch_name(n)); n++)
        tests[n] = (struct CMUnitTest){.name = name,
                                       .test_func = a_step_that_fails,
                                       .setup_func = setup_fault,
                                       .teardown_func = teardown_fault,
                                       .initial_state = (char *)(uintptr_t)name};
    return _cmocka_run_group_tests("branch faults", tests, n, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_begins_as_the_other_was, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_cell_that_left_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(from_then_on_they_are_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(an_earlier_state, setup, teardown),
        cmocka_unit_test_setup_teardown(it_has_no_rights, setup, teardown),
        cmocka_unit_test_setup_teardown(they_do_not_meet, setup, teardown),
        cmocka_unit_test_setup_teardown(the_other_may_end_first, setup, teardown),
        cmocka_unit_test_setup_teardown(it_survives_too, setup, teardown),
        cmocka_unit_test_setup_teardown(open_files_are_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(many_at_once, setup, teardown),
    };

    const char *only = getenv("ONLY_TESTS"); /* a pattern: an emulated machine is slow */

    if (only)
        cmocka_set_test_filter(only);
    int failed = cmocka_run_group_tests_name("branches", tests, house_open, house_close);
    return failed + (only ? 0 : test_faults());
}
