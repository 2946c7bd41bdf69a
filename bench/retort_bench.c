/* retort_bench: retort's side of the benchmark, from where the owner of sessions stands.
 *
 * bench/run drives it; by hand, `retort_bench fresh --pool 4 --n 200 </dev/null` works as well.
 * Every line on stdout is a JSON object. At a *hold* it prints {"hold": NAME, …} and waits for a
 * line on stdin (its end counts as one), so that bench/run can look at the processes from outside,
 * or let the other contestants have their turn. Only what lies between session_open or session_run
 * and the arrival of the cell is timed; waiting for ready boxes and for the end of used ones is
 * not.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "cli/usual.h"
#include "keeper/keeper.h"
#include "session/session.h"

#define PATIENCE_MS 60000 /* for anything that should take milliseconds */
#define WINDOW 8          /* sessions asked for at once where many are wanted */

struct options {
    unsigned pool;
    unsigned blanks;
    unsigned n;        /* samples in a round, or sessions */
    unsigned rounds;   /* batches, each after a hold */
    unsigned seconds;  /* of churn */
    unsigned inflight; /* sessions at once in churn */
    unsigned gap_ms;   /* of idleness before each sample */
    const char *preload;
};

struct bench {
    struct options o;
    struct keeper keeper;
    struct vessel *vessel;
    struct limits limits;
};

/* One session and the cell that it has to answer. */
struct shot {
    struct session *session;
    char code[512], expected[32];         /* expected "": the cell has no result */
    int64_t begun_ns, opened_ns, done_ns; /* opened: when the box stood; done: when the cell came */
    bool opened, finished, correct;
    bool failed; /* one of its answers was not correct */
    bool *bell;  /* rung when finished, for who waits for any of several */
};

static _Noreturn void die(const char *what, const struct err *e)
{
    fprintf(stderr, "retort_bench: %s%s%s\n", what, e ? ": " : "", e ? e->text : "");
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* ---- shots ---- */

static void finish(struct shot *shot, bool correct)
{
    shot->done_ns = now_ns();
    shot->correct = correct;
    shot->failed |= !correct;
    shot->finished = true;
    if (shot->bell)
        *shot->bell = true;
}

/* Counted as a wrong answer, and said. */
static void fail(struct shot *shot, const char *what, const struct err *e)
{
    fprintf(stderr, "retort_bench: %s: %s\n", what, e->text);
    finish(shot, false);
}

static void run_code(struct shot *shot)
{
    struct err e = {0};

    if (session_run(shot->session, shot->code, strlen(shot->code), 0, &e) < 0)
        fail(shot, shot->code, &e);
}

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    struct shot *shot = ctx;

    shot->session = s; /* a ready box may answer before session_open has returned */
    shot->opened_ns = now_ns();
    shot->opened = true;
    if (e)
        fail(shot, "a session did not open", e);
    else if (shot->code[0])
        run_code(shot);
}

static bool is_expected(const struct cell *c, const char *expected)
{
    if (c->status != CELL_OK || c->session_ended)
        return false;
    for (unsigned i = 0; i < c->n_outputs; i++) {
        const struct output *o = &c->outputs[i];
        for (unsigned j = 0; o->kind == OUTPUT_RESULT && j < o->n_parts; j++)
            if (strcmp(o->parts[j].type, "text/plain") == 0)
                return strcmp(o->parts[j].data, expected) == 0;
    }
    return expected[0] == '\0';
}

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    struct shot *shot = ctx;
    bool correct = is_expected(c, shot->expected);

    (void)s;
    finish(shot, correct);
    if (!correct)
        fprintf(stderr, "retort_bench: cell %s: %s %s%s\n", c->code, cell_status_name(c->status),
                c->error.value ? c->error.value : "",
                c->session_ended ? ", and the session ended" : "");
    cell_free(c);
}

/* Its next cell will be a wrong answer. */
static void on_ended(void *ctx, struct session *s)
{
    const struct shot *shot = ctx;

    (void)s;
    fprintf(stderr, "retort_bench: a session ended by itself, idle after cell %s\n", shot->code);
}

static const struct session_events events = {
    .opened = on_opened, .done = on_done, .ended = on_ended};

static void shot_aim(struct shot *shot, const char *code, const char *expected)
{
    snprintf(shot->code, sizeof(shot->code), "%s", code);
    snprintf(shot->expected, sizeof(shot->expected), "%s", expected);
    shot->finished = shot->correct = false;
}

/* A new session; with a code in it, that runs as soon as the box stands. */
static void shot_open(struct bench *b, struct shot *shot)
{
    shot->opened = false;
    shot->begun_ns = now_ns();
    shot->session = session_open(b->vessel, 0, &b->limits, &events, shot);
    if (!shot->session)
        die("session_open failed", NULL);
}

