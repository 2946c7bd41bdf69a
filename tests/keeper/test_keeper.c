/* A real keeper with several sessions at once: what the command line, which has one, cannot show.
 * Runs as root and as an ordinary user. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "guests.h"

#define STUCK_MS 5000
#define ENVIRONMENTS 2
#define POOL 2   /* ready boxes of each */
#define BLANKS 1 /* and blank ones */
#define MANY 1000
#define AT_ONCE 6
#define CROWD 60

static const char *variables(struct guest *g, uint64_t timeout_ms)
{
    struct err e = {0};

    g->done = false;
    if (session_variables(g->session, timeout_ms, &e) < 0)
        fail_msg("the variables: %s", e.text);
    wait_until(&g->done, "the variables");
    return g->answer;
}

/* Until nothing but the full stock is there. */
static void settle(void)
{
    int64_t until = clock_now_ms() + PATIENCE_MS;

    for (;;) {
        struct vessel_state st = state_now();
        if (st.ready == ENVIRONMENTS * POOL && st.blank == ENVIRONMENTS * BLANKS &&
            st.boxes == st.ready + st.blank && ushers() == st.blank)
            return;
        if (clock_now_ms() > until)
            fail_msg("the stock is not full: %u boxes, %u ready, %u blank with %u ushers", st.boxes,
                     st.ready, st.blank, ushers());
        rest(2);
    }
}

static int count(const char *directory)
{
    DIR *d = opendir(directory);
    int n = 0;

    if (!d)
        return -1; /* an ordinary user may not look there */
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int keepers_descriptors(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)keeper.pid);
    return count(path);
}

/* ---- tests ---- */

static void test_two_at_once_know_nothing_of_each_other(void **unused)
{
    struct guest a, b;
    (void)unused;

    invite(&a);
    invite(&b);
    welcome(&a);
    welcome(&b);
    answer(&a, "import os\n"
               "x = 'a'\n"
               "for d in ('/mnt/data', '/tmp', '/dev/shm', '/home/user'):\n"
               "    open(d + '/mine', 'w').write('a')");
    assert_string_equal(answer(&b, "'x' in globals()"), "False");
    assert_string_equal(answer(&b, "import os\n"
                                   "[d for d in ('/mnt/data', '/tmp', '/dev/shm', '/home/user')\n"
                                   " if os.path.exists(d + '/mine')]"),
                        "[]");
    answer(&b, "x = 'b'");
    assert_string_equal(answer(&a, "x"), "'a'");
    assert_string_equal(answer(&b, "x"), "'b'");
    char mine[1024];
    snprintf(mine, sizeof(mine), "%s", answer(&a, "os.urandom(4), __import__('random').random()"));
    assert_string_not_equal(answer(&b, "os.urandom(4), __import__('random').random()"), mine);
    /* The end of one is not the other's. */
    dismiss(&a);
    assert_string_equal(answer(&b, "x"), "'b'");
    dismiss(&b);
    settle();
}

static void test_ready_ones_first_then_forks(void **unused)
{
    struct guest guests[POOL + BLANKS + 2];
    unsigned from_pool = 0;
    (void)unused;

    settle();
    for (unsigned i = 0; i < POOL + BLANKS + 2; i++)
        invite(&guests[i]);
    for (unsigned i = 0; i < POOL + BLANKS + 2; i++) {
        welcome(&guests[i]);
        from_pool += session_from_pool(guests[i].session);
        assert_string_equal(answer(&guests[i], "1+1"), "2");
    }
    assert_int_equal(from_pool, POOL);
    for (unsigned i = 0; i < POOL + BLANKS + 2; i++)
        dismiss(&guests[i]);
    settle();
}

