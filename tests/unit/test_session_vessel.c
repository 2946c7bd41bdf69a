/* The vessel: many sessions on one loop, and a keeper that is slow. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fake.h"
#include "wire/fields.h"

static struct fake f;

static int teardown(void **state)
{
    (void)state;
    fake_stop(&f);
    return 0;
}

/* A box that prints without end, and another whose cell is done in the meantime. */
static void a_flood_does_not_starve_the_others(void **state)
{
    static char chunk[64 << 10];
    struct fake second;
    struct err e;
    int turns = 0;
    (void)state;

    fake_open(&f);
    fake_join(&second, &f, NULL, METER_V1);
    fake_run(&f, "flood");
    fake_run(&second, "1");
    fd_set_nonblock(f.out);
    fake_done(&second, DONE_OK);
    while (!second.done && turns++ < 10) {
        while (write(f.out, chunk, sizeof(chunk)) > 0)
            ;
        assert_int_equal(vessel_dispatch(f.vessel, &e), 0);
        struct pollfd p = {.fd = second.files, .events = POLLIN};
        if (poll(&p, 1, 0) > 0)
            fake_init_answers(&second);
    }
    assert_true(second.done);
    assert_true(turns <= 3);
    assert_false(f.done);
    fake_part(&second);
}

/* Run out of descriptors, until it is called again with the number that it gave. */
static rlim_t descriptors(rlim_t number)
{
    struct rlimit l;
    int next = dup(STDERR_FILENO);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
    rlim_t before = l.rlim_cur;
    l.rlim_cur = number ? number : (rlim_t)next;
    close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
    return before;
}

static void one_box_that_finds_no_descriptors(void **state)
{
    cleanup_buf struct buf b = {0};
    cleanup_msg struct msg m;
    int fds[5 + METER_FDS];
    struct fake second;
    struct fields asked;
    struct err e;
    (void)state;

    fake_start(&f, NULL);
    assert_int_equal(fake_keeper_next(&f, &m), KEEPER_CREATE);
    fields_init(&asked, m.data, m.len);
    msg_begin(&b, KEEPER_CREATED);
    fields_put_u32(&b, fields_get_u32(&asked));
    fields_put_u32(&b, f.box);
    for (unsigned i = 0; i < 5 + METER_FDS; i++)
        fds[i] = STDERR_FILENO;
    assert_int_equal(msg_send(f.keeper, &b, fds, 5 + METER_FDS, &e), 0);
    rlim_t before = descriptors(0);
    fake_turn(&f);
    descriptors(before);
    assert_true(f.failed);
    assert_non_null(strstr(f.open_error, "descriptors"));
    assert_true(fake_keeper_hears(&f, KEEPER_DESTROY, 0));
    fake_join(&second, &f, NULL, METER_NONE); /* the vessel goes on */
    fake_part(&second);
}

/* What one box does is told about it alone. */
static void a_crash_is_its_own(void **state)
{
    struct fake second;
    (void)state;

    fake_open(&f);
    fake_join(&second, &f, NULL, METER_V1);
    fake_run(&f, "1");
    fake_run(&second, "os.abort()");
    fake_died(&second, 6, false);
    fake_init_answers(&second);
    assert_true(second.done);
    assert_int_equal(second.cell->status, CELL_CRASHED);
    assert_false(f.done);
    fake_finish(&f, DONE_OK);
    assert_int_equal(f.cell->status, CELL_OK);
    fake_part(&second);
}

/* The interpreter is not to see its channel's end and begin to go by itself, while the keeper ends all of it. */
static void its_channel_is_there_until_the_box_is_gone(void **state)
{
    cleanup_buf struct buf gone = {0};
    static struct msg in;
    struct pollfd orders;
    struct fake second;
    struct err e;
    (void)state;

    fake_open(&f);
    fake_join(&second, &f, NULL, METER_NONE);
    fake_keeper_rests(&f);
    orders = (struct pollfd){.fd = second.orders, .events = POLLIN};
    session_close(second.session);
    assert_int_equal(fake_keeper_next(&f, &in), KEEPER_DESTROY);
    assert_int_equal(poll(&orders, 1, 0), 0);
    msg_begin(&gone, KEEPER_DESTROYED);
    fields_put_u32(&gone, second.box);
    assert_int_equal(msg_send(f.keeper, &gone, NULL, 0, &e), 0);
    fake_turn(&f);
    assert_int_equal(poll(&orders, 1, 0), 1);
    assert_true(orders.revents & POLLHUP);
    second.session = NULL;
    fake_part(&second);
}

/* A keeper that does not read for a while: requests wait, in order, and nothing blocks. */
static void a_slow_keeper_gets_everything(void **state)
{
    enum { MANY = 3000 };
    struct session *sessions[MANY];
    struct limits l;
    const struct session_events none = {0};
    unsigned creates = 0;
    struct msg m;
    (void)state;

    fake_open(&f);
    limits_default(&l);
    for (int i = 0; i < MANY; i++)
        sessions[i] = session_open(f.vessel, 0, &l, &none, NULL);
    uint32_t last = 0;
    for (int i = 0; i < MANY * 2 && creates < MANY; i++) {
        while (fake_keeper_next(&f, &m) == KEEPER_CREATE) {
            struct fields fields;
            fields_init(&fields, m.data, m.len);
            uint32_t req = fields_get_u32(&fields);
            assert_true(req > last);
            last = req;
            creates++;
        }
        fake_turn(&f);
    }
    assert_int_equal(creates, MANY);
    for (int i = 0; i < MANY; i++)
        session_close(sessions[i]);
}

static void no_descriptor_is_left(void **state)
{
    (void)state;
    fake_open(&f);
    fake_stop(&f);
    int before = dup(STDIN_FILENO);
    close(before);
    for (int i = 0; i < 100; i++) {
        fake_open(&f);
        fake_run(&f, "1");
        fake_finish(&f, DONE_OK);
        fake_stop(&f);
    }
    int after = dup(STDIN_FILENO);
    close(after);
    assert_int_equal(before, after);
    fake_open(&f);
}

static void nothing_to_do_is_quiet(void **state)
{
    (void)state;
    fake_open(&f);
    struct pollfd p = {.fd = vessel_fd(f.vessel), .events = POLLIN};
    fake_run(&f, "1");
    assert_int_equal(poll(&p, 1, 0), 0);
    fake_finish(&f, DONE_OK);
    assert_int_equal(poll(&p, 1, 0), 0);
    fake_died(&f, 9, false);
    fd_close(&f.stream);
    fd_close(&f.out);
    fd_close(&f.err);
    fd_close(&f.files);
    fake_turn(&f);
    assert_int_equal(poll(&p, 1, 0), 0); /* an ended session does not keep the loop awake */
}

#define test(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_flood_does_not_starve_the_others),
        test(one_box_that_finds_no_descriptors),
        test(its_channel_is_there_until_the_box_is_gone),
        test(a_crash_is_its_own),
        test(a_slow_keeper_gets_everything),
        test(no_descriptor_is_left),
        test(nothing_to_do_is_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