static void wait_for(struct bench *b, const bool *flag, const char *what)
{
    struct err e = {0};
    int r = vessel_wait(b->vessel, flag, PATIENCE_MS, &e);

    if (r < 0)
        die(what, &e);
    if (r == 0)
        die(what, &(struct err){.text = "nothing came within a minute"});
}

/* ---- the keeper's state ---- */

static struct vessel_state state_now(struct bench *b)
{
    struct vessel_state st;
    struct err e = {0};

    if (vessel_state(b->vessel, &st, &e) < 0)
        die("vessel_state", &e);
    return st;
}

static void rest(struct bench *b, unsigned ms)
{
    const bool never = false;
    struct err e = {0};

    if (vessel_wait(b->vessel, &never, (int)ms, &e) < 0)
        die("the keeper is gone", &e);
}

/* Until every used box is destroyed and the pool is full again. */
static void settle(struct bench *b)
{
    int64_t until = now_ns() + PATIENCE_MS * INT64_C(1000000);

    for (;;) {
        struct vessel_state st = state_now(b);
        if (st.ready >= b->o.pool && st.blank >= b->o.blanks && st.boxes == st.ready + st.blank)
            return;
        if (now_ns() > until)
            die("boxes in use did not end, or the pool did not fill, within a minute", NULL);
        rest(b, 1);
    }
}

static unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    if (!d)
        die("/proc/self/fd cannot be read", NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 3; /* ".", ".." and the directory itself */
}

static void hold(struct bench *b, const char *name)
{
    struct vessel_state st = state_now(b);
    int c;

    printf("{\"hold\": \"%s\", \"keeper\": %d, \"zygote\": %d, \"boxes\": %u, \"ready\": %u, "
           "\"descriptors\": %u}\n",
           name, (int)b->keeper.pid, st.zygote_pid, st.boxes, st.ready, descriptors());
    fflush(stdout);
    while ((c = getchar()) != '\n' && c != EOF)
        ;
}

static void print_samples(const char *name, const int64_t *ns, unsigned n)
{
    printf("\"%s\": [", name);
    for (unsigned i = 0; i < n; i++)
        printf("%s%" PRId64, i ? ", " : "", ns[i]);
    printf("]");
}

static int64_t *samples_new(unsigned n)
{
    int64_t *p = calloc(n ? n : 1, sizeof(*p));

    if (!p)
        die("out of memory", NULL);
    return p;
}

/* ---- verbs ---- */

/* New session to first result. */
static void fresh_round(struct bench *b)
{
    int64_t *opened = samples_new(b->o.n), *done = samples_new(b->o.n);
    unsigned from_pool = 0, wrong = 0;

    for (unsigned i = 0; i < b->o.n; i++) {
        struct shot shot = {0};
        settle(b);
        rest(b, b->o.gap_ms);
        shot_aim(&shot, "1+1", "2");
        shot_open(b, &shot);
        wait_for(b, &shot.finished, "a fresh session's first cell");
        opened[i] = shot.opened_ns - shot.begun_ns;
        done[i] = shot.done_ns - shot.begun_ns;
        from_pool += session_from_pool(shot.session);
        wrong += !shot.correct;
        session_close(shot.session);
    }
    settle(b);
    printf("{\"from_pool\": %u, \"wrong\": %u, ", from_pool, wrong);
    print_samples("opened_ns", opened, b->o.n);
    printf(", ");
    print_samples("ns", done, b->o.n);
    printf("}\n");
    free(opened);
    free(done);
}

static void verb_fresh(struct bench *b)
{
    for (unsigned r = 0; r < b->o.rounds; r++) {
        hold(b, "round");
        fresh_round(b);
    }
}

/* A cell in a live session. */
static void verb_cell(struct bench *b)
{
    int64_t *ns = samples_new(b->o.n);
    struct shot shot = {0};

    shot_aim(&shot, "1+1", "2");
    shot_open(b, &shot);
    wait_for(b, &shot.finished, "the first cell");
    for (unsigned r = 0; r < b->o.rounds; r++) {
        unsigned wrong = 0;
        hold(b, "round");
        for (unsigned i = 0; i < b->o.n; i++) {
            rest(b, b->o.gap_ms);
            shot_aim(&shot, "1+1", "2");
            shot.begun_ns = now_ns();
            run_code(&shot);
            wait_for(b, &shot.finished, "a cell");
            ns[i] = shot.done_ns - shot.begun_ns;
            wrong += !shot.correct;
        }
        printf("{\"wrong\": %u, ", wrong);
        print_samples("ns", ns, b->o.n);
        printf("}\n");
    }
    session_close(shot.session);
    free(ns);
}

