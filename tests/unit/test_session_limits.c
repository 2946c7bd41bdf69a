/* Limits: which one is named, what the cell is called, and what becomes of the session. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "fake.h"
#include "wire/fields.h"

enum { PEAK, OOM, PIDS, CPU };

static struct fake f;

static int setup(void **state)
{
    (void)state;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_stop(&f);
    return 0;
}

static void open_with(const char *name, const char *value, unsigned meter)
{
    struct limits l;
    struct err e;

    limits_default(&l);
    if (name)
        assert_int_equal(limits_set(&l, name, value, &e), 0);
    fake_start(&f, &l);
    fake_create(&f, meter);
    assert_true(f.opened);
}

static bool no = false;

/* The next signal the keeper is asked to send; 0 when none came in time. */
static uint32_t next_signal(int within_ms)
{
    int64_t until = clock_now_ms() + within_ms;

    do {
        struct msg m;
        uint32_t type = fake_keeper_next(&f, &m);
        struct fields fields;
        fields_init(&fields, m.data, m.len);
        if (type == KEEPER_SIGNAL) {
            fields_get_u32(&fields);
            return fields_get_u32(&fields);
        }
        if (type == 0)
            fake_wait(&f, &no, 5);
    } while (clock_now_ms() < until);
    return 0;
}

static void assert_limit(enum limit_kind kind, double limit, double used)
{
    assert_int_equal(f.cell->limit.kind, kind);
    assert_float_equal((float)f.cell->limit.limit, (float)limit, 1e-3);
    if (!isnan(used))
        assert_float_equal((float)f.cell->limit.used, (float)used, 1e-3);
}

/* ---- time ---- */

static void wall_interrupts_and_keeps_the_session(void **state)
{
    (void)state;
    open_with("timeout", "0.03", METER_V1);
    fake_run(&f, "while True: pass");
    fake_print(f.out, "so far");
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
    fake_error(&f, "KeyboardInterrupt", "");
    fake_done(&f, DONE_INTERRUPTED);
    fake_turn(&f);
    fake_init_answers(&f);
    assert_false(f.done); /* the signal may still be under way */
    fake_keeper_answers(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_LIMIT);
    assert_limit(LIMIT_KIND_WALL, 0.03, NAN);
    assert_true(f.cell->limit.used >= 0.03 && f.cell->limit.used < 30);
    assert_string_equal(f.cell->outputs[0].text, "so far");
    assert_false(f.cell->session_ended);
    fake_run(&f, "1");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
}

static void wall_kills_what_does_not_yield(void **state)
{
    (void)state;
    open_with("timeout", "0.02", METER_V1);
    fake_run(&f, "…");
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
    fake_keeper_answers(&f);
    int64_t start = clock_now_ms();
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT); /* once more, before it is too late */
    assert_true(clock_now_ms() - start >= 1400);
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGKILL);
    assert_true(clock_now_ms() - start >= 1900);
    fake_print(f.out, "last words");
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_LIMIT);
    assert_limit(LIMIT_KIND_WALL, 0.02, NAN);
    assert_true(f.cell->session_ended);
    assert_string_equal(f.cell->outputs[0].text, "last words");
    assert_null(f.cell->error.name);
}

static void a_cells_own_timeout_counts(void **state)
{
    struct err e;
    (void)state;

    open_with(NULL, NULL, METER_V1);
    assert_int_equal(session_run(f.session, "…", 3, 10, &e), 0);
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
}

static void cpu_is_looked_at_when_it_could_be_used_up(void **state)
{
    (void)state;
    open_with("cpu", "0.05", METER_V1);
    fake_meter(&f, CPU, "1000000000\n"); /* before the cell: does not count */
    fake_run(&f, "…");
    assert_int_equal(next_signal(100), 0);
    fake_meter(&f, CPU, "1049000000\n");
    assert_int_equal(next_signal(30), 0);
    fake_meter(&f, CPU, "1051000000\n");
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
    fake_done(&f, DONE_INTERRUPTED);
    fake_turn(&f);
    fake_keeper_answers(&f);
    fake_init_answers(&f);
    assert_int_equal(f.cell->status, CELL_LIMIT);
    assert_limit(LIMIT_KIND_CPU, 0.05, 0.051);
    assert_float_equal((float)f.cell->receipt.cpu_ms, 51.0f, 1e-3);
}

