/* Retorts that start and end at the same time do not take each other's cgroups for left over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "box/cgroup.h"

#define RETORTS 6
#define TIMES 100

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

/* Whoever locks a directory has opened it before, and others may be quicker: here they often are. */
int __wrap_flock(int fd, int operation)
{
    usleep((useconds_t)(rand() % 3000));
    return __real_flock(fd, operation);
}

/* What a retort does with its ground, without the boxes' processes. */
static int live_once(void)
{
    struct cgroup_ground ground;
    struct limits limits;
    struct err e = {0};

    limits_default(&limits);
    cgroup_ground_make(geteuid(), &ground, &e);
    int version = ground.version;
    if (version != 0 && cgroup_make(&ground, 1, &limits, &e) < 0)
        version = -1;
    if (version <= 0)
        fprintf(stderr, "%s\n", e.text);
    cgroup_remove(&ground, 1, &e);
    cgroup_ground_remove(&ground);
    return version;
}

static void test_starting_together(void **unused)
{
    int status, version = live_once();
    (void)unused;

    /* An ordinary user may have none, and then nothing to lose; root's have to be there. */
    if (version == 0 && geteuid() != 0)
        return;
    assert_true(version > 0);
    for (unsigned i = 0; i < RETORTS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            unsigned wrong = 0;
            srand(i);
            for (unsigned k = 0; k < TIMES; k++)
                wrong += live_once() != version;
            _exit(wrong > 0);
        }
    }
    unsigned failed = 0;
    while (wait(&status) > 0)
        failed += status != 0;
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_starting_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