/* Fresh boxes, used for one cell and destroyed, several at once. The clock runs until the last of
 * them is destroyed. */
static void churn(struct bench *b)
{
    struct shot *shots = calloc(b->o.inflight, sizeof(*shots));
    unsigned live = 0, made = 0, wrong = 0, from_pool = 0;
    bool bell = false;

    if (!shots)
        die("out of memory", NULL);
    settle(b);
    hold(b, "before");
    int64_t begun = now_ns(), until = begun + b->o.seconds * INT64_C(1000000000);
    do {
        bell = false;
        for (unsigned i = 0; i < b->o.inflight; i++) {
            struct shot *shot = &shots[i];
            if (shot->session && !shot->finished)
                continue;
            if (shot->session) {
                made++;
                live--;
                wrong += !shot->correct;
                from_pool += session_from_pool(shot->session);
                session_close(shot->session);
            }
            *shot = (struct shot){.bell = &bell};
            if (now_ns() >= until)
                continue;
            shot_aim(shot, "1+1", "2");
            shot_open(b, shot);
            live++;
        }
        if (live)
            wait_for(b, &bell, "a fresh session's cell");
    } while (live);
    settle(b);
    int64_t ns = now_ns() - begun;
    printf("{\"made\": %u, \"wrong\": %u, \"from_pool\": %u, \"elapsed_ns\": %" PRId64 "}\n", made,
           wrong, from_pool, ns);
    hold(b, "after");
    free(shots);
}

static void verb_churn(struct bench *b)
{
    for (unsigned r = 0; r < b->o.rounds; r++)
        churn(b);
}

/* Give a cell to each of the sessions, WINDOW at a time. */
static void ask_all(struct bench *b, struct shot *shots, bool open)
{
    for (unsigned i = 0; i < b->o.n + WINDOW; i++) {
        if (i < b->o.n && open)
            shot_open(b, &shots[i]);
        else if (i < b->o.n)
            run_code(&shots[i]);
        if (i >= WINDOW)
            wait_for(b, &shots[i - WINDOW].finished, "one of many sessions");
    }
}

/* Many sessions alive at once, each with its own value of a variable. */
static void verb_many(struct bench *b)
{
    struct shot *shots = calloc(b->o.n, sizeof(*shots));
    char code[32], expected[32];

    if (!shots)
        die("out of memory", NULL);
    settle(b);
    hold(b, "before");
    int64_t begun = now_ns();
    for (unsigned i = 0; i < b->o.n; i++) {
        snprintf(code, sizeof(code), "x = %u", i);
        shot_aim(&shots[i], code, "");
    }
    ask_all(b, shots, true);
    int64_t opened = now_ns();
    hold(b, "alive");
    int64_t asked = now_ns();
    for (unsigned i = 0; i < b->o.n; i++) {
        snprintf(expected, sizeof(expected), "%u", 2 * i);
        shot_aim(&shots[i], "x*2", expected);
    }
    ask_all(b, shots, false);
    int64_t answered = now_ns();
    unsigned wrong = 0;
    for (unsigned i = 0; i < b->o.n; i++) {
        wrong += shots[i].failed;
        session_close(shots[i].session);
    }
    settle(b);
    printf("{\"sessions\": %u, \"wrong\": %u, \"open_ns\": %" PRId64 ", \"ask_ns\": %" PRId64
           ", \"close_ns\": %" PRId64 "}\n",
           b->o.n, wrong, opened - begun, answered - asked, now_ns() - answered);
    hold(b, "after");
    free(shots);
}

/* One session after the other, held while it is idle: new, and after its first cell. */
static void verb_memory(struct bench *b)
{
    for (unsigned i = 0; i < b->o.n; i++) {
        struct shot shot = {0};
        settle(b);
        hold(b, "none");
        shot_open(b, &shot);
        wait_for(b, &shot.opened, "a session");
        hold(b, "new");
        shot_aim(&shot, "1+1", "2");
        run_code(&shot);
        wait_for(b, &shot.finished, "a cell");
        hold(b, "used");
        session_close(shot.session);
    }
    settle(b);
}