static void cpu_is_asked_of_init_without_a_cgroup(void **state)
{
    (void)state;
    open_with("cpu", "0.01", METER_NONE);
    fake_run(&f, "…");
    assert_int_equal(next_signal(50), 0);
    cleanup_msg struct msg m;
    cleanup_buf struct buf b = {0};
    struct err e;
    assert_int_equal(msg_recv(f.files, &m, &e), 1);
    assert_int_equal(m.type, FILE_USAGE);
    msg_begin(&b, FILE_USAGE_IS);
    buf_add(&b, m.data, 4);
    fields_put_u64(&b, 1000 + 10000);
    fields_put_u64(&b, 1 << 20);
    fields_put_u64(&b, 0);
    assert_int_equal(msg_send(f.files, &b, NULL, 0, &e), 0);
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
    fake_done(&f, DONE_INTERRUPTED);
    fake_turn(&f);
    fake_keeper_answers(&f);
    fake_init_answers(&f);
    assert_true(f.done);
    assert_limit(LIMIT_KIND_CPU, 0.01, 0.01);
}

/* ---- the client ---- */

static void an_interrupt_keeps_the_session(void **state)
{
    cleanup_buf struct buf b = {0};
    struct msg barrier, none;
    struct err e;
    (void)state;

    open_with(NULL, NULL, METER_V1);
    session_interrupt(f.session); /* idle: nothing */
    assert_int_equal(next_signal(20), 0);
    fake_run(&f, "…");
    session_interrupt(f.session);
    session_interrupt(f.session);
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
    assert_int_equal(fake_keeper_next(&f, &barrier), KEEPER_STATUS);
    assert_int_equal(fake_keeper_next(&f, &none), 0);
    fake_done(&f, DONE_INTERRUPTED);
    fake_turn(&f);
    fake_init_answers(&f);
    assert_false(f.done);
    fake_died(&f, SIGKILL, false); /* whoever takes its place must not be struck either */
    fake_init_answers(&f);
    assert_false(f.done);
    msg_begin(&b, KEEPER_STATE);
    buf_add(&b, barrier.data, 4);
    for (int i = 0; i < 5; i++)
        fields_put_u32(&b, 0);
    assert_int_equal(msg_send(f.keeper, &b, NULL, 0, &e), 0);
    fake_turn(&f);
    fake_init_answers(&f);
    assert_true(f.done);
    assert_int_equal(f.cell->status, CELL_INTERRUPTED);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_NONE);
}

static void an_interrupt_goes_before_a_later_limit(void **state)
{
    (void)state;
    open_with("timeout", "0.05", METER_V1);
    fake_run(&f, "…");
    session_interrupt(f.session);
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
    fake_keeper_answers(&f);
    assert_int_equal(next_signal(150), 0);
    fake_done(&f, DONE_ERROR);
    fake_turn(&f);
    fake_init_answers(&f);
    assert_int_equal(f.cell->status, CELL_INTERRUPTED);
}

static void an_interrupt_that_is_ignored_kills(void **state)
{
    (void)state;
    open_with(NULL, NULL, METER_V1);
    fake_run(&f, "…");
    session_interrupt(f.session);
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGINT);
    assert_int_equal(next_signal(FAKE_PATIENCE_MS), SIGKILL);
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_int_equal(f.cell->status, CELL_INTERRUPTED);
    assert_true(f.cell->session_ended);
}

/* ---- memory, processes ---- */

