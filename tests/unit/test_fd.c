/* Descriptors are put at their places whatever numbers they have: one's goal may be another's place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static ino_t inode(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return st.st_ino;
}

static void places_may_overlap(void **state)
{
    enum { FIRST = 40 };
    int pipes[2][2];
    (void)state;

    assert_int_equal(pipe(pipes[0]), 0);
    assert_int_equal(pipe(pipes[1]), 0);
    ino_t one = inode(pipes[0][0]), two = inode(pipes[1][0]);
    assert_int_equal(dup2(pipes[1][0], FIRST), FIRST); /* lies where the first one is to go */
    assert_int_equal(dup2(pipes[0][0], FIRST + 1), FIRST + 1);
    assert_int_equal(dup2(pipes[0][1], FIRST + 2), FIRST + 2); /* belongs to nobody */
    const int from[] = {FIRST + 1, FIRST, -1};
    assert_int_equal(fd_place(from, 3, FIRST, 1), 0);
    assert_int_equal(inode(FIRST), one);
    assert_int_equal(inode(FIRST + 1), two);
    assert_int_equal(fcntl(FIRST, F_GETFD), 0);
    assert_int_equal(fcntl(FIRST + 1, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(FIRST + 2, F_GETFD), -1);
    close_range(3, ~0U, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_may_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
