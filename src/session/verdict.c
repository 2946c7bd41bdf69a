/* verdict: what to call the end of a cell, and which limit had a part in it.
 *
 * One limit is named. What ended the cell goes before what it merely met:
 *
 *     wall, cpu, memory (killed)  >  memory (a child was killed)  >  disk  >  pids  >  output
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "session/inside.h"

#define PAGE 4096

static double limit_number(uint64_t value)
{
    return value == LIMIT_NONE ? (double)INFINITY : (double)value;
}

static void name_limit(struct cell *c, enum limit_kind kind, double limit, double used)
{
    if (c->limit.kind != LIMIT_KIND_NONE)
        return;
    c->limit.kind = kind;
    c->limit.limit = limit;
    c->limit.used = used;
}

bool verdict_no_space(const struct cell *c)
{
    static const char *const signs[] = {"[Errno 28]", "[Errno 122]", "No space left on device",
                                        "Disk quota exceeded"};

    for (size_t i = 0; c->error.value && i < sizeof(signs) / sizeof(signs[0]); i++)
        if (strstr(c->error.value, signs[i]))
            return true;
    return false;
}

/* ---- how it ended ---- */

static void name_memory(const struct session *s, struct cell *c)
{
    double limit = limit_number(s->limits.memory);
    double used = s->usage.peak ? (double)s->usage.peak : limit;

    name_limit(c, LIMIT_KIND_MEMORY, limit, used);
}

static void name_time(const struct session *s, struct cell *c)
{
    const struct course *k = &s->course;

    if (k->why == STOP_WALL)
        name_limit(c, LIMIT_KIND_WALL, (double)k->timeout_ms / 1e3, c->receipt.wall_ms / 1e3);
    else
        name_limit(c, LIMIT_KIND_CPU, (double)s->limits.cpu_ms / 1e3, c->receipt.cpu_ms / 1e3);
}

/* By the meter, which knows since when, or by init's word where there is no meter. */
static bool was_short(const struct session *s)
{
    return s->memory_short || s->usage.oom_kills - s->course.before.oom_kills > s->course.evicted;
}

void verdict_say_death(const struct session *s, struct cell *c)
{
    char sentence[256];
    int w = s->wait_status;
    bool died = s->died || s->course.restored;

    if (s->course.fault)
        snprintf(sentence, sizeof(sentence), "%s", s->course.fault);
    else if (was_short(s))
        snprintf(sentence, sizeof(sentence), "the interpreter was killed for want of memory");
    else if (died && WIFSIGNALED(w))
        snprintf(sentence, sizeof(sentence), "the interpreter was killed by signal %d (%s)",
                 WTERMSIG(w), strsignal(WTERMSIG(w)));
    else if (died && WIFEXITED(w))
        snprintf(sentence, sizeof(sentence), "the interpreter left with status %d (os._exit)",
                 WEXITSTATUS(w));
    else
        snprintf(sentence, sizeof(sentence), "the interpreter is gone");
    cell_set_fault(c, "Crashed", sentence);
}

static void judge_death(const struct session *s, struct cell *c)
{
    const struct course *k = &s->course;
    bool oom = was_short(s);

    if ((s->died || k->restored) && !k->killed && !k->fault) {
        c->left = WIFEXITED(s->wait_status);
        c->exit_code = WIFEXITED(s->wait_status)     ? WEXITSTATUS(s->wait_status)
                       : WIFSIGNALED(s->wait_status) ? 128 + WTERMSIG(s->wait_status)
                                                     : 0;
    }
    /* Killed for having closed its channel: that was the first thing that its death closed. */
    if (oom && (!k->killed || k->fault)) {
        c->status = CELL_LIMIT;
        name_memory(s, c);
    } else if (k->fault || k->why == STOP_NONE) {
        c->status = CELL_CRASHED;
        verdict_say_death(s, c);
    } else if (k->why == STOP_CLIENT) {
        c->status = CELL_INTERRUPTED;
    } else {
        c->status = CELL_LIMIT;
        name_time(s, c);
    }
}

static void judge_exit(const struct session *s, struct cell *c)
{
    char value[16];

    c->left = true;
    c->exit_code = (int)s->course.exit_code;
    if (c->exit_code == 0)
        return;
    c->status = CELL_FAILED;
    snprintf(value, sizeof(value), "%d", c->exit_code);
    if (!c->error.name)
        cell_set_fault(c, "SystemExit", value);
}

static void judge_done(const struct session *s, struct cell *c)
{
    const struct course *k = &s->course;

    c->status = c->error.name ? CELL_FAILED : CELL_OK;
    if (k->done_status == DONE_EXIT)
        judge_exit(s, c);
    if (k->done_status == DONE_INTERRUPTED || k->why == STOP_CLIENT) {
        c->status = CELL_INTERRUPTED;
    } else if (k->done_status == DONE_ERROR && !c->error.name) {
        c->status = CELL_FAILED;
        cell_set_fault(c, "Error", "the interpreter did not say what went wrong");
    }
    if (k->why == STOP_WALL || k->why == STOP_CPU) {
        c->status = CELL_LIMIT;
        name_time(s, c);
    }
}

/* ---- what it met ---- */

static void judge_space(const struct session *s, struct cell *c)
{
    const struct course *k = &s->course;
    const struct limits *l = &s->limits;
    bool bytes_full = k->space_known && l->disk != LIMIT_NONE && k->used_bytes + PAGE > l->disk;
    bool files_full = k->space_known && l->files != LIMIT_NONE && k->used_files >= l->files;

    if (files_full && !bytes_full)
        name_limit(c, LIMIT_KIND_DISK, (double)l->files, (double)k->used_files);
    else if (bytes_full || verdict_no_space(c))
        name_limit(c, LIMIT_KIND_DISK, limit_number(l->disk), (double)k->used_bytes);
}

static void judge_meetings(const struct session *s, struct cell *c)
{
    const struct course *k = &s->course;

    if (was_short(s))
        name_memory(s, c);
    judge_space(s, c);
    if (s->usage.pids_refused > k->before.pids_refused)
        name_limit(c, LIMIT_KIND_PIDS, limit_number(s->limits.pids), limit_number(s->limits.pids));
    if (c->truncated.stdout_bytes + c->truncated.stderr_bytes > 0)
        name_limit(c, LIMIT_KIND_OUTPUT, (double)s->out.limit, (double)k->written);
}

void verdict_reach(struct session *s, struct cell *c)
{
    const struct course *k = &s->course;

    c->receipt.wall_ms = (double)(k->ended_us - k->started_us) / 1e3;
    c->receipt.cpu_ms = (double)(s->usage.cpu_us - k->before.cpu_us) / 1e3;
    c->receipt.peak_memory = s->usage.peak;
    if (k->done && !k->fault)
        judge_done(s, c);
    else
        judge_death(s, c);
    judge_meetings(s, c);
}