static void out_of_memory_by_the_keepers_word(void **state)
{
    (void)state;
    open_with("memory", "64m", METER_V1);
    fake_run(&f, "…");
    fake_meter(&f, PEAK, "67108864\n");
    fake_died(&f, SIGKILL, true);
    fake_init_answers(&f);
    assert_int_equal(f.cell->status, CELL_LIMIT);
    assert_limit(LIMIT_KIND_MEMORY, 64 << 20, 64 << 20);
    assert_int_equal(f.cell->receipt.peak_memory, 64 << 20);
    assert_true(f.cell->session_ended);
}

static void out_of_memory_by_the_meter(void **state)
{
    (void)state;
    open_with(NULL, NULL, METER_V2);
    fake_run(&f, "…");
    fake_meter(&f, OOM, "low 0\nhigh 0\nmax 31\noom 1\noom_kill 1\noom_group_kill 0\n");
    fake_died(&f, SIGKILL, false);
    fake_init_answers(&f);
    assert_int_equal(f.cell->status, CELL_LIMIT);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_MEMORY);
}

/* A child was killed, the interpreter lives: the cell keeps its status and says why. */
static void a_child_out_of_memory_is_noted(void **state)
{
    (void)state;
    open_with(NULL, NULL, METER_V1);
    fake_run(&f, "…");
    fake_meter(&f, OOM, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    fake_error(&f, "CalledProcessError", "died with SIGKILL");
    fake_finish(&f, DONE_ERROR);
    assert_int_equal(f.cell->status, CELL_FAILED);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_MEMORY);
    fake_run(&f, "1");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_NONE);
}

/* Nobody of the guest's. */
static void checkpoints_that_make_room_are_not_noted(void **state)
{
    (void)state;
    open_with(NULL, NULL, METER_V1);
    fake_run(&f, "…");
    fake_meter(&f, OOM, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    f.evicted = 2;
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_NONE);
    fake_run(&f, "…");
    fake_meter(&f, OOM, "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    f.evicted = 3;
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_MEMORY);
}

static void refused_processes_are_noted(void **state)
{
    (void)state;
    open_with("pids", "10", METER_V1);
    fake_run(&f, "…");
    fake_meter(&f, PIDS, "max 5\n");
    fake_error(&f, "BlockingIOError", "[Errno 11] Resource temporarily unavailable");
    fake_finish(&f, DONE_ERROR);
    assert_int_equal(f.cell->status, CELL_FAILED);
    assert_limit(LIMIT_KIND_PIDS, 10, 10);
}

static void the_peak_is_the_cells_own(void **state)
{
    char text[16] = "";
    (void)state;

    open_with(NULL, NULL, METER_V1);
    fake_meter(&f, PEAK, "9999");
    fake_run(&f, "…");
    assert_true(pread(f.meter_files[PEAK], text, sizeof(text) - 1, 0) > 0);
    assert_int_equal(text[0], '0'); /* it was reset */
    fake_meter(&f, PEAK, "123456\n");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->receipt.peak_memory, 123456);
}

/* ---- disk ---- */

/* init answers CHANGES with one file, and SPACE as given. */
static void finish_with_space(uint64_t bytes, uint64_t files)
{
    struct err e;

    fake_done(&f, DONE_OK);
    fake_turn(&f);
    for (int i = 0; i < 2; i++) {
        cleanup_msg struct msg m;
        cleanup_buf struct buf b = {0}, end = {0};
        assert_int_equal(msg_recv(f.files, &m, &e), 1);
        msg_begin(&b, m.type == FILE_CHANGES ? FILE_CHANGE : FILE_USED);
        buf_add(&b, m.data, 4);
        if (m.type == FILE_CHANGES) {
            fields_put_u8(&b, FILE_CREATED);
            fields_put_u64(&b, 1);
            fields_put_text(&b, "");
            fields_put_text(&b, "a.bin");
            msg_begin(&end, FILE_DONE);
            buf_add(&end, m.data, 4);
            fields_put_u32(&end, 0);
            fields_put_text(&end, "");
        } else {
            assert_int_equal(m.type, FILE_SPACE);
            fields_put_u64(&b, bytes);
            fields_put_u64(&b, files);
        }
        assert_int_equal(msg_send(f.files, &b, NULL, 0, &e), 0);
        if (end.len)
            assert_int_equal(msg_send(f.files, &end, NULL, 0, &e), 0);
        fake_turn(&f);
    }
    assert_true(f.done);
}