/* From the pool, by an usher, or from nothing: a guest cannot tell. */
static void test_however_they_come_they_are_alike(void **unused)
{
    static const char what[] =
        "import hashlib, os, re, resource\n"
        "def text(name):\n"
        "    return open('/proc/self/' + name).read()\n"
        "def limit(what):\n"
        "    return [n >> 24 if n > 1 << 28 else n for n in resource.getrlimit(what)]\n"
        "kept = 'Umask|[UG]id|Groups|Threads|Sig|Cap|NoNewPrivs|Seccomp|NSp|NSs|PPid'\n"
        "alike = [line for line in text('status').splitlines() if re.match(kept, line)]\n"
        "alike += [limit(getattr(resource, name)) for name in dir(resource) if 'RLIMIT_' in name]\n"
        "alike += [(os.get_inheritable(fd), os.fstat(fd).st_mode) for fd in range(6)]\n"
        "alike += [len(os.listdir('/proc/self/fd')), os.stat('/proc/self/maps').st_uid]\n"
        "alike += [text('cgroup'), text('oom_score_adj'), os.getcwd(), os.getsid(0) == "
        "os.getpid()]\n"
        "alike += [os.sched_getscheduler(0), os.getpriority(0, 0), sorted(os.environ.items())]\n"
        "f'{len(alike)} alike ' + hashlib.sha256(repr(alike).encode()).hexdigest()";
    struct guest guests[POOL + BLANKS + 2];
    char first[1024];
    (void)unused;

    settle();
    for (unsigned i = 0; i < POOL + BLANKS + 2; i++)
        invite(&guests[i]);
    for (unsigned i = 0; i < POOL + BLANKS + 2; i++) {
        welcome(&guests[i]);
        answer(&guests[i], what);
        if (i == 0)
            strcpy(first, guests[i].answer);
        assert_non_null(strstr(first, " alike "));
        assert_string_equal(guests[i].answer, first);
    }
    for (unsigned i = 0; i < POOL + BLANKS + 2; i++)
        dismiss(&guests[i]);
    settle();
}

static void test_other_limits_are_not_served_from_stock_that_cannot(void **unused)
{
    struct limits standard = limits;
    struct guest g;
    (void)unused;

    settle();
    limits.disk = 8 << 20; /* a mount's size cannot be changed from outside */
    invite(&g);
    welcome(&g);
    assert_false(session_from_pool(g.session));
    assert_string_equal(
        answer(&g, "import os; s = os.statvfs('/mnt/data'); s.f_blocks * s.f_frsize"), "8388608");
    dismiss(&g);
    limits = standard;
    settle();
}

static void test_killed_zygote_is_replaced(void **unused)
{
    struct guest old, young[3];
    unsigned before = state_now().zygotes_started;
    (void)unused;

    settle();
    invite(&old);
    welcome(&old);
    answer(&old, "x = 41");
    signal_zygote(SIGKILL);
    for (unsigned i = 0; i < 3; i++)
        invite(&young[i]);
    for (unsigned i = 0; i < 3; i++) {
        welcome(&young[i]);
        assert_string_equal(answer(&young[i], "1+1"), "2");
        dismiss(&young[i]);
    }
    assert_string_equal(answer(&old, "x + 1"), "42");
    dismiss(&old);
    settle();
    assert_true(state_now().zygotes_started > before);
}

/* SLOW=10 is an emulated machine: a tenth of the rounds, at least one. */
static unsigned rounds(unsigned n)
{
    const char *slow = getenv("SLOW");
    unsigned times = slow ? (unsigned)strtoul(slow, NULL, 10) : 1;

    return times > 1 ? (n + times - 1) / times : n;
}

static void test_zygotes_killed_in_the_act(void **unused)
{
    struct guest guests[AT_ONCE];
    (void)unused;

    for (unsigned round = 0; round < rounds(6); round++) {
        for (unsigned i = 0; i < AT_ONCE; i++)
            invite(&guests[i]);
        usleep(round * 1500);
        signal_zygote(SIGKILL);
        for (unsigned i = 0; i < AT_ONCE; i++) {
            welcome(&guests[i]);
            assert_string_equal(answer(&guests[i], "1+1"), "2");
            dismiss(&guests[i]);
        }
    }
    settle();
}

