/* Blank boxes, and those that wait in them: what fails there, and who is lost. Runs as root and as an ordinary user. */
#include <errno.h>
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
#include "guests.h"

#define ASKED_MAX 8 /* as in keeper/making.c */

/* Until the keeper has so many blank boxes, and an usher in each; false: it does not come to that. */
static bool await_blanks(unsigned n)
{
    int64_t until = clock_now_ms() + PATIENCE_MS;

    while (state_now().blank != n || ushers() != n) {
        if (clock_now_ms() > until)
            return false;
        rest(1);
    }
    return true;
}

/* With a keeper that has no stock but blank boxes. What `check` returns is what went wrong. */
static void with_blanks(unsigned blanks, const char *fault,
                        const char *(*check)(const char *fault, unsigned blanks))
{
    static char python[] = "/usr/bin/python3", plain[] = "plain", none[] = "";
    static const struct environment environment = {
        .name = plain, .python = python, .preload = none};
    limits_default(&limits);
    struct keeper_options o = {
        .environments = &environment, .n_environments = 1, .blanks = blanks, .limits = limits};

    setenv("RETORT_FAULT", fault, 1);
    guests_open(&o);
    unsetenv("RETORT_FAULT");
    const char *wrong = check(fault, blanks);
    guests_close(NULL);
    if (wrong)
        fail_msg("%s %s", fault, wrong);
}

/* Three sessions, one after the other. */
static const char *fail_at(const char *step, unsigned blanks)
{
    const char *wrong = NULL;
    struct guest g;

    for (unsigned i = 0; i < 3 && !wrong; i++) {
        await_blanks(blanks);
        invite(&g);
        wait_until(&g.opened, step);
        wrong = g.failed && strstr(g.answer, step) ? NULL : "is not what fails";
        dismiss(&g);
    }
    return await_blanks(blanks) ? wrong : "leaves ushers behind";
}

/* No blank box comes to stand. */
static const char *fail_before(const char *step, unsigned blanks)
{
    (void)blanks;
    return fail_at(step, 0);
}

/* What seals a kernel process seals an usher; the fork's own steps come after. */
static void test_steps_that_fail_in_a_blank_box(void **unused)
{
    (void)unused;

    with_blanks(1, "box-attach-kernel", fail_before);
    with_blanks(1, "kernel-join", fail_before);
    with_blanks(1, "kernel-capabilities", fail_before);
    with_blanks(1, "kernel-filter", fail_before);
    with_blanks(1, "kernel-process-group", fail_at);
    with_blanks(1, "kernel-dumpable", fail_at);
}

/* All are wanted at once, more than a zygote is asked for at a time, and then it is gone. */
static const char *lose_zygote(const char *no_fault, unsigned blanks)
{
    struct guest *guests = calloc(blanks, sizeof(*guests));
    const char *wrong = NULL;
    (void)no_fault;

    if (!await_blanks(blanks))
        return "the stock is not full";
    signal_zygote(SIGSTOP);
    for (unsigned i = 0; i < blanks; i++)
        invite(&guests[i]);
    rest(20);
    signal_zygote(SIGKILL);
    for (unsigned i = 0; i < blanks; i++) {
        wait_until(&guests[i].opened, "a session");
        wrong = guests[i].failed ? "a session failed" : wrong;
        dismiss(&guests[i]);
    }
    free(guests);
    return await_blanks(blanks) ? wrong : "ushers of a dead zygote remain";
}

static const char *lose_ushers(const char *no_fault, unsigned blanks)
{
    struct guest g;
    (void)no_fault;

    for (unsigned i = 0; i < 3; i++) {
        await_blanks(blanks);
        signal_ushers(SIGKILL);
        rest((int)i * 10);
        invite(&g);
        wait_until(&g.opened, "a session");
        dismiss(&g);
        if (g.failed)
            return "a session failed";
    }
    return await_blanks(blanks) ? NULL : "the dead were not replaced";
}

static void test_blank_boxes_that_lose_their_ushers(void **unused)
{
    (void)unused;

    with_blanks(ASKED_MAX + 4, "", lose_zygote);
    with_blanks(2, "", lose_ushers);
}

/* The zygote is stopped while it waits for an usher that forks: nobody has the box before it has reaped that one. */
static const char *stop_zygote(const char *no_fault, unsigned blanks)
{
    const char *wrong = NULL;
    struct guest g;
    (void)no_fault;

    for (unsigned i = 0; i < 72 && !wrong; i++) {
        if (!await_blanks(blanks))
            return "the stock is not full";
        pid_t usher = one_usher();
        invite(&g);
        usleep(i % 24 * 50);
        signal_zygote(SIGSTOP);
        for (unsigned ms = 0; ms < 30 && !g.opened; ms++)
            rest(1);
        if (g.opened && (kill(usher, 0) == 0 || errno == EPERM))
            wrong = "a session opened beside its usher";
        signal_zygote(SIGCONT);
        wait_until(&g.opened, "a session");
        dismiss(&g);
    }
    return wrong;
}

static void test_no_session_beside_an_usher(void **unused)
{
    (void)unused;

    if (getenv("SLOW"))
        return; /* its moments are those of a machine that is not emulated */
    with_blanks(1, "", stop_zygote);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_that_fail_in_a_blank_box),
        cmocka_unit_test(test_blank_boxes_that_lose_their_ushers),
        cmocka_unit_test(test_no_session_beside_an_usher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