/* Every line is a session: cells with tabs between them, without results. */
static void verb_code(struct bench *b)
{
    enum { CELLS = 8 };
    cleanup_free char *line = NULL;
    size_t size = 0;

    printf("{\"hold\": \"code\"}\n");
    fflush(stdout);
    while (getline(&line, &size, stdin) > 0) {
        struct shot shot = {0};
        int64_t ns[CELLS];
        unsigned n = 0;
        shot_open(b, &shot);
        wait_for(b, &shot.opened, "a session");
        rest(b, 100); /* its first state has been kept */
        line[strcspn(line, "\n")] = '\0';
        for (char *at = line, *cell; n < CELLS && (cell = strsep(&at, "\t")); n++) {
            shot_aim(&shot, cell, "");
            int64_t begun = now_ns();
            run_code(&shot);
            wait_for(b, &shot.finished, "a cell");
            ns[n] = shot.done_ns - begun;
            rest(b, 20);
        }
        printf("{\"wrong\": %u, ", shot.failed);
        print_samples("ns", ns, n);
        printf("}\n");
        fflush(stdout);
        session_close(shot.session);
        settle(b);
    }
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
    struct options standard;
} verbs[] = {
    {"fresh", verb_fresh, {.n = 200, .rounds = 1}},
    {"cell", verb_cell, {.n = 2000, .rounds = 1}},
    {"churn", verb_churn, {.seconds = 30, .inflight = 4, .pool = 4, .rounds = 1}},
    {"many", verb_many, {.n = 500}},
    {"memory", verb_memory, {.n = 3}},
    {"code", verb_code, {0}},
};

/* ---- the command line ---- */

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: retort_bench fresh|cell [--pool N] [--n N] [--rounds N] [--gap-ms N]\n"
            "       retort_bench churn [--pool N] [--seconds N] [--inflight N] [--rounds N]\n"
            "       retort_bench many|memory [--pool N] [--n N]\n"
            "       retort_bench code\n"
            "and for all: [--preload MODULES|usual]\n");
    exit(2);
}

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {
        {"pool", 1, NULL, 'p'},   {"blanks", 1, NULL, 'b'},  {"n", 1, NULL, 'n'},
        {"rounds", 1, NULL, 'r'}, {"seconds", 1, NULL, 's'}, {"inflight", 1, NULL, 'i'},
        {"gap-ms", 1, NULL, 'g'}, {"preload", 1, NULL, 'l'}, {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        unsigned *slot = c == 'p'   ? &o->pool
                         : c == 'b' ? &o->blanks
                         : c == 'n' ? &o->n
                         : c == 'r' ? &o->rounds
                         : c == 's' ? &o->seconds
                         : c == 'i' ? &o->inflight
                         : c == 'g' ? &o->gap_ms
                                    : NULL;
        char *end;
        if (c == 'l') {
            o->preload = optarg;
            continue;
        }
        if (!slot)
            usage();
        unsigned long value = strtoul(optarg, &end, 10);
        if (end == optarg || *end || value > 1000000)
            usage();
        *slot = (unsigned)value;
    }
    if (optind != argc)
        usage();
}

/* Its owner holds a few descriptors of each session. */
static void lift_descriptor_limit(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

/* A keeper with a warm zygote that has made one box already. */
static void start(struct bench *b)
{
    static char name[] = "default", python[] = "/usr/bin/python3";
    const char *modules = b->o.preload ? b->o.preload : "numpy pandas matplotlib.pyplot";
    cleanup_free char *preload = xstrdup(strcmp(modules, "usual") == 0 ? USUAL_MODULES : modules);
    const struct environment environment = {.name = name, .python = python, .preload = preload};
    struct keeper_options o = {.environments = &environment,
                               .n_environments = 1,
                               .pool = b->o.pool,
                               .blanks = b->o.blanks};
    struct shot first = {0};
    struct err e = {0};

    limits_default(&b->limits);
    o.limits = b->limits;
    if (keeper_start(&o, &b->keeper, &e) < 0)
        die("keeper_start", &e);
    b->vessel = vessel_new(b->keeper.fd, &e);
    if (!b->vessel)
        die("vessel_new", &e);
    shot_aim(&first, "1+1", "2");
    shot_open(b, &first);
    wait_for(b, &first.finished, "the very first session");
    if (!first.correct)
        die("the very first session did not answer 2", NULL);
    session_close(first.session);
    settle(b);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    unsigned v = 0, n = sizeof(verbs) / sizeof(verbs[0]);

    while (argc > 1 && v < n && strcmp(argv[1], verbs[v].name) != 0)
        v++;
    if (argc < 2 || v == n)
        usage();
    b.o = verbs[v].standard;
    parse(argc - 1, argv + 1, &b.o);
    lift_descriptor_limit();
    start(&b);
    verbs[v].run(&b);
    settle(&b);
    vessel_free(b.vessel);
    keeper_stop(&b.keeper);
    printf("{\"end\": true, \"descriptors\": %u}\n", descriptors());
    return 0;
}