static void kill_inits(void)
{
    struct process p;
    DIR *d = opendir("/proc");

    for (pid_t pid; (pid = next_process(d, &p)) > 0;)
        if (p.parent == keeper.pid && strcmp(p.name, "init") == 0)
            kill(pid, SIGKILL);
    closedir(d);
}

/* In stock, and while boxes are made: those of the stock are replaced, who asked is told or served. */
static void test_boxes_that_lose_their_init(void **unused)
{
    struct guest guests[AT_ONCE];
    (void)unused;

    if (getenv("SLOW"))
        return; /* nothing in it depends on the kernel */
    settle();
    kill_inits();
    settle();
    for (unsigned round = 0; round < rounds(6); round++) {
        for (unsigned i = 0; i < AT_ONCE; i++)
            invite(&guests[i]);
        usleep(round * 1500);
        kill_inits();
        for (unsigned i = 0; i < AT_ONCE; i++) {
            wait_until(&guests[i].opened, "a session, or that there is none");
            dismiss(&guests[i]);
        }
    }
    settle();
    invite(&guests[0]);
    welcome(&guests[0]);
    assert_string_equal(answer(&guests[0], "1+1"), "2");
    dismiss(&guests[0]);
    settle();
}

static void test_a_stuck_zygote_is_replaced(void **unused)
{
    struct guest guests[AT_ONCE];
    unsigned before = state_now().zygotes_started;
    (void)unused;

    if (getenv("SLOW"))
        return; /* what is stuck and what is slow would take long to tell apart */
    settle();
    signal_zygote(SIGSTOP);
    for (unsigned i = 0; i < AT_ONCE; i++)
        invite(&guests[i]);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        welcome(&guests[i]);
        assert_string_equal(answer(&guests[i], "1+1"), "2");
        dismiss(&guests[i]);
    }
    settle();
    assert_true(state_now().zygotes_started > before);
}

static bool runs(const char *marker)
{
    DIR *d = opendir("/proc");
    bool found = false;

    for (struct dirent *entry; d && (entry = readdir(d));) {
        char path[300], line[4096];
        snprintf(path, sizeof(path), "/proc/%.20s/cmdline", entry->d_name);
        FILE *f = atoi(entry->d_name) > 0 ? fopen(path, "re") : NULL;
        size_t n = f ? fread(line, 1, sizeof(line), f) : 0;
        found = found || (n > 0 && memmem(line, n, marker, strlen(marker)));
        if (f)
            fclose(f);
    }
    closedir(d);
    return found;
}

static void test_what_a_cell_started_goes_with_its_interpreter(void **unused)
{
    struct guest g;
    (void)unused;

    invite(&g);
    welcome(&g);
    answer(&g, "import subprocess\n"
               "for _ in range(3):\n"
               "    subprocess.Popen(['sleep', '86399.25'], start_new_session=True)");
    assert_true(runs("86399.25"));
    answer(&g, "import os; os._exit(1)");
    /* The session is not closed yet: its files can still be had. */
    int64_t until = clock_now_ms() + PATIENCE_MS;
    while (runs("86399.25") && clock_now_ms() < until)
        rest(20);
    assert_false(runs("86399.25"));
    dismiss(&g);
    settle();
}

static void test_variables_are_told_and_are_no_cell(void **unused)
{
    struct guest g;
    (void)unused;

    invite(&g);
    welcome(&g);
    assert_string_equal(variables(&g, 0), "[]");
    answer(&g, "x = [1, 2]\nclass E:\n    def __repr__(self):\n        while True: pass\ne = E()");
    assert_string_equal(variables(&g, 300), "limit ");
    answer(&g, "del e, E");
    assert_string_equal(variables(&g, 0), "[{\"name\":\"x\",\"type\":\"list\",\"length\":2,"
                                          "\"size\":72,\"text\":\"[1, 2]\"}]");
    assert_string_equal(answer(&g, "get_ipython().execution_count"), "3");
    dismiss(&g);
    settle();
}

