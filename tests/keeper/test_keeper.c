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
#include "keeper/keeper.h"
#include "session/session.h"

#define PATIENCE_MS 240000 /* an emulated machine is slow */
#define STUCK_MS 5000
#define ENVIRONMENTS 2
#define POOL 2   /* ready boxes of each */
#define BLANKS 1 /* and blank ones */
#define MANY 1000
#define AT_ONCE 6
#define CROWD 60
#define ASKED_MAX 8 /* as in keeper/making.c */

struct guest {
    struct session *session;
    bool opened, done, ended, failed;
    char answer[1024]; /* the text of the last result, or of what went wrong */
};

static struct keeper keeper;
static struct vessel *vessel;
static struct limits limits;

/* ---- guests ---- */

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    struct guest *g = ctx;

    g->session = s;
    g->opened = true;
    g->failed = e != NULL;
    if (e)
        snprintf(g->answer, sizeof(g->answer), "%s", e->text);
}

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    struct guest *g = ctx;
    (void)s;

    snprintf(g->answer, sizeof(g->answer), "%s %s", cell_status_name(c->status),
             c->error.value ? c->error.value : "");
    for (unsigned i = 0; i < c->n_outputs; i++)
        for (unsigned j = 0; j < c->outputs[i].n_parts; j++)
            if (strcmp(c->outputs[i].parts[j].type, "text/plain") == 0 ||
                strcmp(c->outputs[i].parts[j].type, VARIABLES_TYPE) == 0)
                snprintf(g->answer, sizeof(g->answer), "%s", c->outputs[i].parts[j].data);
    g->done = true;
    cell_free(c);
}

static void on_ended(void *ctx, struct session *s)
{
    (void)s;
    ((struct guest *)ctx)->ended = true;
}

static const struct session_events events = {
    .opened = on_opened, .done = on_done, .ended = on_ended};

static void wait_until(const bool *flag, const char *what)
{
    struct err e = {0};

    int r = vessel_wait(vessel, flag, PATIENCE_MS, &e);
    if (r < 0)
        fail_msg("%s: %s", what, e.text);
    if (r == 0)
        fail_msg("%s: nothing came in time", what);
}

static void rest(int ms)
{
    const bool never = false;
    struct err e = {0};

    if (vessel_wait(vessel, &never, ms, &e) < 0)
        fail_msg("the keeper is gone: %s", e.text);
}

static void invite_to(struct guest *g, uint32_t environment)
{
    *g = (struct guest){0};
    g->session = session_open(vessel, environment, &limits, &events, g);
    assert_non_null(g->session);
}

static void invite(struct guest *g)
{
    invite_to(g, 0);
}

static void welcome(struct guest *g)
{
    wait_until(&g->opened, "a session");
    if (g->failed)
        fail_msg("a session did not open: %s", g->answer);
}

static void ask(struct guest *g, const char *code)
{
    struct err e = {0};

    g->done = false;
    if (session_run(g->session, code, strlen(code), 0, &e) < 0)
        fail_msg("%s: %s", code, e.text);
}

static const char *answer(struct guest *g, const char *code)
{
    ask(g, code);
    wait_until(&g->done, code);
    return g->answer;
}

static const char *variables(struct guest *g, uint64_t timeout_ms)
{
    struct err e = {0};

    g->done = false;
    if (session_variables(g->session, timeout_ms, &e) < 0)
        fail_msg("the variables: %s", e.text);
    wait_until(&g->done, "the variables");
    return g->answer;
}

static void dismiss(struct guest *g)
{
    session_close(g->session);
}

/* ---- the keeper's state ---- */

static struct vessel_state state_now(void)
{
    struct vessel_state st;
    struct err e = {0};

    if (vessel_state(vessel, &st, &e) < 0)
        fail_msg("vessel_state: %s", e.text);
    return st;
}

static unsigned ushers(void);

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

/* What /proc tells of one: its parent, and its number with the keeper. */
struct process {
    pid_t parent, inner;
    bool boxed; /* it has a number in a box too */
};

static struct process process_of(pid_t pid)
{
    struct process p = {0};
    char path[64], line[256];

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        int in_box;
        sscanf(line, "PPid: %d", &p.parent);
        p.boxed = sscanf(line, "NSpid: %*d %d %d", &p.inner, &in_box) == 2 || p.boxed;
    }
    if (f)
        fclose(f);
    return p;
}

