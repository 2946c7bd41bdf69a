/* files_bench: what files cost, from where the owner of sessions stands.
 *
 *     files_bench cells    a cell `1`, and one that writes a file, with 0 to 5,000 files in the workspace
 *     files_bench put      the speed of uploads: one of 256 MB, and 1,000 small ones
 *
 * Every line is a measurement; times are medians. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/keeper.h"
#include "session/session.h"

#define ROUNDS 101
#define BIG (256u << 20)
#define SMALL 1000

static struct {
    struct keeper keeper;
    struct vessel *vessel;
    struct session *session;
    bool opened, done;
} b;

static _Noreturn void die(const char *what, const struct err *e)
{
    fprintf(stderr, "files_bench: %s%s%s\n", what, e ? ": " : "", e ? e->text : "");
    exit(1);
}

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    (void)ctx;
    (void)s;
    if (e)
        die("the session did not open", e);
    b.opened = true;
}

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    (void)ctx;
    (void)s;
    if (c->status != CELL_OK)
        die(c->error.value ? c->error.value : "a cell failed", NULL);
    cell_free(c);
    b.done = true;
}

static void await(const bool *flag)
{
    struct err e;

    if (vessel_wait(b.vessel, flag, 60000, &e) != 1)
        die("waited in vain", NULL);
}

static void start(void)
{
    static const struct session_events events = {.opened = on_opened, .done = on_done};
    const struct environment environment = {
        .name = "system", .python = "/usr/bin/python3", .preload = ""};
    struct keeper_options o = {.environments = &environment, .n_environments = 1};
    struct limits limits;
    struct err e;

    limits_default(&limits);
    limits.memory = 2ULL << 30;
    limits.disk = 1ULL << 30;
    o.limits = limits;
    if (keeper_start(&o, &b.keeper, &e) < 0)
        die("keeper_start", &e);
    b.vessel = vessel_new(b.keeper.fd, &e);
    if (!b.vessel)
        die("vessel_new", &e);
    b.session = session_open(b.vessel, 0, &limits, &events, NULL);
    await(&b.opened);
}

/* Run a cell; the time in microseconds. */
static int64_t run(const char *code)
{
    int64_t begun = clock_now_us();
    struct err e;

    b.done = false;
    if (session_run(b.session, code, strlen(code), 0, &e) < 0)
        die("session_run", &e);
    await(&b.done);
    return clock_now_us() - begun;
}

static int by_size(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, c = *(const int64_t *)y;

    return (a > c) - (a < c);
}

static void measure(const char *what, const char *code)
{
    int64_t times[ROUNDS];

    for (int i = 0; i < 3; i++)
        run(code);
    for (int i = 0; i < ROUNDS; i++)
        times[i] = run(code);
    qsort(times, ROUNDS, sizeof(times[0]), by_size);
    printf("%s: %.3f ms\n", what, (double)times[ROUNDS / 2] / 1000);
}

static void cells(void)
{
    static const int counts[] = {0, 100, 1000, 5000};
    char code[256], what[64];

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        snprintf(code, sizeof(code),
                 "import os\nfor i in range(%d):\n    os.makedirs(f'd{i // 500}', exist_ok=True)\n"
                 "    open(f'd{i // 500}/{i}', 'w').close()\nn = 0",
                 counts[i]);
        run(code);
        snprintf(what, sizeof(what), "1, with %d files", counts[i]);
        measure(what, "1");
        snprintf(what, sizeof(what), "a file written, with %d files", counts[i]);
        measure(what, "n += 1\nwith open('x', 'w') as f: f.write(str(n))");
    }
}

static void put_one(const char *name, size_t size)
{
    static char line[1 << 16];
    cleanup_fd int fd = memfd_create("source", MFD_CLOEXEC);
    struct err e;

    memset(line, 'x', sizeof(line));
    for (size_t at = 0; at < size; at += sizeof(line))
        if (fd_write_all(fd, line, size - at < sizeof(line) ? size - at : sizeof(line)) < 0)
            die("no memory", NULL);
    int64_t begun = clock_now_us();
    lseek(fd, 0, SEEK_SET);
    if (session_put(b.session, name, fd, &e) < 0)
        die("session_put", &e);
    int64_t took = clock_now_us() - begun;
    if (size == BIG)
        printf("256 MB uploaded: %.0f MB/s\n", (double)size / (double)took);
}

static void put(void)
{
    char name[32];

    for (int i = 0; i < 5; i++)
        put_one("big", BIG);
    int64_t begun = clock_now_us();
    for (int i = 0; i < SMALL; i++) {
        snprintf(name, sizeof(name), "small/%d", i);
        put_one(name, 1000);
    }
    printf("%d files of 1 kB uploaded, one after the other: %.1f us each\n", SMALL,
           (double)(clock_now_us() - begun) / SMALL);
}

int main(int argc, char **argv)
{
    start();
    if (argc > 1 && strcmp(argv[1], "put") == 0)
        put();
    else
        cells();
    session_close(b.session);
    vessel_free(b.vessel);
    keeper_stop(&b.keeper);
    return 0;
}
