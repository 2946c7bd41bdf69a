/* guests: see guests.h. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guests.h"

struct keeper keeper;
struct vessel *vessel;
struct limits limits;

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

void wait_until(const bool *flag, const char *what)
{
    struct err e = {0};

    int r = vessel_wait(vessel, flag, PATIENCE_MS, &e);
    if (r < 0)
        fail_msg("%s: %s", what, e.text);
    if (r == 0)
        fail_msg("%s: nothing came in time", what);
}

void rest(int ms)
{
    const bool never = false;
    struct err e = {0};

    if (vessel_wait(vessel, &never, ms, &e) < 0)
        fail_msg("the keeper is gone: %s", e.text);
}

void invite_to(struct guest *g, uint32_t environment)
{
    *g = (struct guest){0};
    g->session = session_open(vessel, environment, &limits, &events, g);
    assert_non_null(g->session);
}

void invite(struct guest *g)
{
    invite_to(g, 0);
}

void welcome(struct guest *g)
{
    wait_until(&g->opened, "a session");
    if (g->failed)
        fail_msg("a session did not open: %s", g->answer);
}

void ask(struct guest *g, const char *code)
{
    struct err e = {0};

    g->done = false;
    if (session_run(g->session, code, strlen(code), 0, &e) < 0)
        fail_msg("%s: %s", code, e.text);
}

const char *answer(struct guest *g, const char *code)
{
    ask(g, code);
    wait_until(&g->done, code);
    return g->answer;
}

void dismiss(struct guest *g)
{
    session_close(g->session);
}

/* ---- the keeper's state ---- */

struct vessel_state state_now(void)
{
    struct vessel_state st;
    struct err e = {0};

    if (vessel_state(vessel, &st, &e) < 0)
        fail_msg("vessel_state: %s", e.text);
    return st;
}

/* ---- processes ---- */

pid_t next_process(DIR *d, struct process *ret)
{
    struct dirent *entry;
    pid_t pid = 0;
    char path[64], line[256];

    while (pid <= 0 && d && (entry = readdir(d)))
        pid = atoi(entry->d_name);
    *ret = (struct process){0};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = pid > 0 ? fopen(path, "re") : NULL;
    while (f && fgets(line, sizeof(line), f)) {
        int in_box;
        sscanf(line, "Name: %31s", ret->name);
        sscanf(line, "PPid: %d", &ret->parent);
        ret->boxed = sscanf(line, "NSpid: %*d %d %d", &ret->inner, &in_box) == 2 || ret->boxed;
    }
    if (f)
        fclose(f);
    return pid;
}

static bool is_zygote(pid_t wanted)
{
    struct process p;
    bool found = false;
    DIR *d = opendir("/proc");

    for (pid_t pid; (pid = next_process(d, &p)) > 0;)
        found = found || (pid == wanted && p.parent == keeper.pid);
    closedir(d);
    return found;
}

static unsigned find_ushers(int signal, pid_t *ret_last)
{
    struct process p;
    unsigned n = 0;
    DIR *d = opendir("/proc");

    for (pid_t pid; (pid = next_process(d, &p)) > 0;)
        if (p.inner > 0 && !p.boxed && p.parent != keeper.pid && is_zygote(p.parent)) {
            n++;
            *ret_last = pid;
            kill(pid, signal); /* 0: nothing */
        }
    closedir(d);
    return n;
}

void signal_ushers(int signal)
{
    pid_t ignored;
    find_ushers(signal, &ignored);
}

unsigned ushers(void)
{
    pid_t ignored;
    return find_ushers(0, &ignored);
}

pid_t one_usher(void)
{
    pid_t last = 0;

    find_ushers(0, &last);
    assert_true(last > 0);
    return last;
}

void signal_zygote(int signal)
{
    pid_t inner = state_now().zygote_pid, found = 0;
    struct process p;
    DIR *d = opendir("/proc");

    for (pid_t pid; (pid = next_process(d, &p)) > 0;)
        if (p.inner == inner && p.parent == keeper.pid)
            found = pid;
    closedir(d);
    assert_true(found > 0);
    kill(found, signal);
}

/* ---- the house ---- */

void guests_open(const struct keeper_options *o)
{
    struct err e = {0};

    if (keeper_start(o, &keeper, &e) < 0 || !(vessel = vessel_new(keeper.fd, &e)))
        fail_msg("the keeper: %s", e.text);
}

int guests_close(void **unused)
{
    (void)unused;
    vessel_free(vessel);
    keeper_stop(&keeper);
    return 0;
}