static void a_full_workspace_is_noted(void **state)
{
    (void)state;
    open_with("disk", "1m", METER_V1);
    fake_run(&f, "…");
    finish_with_space(1 << 20, 5);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_limit(LIMIT_KIND_DISK, 1 << 20, 1 << 20);
    assert_int_equal(f.cell->n_files, 1);
    fake_run(&f, "…");
    finish_with_space(1 << 19, 5);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_NONE);
}

static void full_of_files_is_full_too(void **state)
{
    (void)state;
    open_with("files", "100", METER_V1);
    fake_run(&f, "…");
    finish_with_space(8192, 100);
    assert_limit(LIMIT_KIND_DISK, 100, 100);
}

static void no_space_in_the_error_is_believed(void **state)
{
    (void)state;
    open_with(NULL, NULL, METER_V1);
    fake_run(&f, "…");
    fake_error(&f, "OSError", "[Errno 28] No space left on device");
    fake_finish(&f, DONE_ERROR);
    assert_int_equal(f.cell->status, CELL_FAILED);
    assert_limit(LIMIT_KIND_DISK, 512 << 20, 4096);
}

/* ---- output, and which one is named ---- */

static void output_over_its_limit_is_noted(void **state)
{
    char text[1001];
    (void)state;

    open_with("output", "256", METER_V1);
    memset(text, 'x', 1000);
    text[1000] = '\0';
    fake_run(&f, "…");
    fake_print(f.out, text);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
    assert_limit(LIMIT_KIND_OUTPUT, 256, 1000);
    assert_int_equal(f.cell->truncated.stdout_bytes, 744);
    assert_int_equal(f.cell->outputs[0].len + f.cell->outputs[1].len, 256);
}

static void what_ended_it_goes_first(void **state)
{
    char text[1001];
    (void)state;

    open_with("output", "256", METER_V1);
    memset(text, 'x', 1000);
    text[1000] = '\0';
    fake_run(&f, "…");
    fake_print(f.out, text);
    fake_meter(&f, PIDS, "max 5\n");
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_PIDS);
    fake_run(&f, "…");
    fake_print(f.out, text);
    fake_meter(&f, PIDS, "max 6\n");
    fake_meter(&f, OOM, "oom_kill 1\n");
    fake_error(&f, "OSError", "[Errno 28] No space left on device");
    fake_finish(&f, DONE_ERROR);
    assert_int_equal(f.cell->limit.kind, LIMIT_KIND_MEMORY);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(wall_interrupts_and_keeps_the_session),
        test(wall_kills_what_does_not_yield),
        test(a_cells_own_timeout_counts),
        test(cpu_is_looked_at_when_it_could_be_used_up),
        test(cpu_is_asked_of_init_without_a_cgroup),
        test(an_interrupt_keeps_the_session),
        test(an_interrupt_goes_before_a_later_limit),
        test(an_interrupt_that_is_ignored_kills),
        test(out_of_memory_by_the_keepers_word),
        test(out_of_memory_by_the_meter),
        test(a_child_out_of_memory_is_noted),
        test(checkpoints_that_make_room_are_not_noted),
        test(refused_processes_are_noted),
        test(the_peak_is_the_cells_own),
        test(a_full_workspace_is_noted),
        test(full_of_files_is_full_too),
        test(no_space_in_the_error_is_believed),
        test(output_over_its_limit_is_noted),
        test(what_ended_it_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
