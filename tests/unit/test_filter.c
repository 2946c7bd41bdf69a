/* What the programs of the filter refuse, one on top of the other: before a box is sealed as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/filter.h"

static struct filter filter;

static int compile(void **state)
{
    struct err e;
    (void)state;

    return filter_compile(true, &filter, &e);
}

static int forget(void **state)
{
    (void)state;
    filter_done(&filter);
    return 0;
}

/* Is a call with nonsense for arguments refused to a zygote that serves? */
static bool is_refused(long call)
{
    struct err e;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_load_first(&filter, &e) < 0 ||
            filter_load_guest(&filter, &e) < 0)
            _exit(2);
        _exit(syscall(call, -1, NULL, 0, 0, 0) < 0 && errno == EPERM);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

static void a_zygote_that_serves_gets_no_ring(void **state)
{
    (void)state;
    assert_true(is_refused(SYS_io_uring_setup));
    assert_true(is_refused(SYS_io_uring_enter));
    assert_true(is_refused(SYS_io_uring_register));
    assert_false(is_refused(SYS_close));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zygote_that_serves_gets_no_ring),
    };
    return cmocka_run_group_tests(tests, compile, forget);
}