static void test_environments_are_apart(void **unused)
{
    struct guest plain, other;
    (void)unused;

    invite_to(&plain, 0);
    invite_to(&other, 1);
    welcome(&plain);
    welcome(&other);
    assert_string_equal(answer(&plain, "import sys; 'wave' in sys.modules"), "False");
    assert_string_equal(answer(&other, "import sys; 'wave' in sys.modules"), "True");
    dismiss(&plain);
    dismiss(&other);
    settle();
}

static void test_more_at_once_than_are_asked_for(void **unused)
{
    struct guest guests[CROWD];
    (void)unused;

    for (unsigned i = 0; i < CROWD; i++)
        invite_to(&guests[i], i % ENVIRONMENTS);
    for (unsigned i = 0; i < CROWD; i++)
        welcome(&guests[i]);
    for (unsigned i = 0; i < CROWD; i++) {
        char code[32], expected[16];
        snprintf(code, sizeof(code), "x = %u; x", i);
        snprintf(expected, sizeof(expected), "%u", i);
        assert_string_equal(answer(&guests[i], code), expected);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        char expected[16];
        snprintf(expected, sizeof(expected), "%u", i);
        assert_string_equal(answer(&guests[i], "x"), expected);
        dismiss(&guests[i]);
    }
    settle();
}

static void test_thousands_leave_nothing(void **unused)
{
    struct guest guests[AT_ONCE];
    (void)unused;

    settle();
    int ours = count("/proc/self/fd"), theirs = keepers_descriptors();
    for (unsigned made = 0; made < rounds(MANY); made += AT_ONCE) {
        for (unsigned i = 0; i < AT_ONCE; i++)
            invite(&guests[i]);
        for (unsigned i = 0; i < AT_ONCE; i++) {
            welcome(&guests[i]);
            ask(&guests[i], "1+1");
        }
        for (unsigned i = 0; i < AT_ONCE; i++) {
            wait_until(&guests[i].done, "1+1");
            assert_string_equal(guests[i].answer, "2");
            dismiss(&guests[i]);
        }
    }
    settle();
    assert_int_equal(count("/proc/self/fd"), ours);
    assert_int_equal(keepers_descriptors(), theirs);
}

/* ---- the house ---- */

static int open_house(void **unused)
{
    static char python[] = "/usr/bin/python3", plain[] = "plain", none[] = "";
    static char other[] = "other", some[] = "wave";
    static const struct environment environments[ENVIRONMENTS] = {
        {.name = plain, .python = python, .preload = none},
        {.name = other, .python = python, .preload = some},
    };
    struct keeper_options o = {.environments = environments,
                               .n_environments = ENVIRONMENTS,
                               .pool = POOL,
                               .patience_ms = getenv("SLOW") ? 0 : STUCK_MS,
                               .blanks = BLANKS};
    (void)unused;

    limits_default(&limits);
    o.limits = limits;
    guests_open(&o);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_at_once_know_nothing_of_each_other),
        cmocka_unit_test(test_ready_ones_first_then_forks),
        cmocka_unit_test(test_however_they_come_they_are_alike),
        cmocka_unit_test(test_other_limits_are_not_served_from_stock_that_cannot),
        cmocka_unit_test(test_environments_are_apart),
        cmocka_unit_test(test_variables_are_told_and_are_no_cell),
        cmocka_unit_test(test_what_a_cell_started_goes_with_its_interpreter),
        cmocka_unit_test(test_killed_zygote_is_replaced),
        cmocka_unit_test(test_zygotes_killed_in_the_act),
        cmocka_unit_test(test_boxes_that_lose_their_init),
        cmocka_unit_test(test_a_stuck_zygote_is_replaced),
        cmocka_unit_test(test_more_at_once_than_are_asked_for),
        cmocka_unit_test(test_thousands_leave_nothing),
    };
    return cmocka_run_group_tests(tests, open_house, guests_close);
}