/* The host's number of the process that has this number with the keeper. */
static pid_t outside(pid_t inner)
{
    DIR *d = opendir("/proc");
    pid_t found = 0;

    for (struct dirent *entry; d && (entry = readdir(d));) {
        pid_t pid = atoi(entry->d_name);
        struct process p = pid > 0 ? process_of(pid) : (struct process){0};
        if (p.inner == inner && p.parent == keeper.pid)
            found = pid;
    }
    closedir(d);
    return found;
}

/* Children of zygotes, who are the keeper's: in no box's pid namespace. */
static unsigned signal_ushers(int signal)
{
    DIR *d = opendir("/proc");
    unsigned n = 0;

    for (struct dirent *entry; d && (entry = readdir(d));) {
        pid_t pid = atoi(entry->d_name);
        struct process p = pid > 0 ? process_of(pid) : (struct process){0};
        if (p.inner > 0 && !p.boxed && p.parent > 0 && p.parent != keeper.pid &&
            process_of(p.parent).parent == keeper.pid) {
            n++;
            if (signal)
                kill(pid, signal);
        }
    }
    closedir(d);
    return n;
}

static unsigned ushers(void)
{
    return signal_ushers(0);
}

static void signal_zygote(int signal)
{
    pid_t pid = outside(state_now().zygote_pid);

    assert_true(pid > 0);
    kill(pid, signal);
}

static int close_house(void **unused)
{
    (void)unused;
    vessel_free(vessel);
    keeper_stop(&keeper);
    return 0;
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

/* Until another keeper, below, has so many blank boxes, and an usher in each; false: it does not come to that. */
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

/* With another keeper, which has no stock but blank boxes. What `check` returns is what went wrong. */
static void with_blanks(unsigned blanks, const char *fault,
                        const char *(*check)(const char *fault, unsigned blanks))
{
    static char python[] = "/usr/bin/python3", plain[] = "plain", none[] = "";
    static const struct environment environment = {
        .name = plain, .python = python, .preload = none};
    struct keeper_options o = {
        .environments = &environment, .n_environments = 1, .blanks = blanks, .limits = limits};
    struct keeper usual = keeper;
    struct vessel *usual_vessel = vessel;
    struct err e = {0};

    setenv("RETORT_FAULT", fault, 1);
    if (keeper_start(&o, &keeper, &e) < 0 || !(vessel = vessel_new(keeper.fd, &e)))
        fail_msg("the keeper: %s", e.text);
    unsetenv("RETORT_FAULT");
    const char *wrong = check(fault, blanks);
    close_house(NULL);
    keeper = usual;
    vessel = usual_vessel;
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

/* The keeper's children that are a box's first process. */
static void kill_inits(void)
{
    DIR *d = opendir("/proc");

    for (struct dirent *entry; d && (entry = readdir(d));) {
        char path[300], line[256], name[32] = "";
        pid_t pid = atoi(entry->d_name);
        int parent = 0;
        snprintf(path, sizeof(path), "/proc/%.20s/status", entry->d_name);
        FILE *f = pid > 0 ? fopen(path, "re") : NULL;
        while (f && fgets(line, sizeof(line), f))
            if (sscanf(line, "Name: %31s", name) != 1)
                sscanf(line, "PPid: %d", &parent);
        if (f)
            fclose(f);
        if (parent == keeper.pid && strcmp(name, "init") == 0)
            kill(pid, SIGKILL);
    }
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
    struct err e = {0};
    (void)unused;

    limits_default(&limits);
    o.limits = limits;
    if (keeper_start(&o, &keeper, &e) < 0 || !(vessel = vessel_new(keeper.fd, &e)))
        fail_msg("the keeper: %s", e.text);
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
        cmocka_unit_test(test_steps_that_fail_in_a_blank_box),
        cmocka_unit_test(test_blank_boxes_that_lose_their_ushers),
        cmocka_unit_test(test_boxes_that_lose_their_init),
        cmocka_unit_test(test_a_stuck_zygote_is_replaced),
        cmocka_unit_test(test_more_at_once_than_are_asked_for),
        cmocka_unit_test(test_thousands_leave_nothing),
    };
    return cmocka_run_group_tests(tests, open_house, close_house);
}
