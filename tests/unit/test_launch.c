/* What the keeper's program is told: all of it arrives, and what does not fit is refused. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "keeper/launch.h"
#include "wire/fields.h"
#include "wire/proto.h"

static char name[] = "science", python[] = "/opt/science/bin/python3", path[] = "/opt/science",
            preload[] = "numpy pandas", wheels[] = "/srv/wheels";
static struct msg m;
static struct launch got;

/* Over a real socket, with descriptors that can be told apart. */
static int send_over(const struct launch *l, struct err *e)
{
    cleanup_buf struct buf b = {0};
    int pair[2], fds[LAUNCH_FDS];
    unsigned n;

    if (launch_put(l, &b, fds, &n, e) < 0)
        return -1;
    assert_int_equal(msg_pair(pair, e), 0);
    assert_int_equal(msg_send(pair[0], &b, fds, n, e), 0);
    assert_int_equal(msg_recv(pair[1], &m, e), 1);
    close(pair[0]);
    close(pair[1]);
    int r = launch_get(&m, &got, e);
    msg_done(&m);
    return r;
}

/* The program has it as long as it runs; a test does not. */
static void forget(void)
{
    struct environment *all = (struct environment *)got.options.environments;

    for (unsigned i = 0; i < got.options.n_environments; i++) {
        free(all[i].name);
        free(all[i].python);
        free(all[i].preload);
        free(all[i].wheels);
        for (unsigned k = 0; k < ENVIRONMENT_PATHS && all[i].paths[k]; k++)
            free(all[i].paths[k]);
        all[i] = (struct environment){0};
    }
}

static ino_t which(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return st.st_ino;
}

static void all_of_it_arrives(void **unused)
{
    const struct environment environments[] = {
        {.name = name, .python = python, .paths = {path, wheels}, .preload = preload},
        {.name = path, .python = python, .preload = preload, .wheels = wheels},
    };
    struct launch l = {
        .options = {.environments = environments,
                    .n_environments = 2,
                    .boxes = 7,
                    .pool = 3,
                    .patience_ms = 99,
                    .blanks = 5,
                    .few = true,
                    .limits.memory = 123456789},
        .root = true,
        .runner = "/usr/lib/retort",
        .uid_lock = open("/dev/null", O_RDONLY | O_CLOEXEC),
        .uid_base = 1879048192u,
        .device_sets = open("/dev/zero", O_RDONLY | O_CLOEXEC),
        .cgroups = {.version = 1,
                    .n_dirs = 1,
                    .has = {0, -1, 0, -1},
                    .name = "12-ab",
                    .shared_parent = true},
    };
    struct err e = {0};
    (void)unused;

    l.cgroups.dirs[0] = open("/dev/full", O_RDONLY | O_CLOEXEC);
    l.cgroups.parents[0] = open("/dev/random", O_RDONLY | O_CLOEXEC);
    assert_int_equal(send_over(&l, &e), 0);
    const struct environment *first = &got.options.environments[0], *second = first + 1;
    assert_int_equal(got.options.n_environments, 2);
    assert_string_equal(first->name, name);
    assert_string_equal(first->python, python);
    assert_string_equal(first->preload, preload);
    assert_string_equal(first->paths[0], path);
    assert_string_equal(first->paths[1], wheels);
    assert_null(first->paths[2]);
    assert_null(first->wheels);
    assert_null(second->paths[0]);
    assert_string_equal(second->wheels, wheels);
    assert_int_equal(got.options.boxes, 7);
    assert_int_equal(got.options.pool, 3);
    assert_int_equal(got.options.patience_ms, 99);
    assert_int_equal(got.options.blanks, 5);
    assert_true(got.options.few);
    assert_int_equal(got.options.limits.memory, 123456789);
    assert_true(got.root);
    assert_string_equal(got.runner, "/usr/lib/retort");
    assert_int_equal(got.uid_base, 1879048192u);
    assert_int_equal(which(got.uid_lock), which(l.uid_lock));
    assert_int_equal(which(got.device_sets), which(l.device_sets));
    assert_int_equal(got.cgroups.version, 1);
    assert_memory_equal(got.cgroups.has, l.cgroups.has, sizeof(l.cgroups.has));
    assert_string_equal(got.cgroups.name, "12-ab");
    assert_true(got.cgroups.shared_parent);
    assert_false(got.cgroups.stepped_aside);
    assert_int_equal(which(got.cgroups.dirs[0]), which(l.cgroups.dirs[0]));
    assert_int_equal(which(got.cgroups.parents[0]), which(l.cgroups.parents[0]));
    forget();
}

/* An ordinary user's has no descriptors at all. */
static void what_is_not_there_is_not_there(void **unused)
{
    const struct environment environment = {.name = name, .python = python, .preload = preload};
    struct launch l = {.options = {.environments = &environment, .n_environments = 1},
                       .runner = "/home/user/retort",
                       .uid_lock = -1,
                       .device_sets = -1};
    struct err e = {0};
    (void)unused;

    assert_int_equal(send_over(&l, &e), 0);
    assert_int_equal(got.uid_lock, -1);
    assert_int_equal(got.device_sets, -1);
    assert_int_equal(got.cgroups.n_dirs, 0);
    forget();
}

static void what_does_not_fit_is_refused(void **unused)
{
    static struct environment many[17];
    cleanup_free char *much = xcalloc(1, 70000);
    struct launch l = {.options = {.environments = many, .n_environments = 17}};
    struct err e = {0};
    (void)unused;

    for (unsigned i = 0; i < 17; i++)
        many[i] = (struct environment){.name = name, .python = python, .preload = preload};
    assert_int_equal(send_over(&l, &e), -1);
    assert_string_equal(e.text, "there are more than 16 environments");
    memset(much, 'x', 69999);
    many[0].preload = much;
    l.options.n_environments = 1;
    assert_int_equal(send_over(&l, &e), -1);
    assert_string_equal(e.text, "there is too much in the environments' files");
}

/* Another version's program is told something else. */
static void another_version_is_refused(void **unused)
{
    struct err e = {0};
    (void)unused;

    m = (struct msg){.type = KEEPER_LAUNCH,
                     .data = "\5\0\0\0"
                             "0.0.9",
                     .len = 9};
    assert_int_equal(launch_get(&m, &got, &e), -1);
    assert_string_equal(e.text,
                        "retort-keeper and retort are not of the same version; install both again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_arrives),
        cmocka_unit_test(what_is_not_there_is_not_there),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(another_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
