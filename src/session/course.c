/* course: the course of a cell, from RUN to its receipt. inside.h draws the states.
 *
 * Whatever happens, the cell ends: each state that waits for someone has a deadline.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/inside.h"

#define CLOSED_ITS_CHANNEL "the interpreter closed its channel to retort"
#define SETTLE_MAX_US 120000000
#define ROLLBACK_MS 60000
#define THERE_MOST 4096

static void settle(struct session *s);
static void finish(struct session *s);

/* ---- limits of time ---- */

/* The earliest moment at which the CPU limit could be reached, if all its cores were busy. */
static void plan_cpu_check(struct session *s, int64_t now)
{
    s->cpu_check_us = NEVER;
    if (s->limits.cpu_ms >= LIMIT_NONE / 1000)
        return;
    uint64_t used = s->usage.cpu_us - s->course.before.cpu_us;
    uint64_t limit = s->limits.cpu_ms * 1000;
    uint64_t left = used < limit ? limit - used : 0;
    uint64_t cores_milli = s->limits.cpus_milli;
    if (cores_milli == LIMIT_NONE)
        cores_milli = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000;
    uint64_t wait = (uint64_t)((double)left * 1000 / (double)cores_milli);
    if (wait < CPU_CHECK_US)
        wait = CPU_CHECK_US;
    if (wait > INT64_MAX / 2)
        return;
    s->cpu_check_us = now + (int64_t)wait;
    vessel_arm(s->vessel, s->cpu_check_us);
}

static void judge_cpu(struct session *s, int64_t now)
{
    if (s->usage.cpu_us - s->course.before.cpu_us >= s->limits.cpu_ms * 1000)
        course_stop(s, STOP_CPU);
    else
        plan_cpu_check(s, now);
}

static void check_cpu(struct session *s, int64_t now)
{
    s->cpu_check_us = NEVER;
    if (s->state != RUNNING)
        return;
    if (s->meter.kind == METER_NONE) {
        if (!s->usage_req)
            s->usage_req = files_ask(s, FILE_USAGE); /* course_usage goes on */
        if (!s->usage_req)
            plan_cpu_check(s, now); /* it could not be asked now */
        return;
    }
    meter_read_cpu(&s->meter, &s->usage);
    judge_cpu(s, now);
}

void course_usage(struct session *s, const struct meter_reading *r)
{
    bool first = !s->usage_known;

    s->usage_known = true;
    /* A box must not turn its clock back: the counters only grow. */
    if (r->cpu_us > s->usage.cpu_us)
        s->usage.cpu_us = r->cpu_us;
    if (r->pids_refused > s->usage.pids_refused)
        s->usage.pids_refused = r->pids_refused;
    s->usage.peak = r->peak;
    if (first && s->state == RUNNING)
        s->course.before = s->usage; /* what making the box took is not this cell's */
    if (s->state == RUNNING && s->cpu_check_us == NEVER && s->limits.cpu_ms != LIMIT_NONE)
        judge_cpu(s, clock_now_us());
    else if (s->state == SETTLING)
        course_answer(s, AWAIT_USAGE);
}

/* ---- the way through ---- */

void course_begin(struct session *s, uint64_t timeout_ms)
{
    int64_t now = clock_now_us();

    s->course =
        (struct course){.started_us = now, .timeout_ms = timeout_ms, .restore_to = POINT_NEWEST};
    meter_begin(&s->meter);
    meter_read_cpu(&s->meter, &s->usage);
    s->course.before = s->usage;
    s->state = RUNNING;
    uint64_t longest = (uint64_t)(INT64_MAX / 4000); /* ms */
    session_deadline(s, timeout_ms < longest ? now + (int64_t)timeout_ms * 1000 : NEVER);
    plan_cpu_check(s, now);
}

/* The keeper answers in order. With its answer the signal has been sent: a cell that ends by itself
 * meanwhile waits for it, or the next one would be struck, or another interpreter. */
static void strike(struct session *s, int signal)
{
    link_signal(s, signal);
    s->course.barrier_req = vessel_req(s->vessel);
    link_status(s->vessel, s->course.barrier_req);
}

void course_stop(struct session *s, enum stop_reason why)
{
    if (s->state != RUNNING)
        return;
    s->course.why = why;
    s->state = STOPPING;
    s->cpu_check_us = NEVER;
    strike(s, SIGINT);
    session_deadline(s, clock_now_us() + INSIST_US);
}

static void kill_it(struct session *s)
{
    s->course.killed = true;
    s->broken = true;
    s->state = DYING;
    s->cpu_check_us = NEVER;
    strike(s, SIGKILL);
    session_deadline(s, clock_now_us() + DYING_US);
}

/* ---- going back ---- */

void course_rollback(struct session *s, uint32_t n)
{
    course_begin(s, ROLLBACK_MS);
    s->course.restore_to = n;
    s->course.points_req = files_ask(s, FILE_STATES);
    if (!s->course.points_req)
        kill_it(s); /* init is mute: it cannot be restored, nor used */
}

static void note_reach(struct course *k, uint32_t from, uint32_t to)
{
    k->reachable |= from <= k->restore_to && k->restore_to <= to;
    if (from < to)
        buf_add_fmt(&k->there, "%s%u to %u", k->there.len ? ", " : "", from, to);
    else
        buf_add_fmt(&k->there, "%s%u", k->there.len ? ", " : "", from);
}

void course_point(struct session *s, const struct session_point *p)
{
    struct course *k = &s->course;

    if (k->there.len > THERE_MOST)
        return; /* no sound init has so many */
    if (p->undone_to) {
        note_reach(k, p->n, p->undone_from - 1);
        note_reach(k, p->undone_to + 1, p->up_to);
    } else {
        note_reach(k, p->n, p->up_to);
    }
}

void course_points_told(struct session *s)
{
    struct course *k = &s->course;
    char sentence[512];

    k->points_req = 0;
    if (s->state != RUNNING)
        return;
    if (k->reachable) {
        kill_it(s);
        return;
    }
    snprintf(sentence, sizeof(sentence), "the state after cell %u is not kept; there are: %.400s",
             k->restore_to, k->there.len ? buf_text(&k->there) : "none");
    cell_set_fault(s->cell, NO_POINT, sentence);
    course_done(s, DONE_ERROR, 0);
}

/* No cell will follow. What init may still be asked for stays open. */
static void end(struct session *s)
{
    s->state = ENDED;
    s->cpu_check_us = NEVER;
    session_deadline(s, NEVER);
    source_close(s->vessel, &s->sources[FROM_STREAM]);
    source_close(s->vessel, &s->sources[TO_STREAM]);
    source_close(s->vessel, &s->sources[FROM_STDOUT]);
    source_close(s->vessel, &s->sources[FROM_STDERR]);
    buf_done(&s->unsent);
    frame_reader_done(&s->reader);
    meter_done(&s->meter);
    checks_lost(s);
}

/* A dead one's channel is closed before its death is told. */
static void fall_silent(struct session *s)
{
    s->state = SILENT;
    s->cpu_check_us = NEVER;
    session_deadline(s, clock_now_us() + SILENT_US);
}

/* The interpreter is gone, or will be, while no cell runs. */
static void end_idle(struct session *s)
{
    if (!s->died)
        link_signal(s, SIGKILL);
    end(s);
    if (!s->closed && s->events.ended)
        s->events.ended(s->ctx, s);
}

/* The same, but another takes its place if one can. */
static void revive(struct session *s)
{
    if (!revive_can(s)) {
        end_idle(s);
        return;
    }
    channel_drain(s); /* what it has written belongs to the next cell */
    if (s->closed)
        return;
    session_set_aside(s);
    course_begin(s, ROLLBACK_MS);
    s->course.reviving = s->revived = true;
    if (s->died)
        settle(s);
    else
        fall_silent(s);
}

void course_fault(struct session *s, const char *sentence)
{
    bool settling = s->state == SETTLING;

    /* A dead one's last words may be cut off: how it died says more. */
    if (s->state == ENDED || s->died)
        return;
    s->broken = true;
    if (!s->cell) {
        end_idle(s);
        return;
    }
    if (s->course.restored) { /* how the one before it ended is what is to be told of this cell */
        source_close(s->vessel, &s->sources[FROM_STREAM]);
        return;
    }
    s->course.fault = sentence;
    source_close(s->vessel, &s->sources[FROM_STREAM]);
    if (settling) {
        s->course.killed = true; /* and the answers that it waits for still come */
        strike(s, SIGKILL);
    } else {
        kill_it(s);
    }
}

void course_silent(struct session *s)
{
    s->broken = true;
    if (s->state == IDLE) {
        revive(s);
    } else if (s->state == RUNNING || s->state == STOPPING) {
        fall_silent(s);
    } else if (s->state == SETTLING && !s->died && !s->course.restored) {
        strike(s, SIGKILL); /* its cell is done; what it was before may still take its place */
        s->course.awaited |= AWAIT_BARRIER | AWAIT_DEATH;
    }
}

/* ---- the end of a cell ---- */

static int64_t settle_time(const struct session *s)
{
    uint64_t bytes = s->limits.disk < s->limits.memory ? s->limits.disk : s->limits.memory;
    uint64_t us = SETTLE_US + bytes / SETTLE_BYTES * 1000000;

    return us < SETTLE_MAX_US ? (int64_t)us : SETTLE_MAX_US;
}

/* Nothing that is seen, and nothing that init would have to be asked about: how full it was. */
static bool left_no_files(const struct session *s)
{
    return s->course.done && !s->died && !verdict_no_space(s->cell) &&
           workspace_still_empty(&s->workspace);
}

/* What it did to the files; where it is no cell, the next one tells that. False: init is mute. */
static bool ask_changes(struct session *s)
{
    struct course *k = &s->course;

    if (s->cell->n == 0 || left_no_files(s))
        return true;
    workspace_asked(&s->workspace);
    k->changes_req = files_ask(s, FILE_CHANGES);
    k->awaited |= k->changes_req ? AWAIT_CHANGES : 0;
    return k->changes_req != 0;
}

static void ask_usage(struct session *s)
{
    if (s->meter.kind != METER_NONE)
        return;
    if (!s->usage_req)
        s->usage_req = files_ask(s, FILE_USAGE);
    s->course.awaited |= s->usage_req ? AWAIT_USAGE : 0;
}

/* Somebody was ended for want of memory: was it one of init's? */
static void ask_evicted(struct session *s)
{
    struct course *k = &s->course;

    if (s->usage.oom_kills == k->before.oom_kills)
        return;
    k->evicted_req = files_ask(s, FILE_EVICTIONS);
    k->awaited |= k->evicted_req ? AWAIT_EVICTED : 0;
}

/* Behind the changes: what is dead has made them all; and behind the signals that were meant for it. */
static void ask_restore(struct session *s)
{
    struct course *k = &s->course;

    if (!s->died || k->restore_req || k->barrier_req)
        return;
    k->restore_req = files_ask_restore(s, k->restore_to);
    k->awaited |= k->restore_req ? AWAIT_RESTORE : 0;
}

/* The code has come to its end, one way or another: measure it, and ask what it did to the files.
 */
static void settle(struct session *s)
{
    struct course *k = &s->course;

    k->ended_us = clock_now_us();
    s->state = SETTLING;
    s->cpu_check_us = NEVER;
    bool heard = ask_changes(s); /* init looks while we read the meter */
    meter_read(&s->meter, &s->usage);
    if (heard) {
        ask_usage(s);
        ask_evicted(s);
        ask_restore(s);
    } else {
        s->broken = true;
    }
    if (k->barrier_req)
        k->awaited |= AWAIT_BARRIER;
    session_deadline(s, k->ended_us + settle_time(s));
    if (!k->awaited)
        finish(s);
}

void course_done(struct session *s, unsigned status, uint32_t exit_code)
{
    s->course.done = true;
    s->course.done_status = status;
    s->course.exit_code = exit_code;
    if (!s->died) /* else course_died goes on when it has read everything */
        settle(s);
}

void course_answer(struct session *s, unsigned what)
{
    struct course *k = &s->course;

    if (s->state != SETTLING || !(k->awaited & what))
        return;
    k->awaited &= ~what;
    /* A full workspace matters only to a cell that wrote to it, or was told so. */
    if (what == AWAIT_CHANGES && (s->cell->n_files > 0 || verdict_no_space(s->cell))) {
        k->space_req = files_ask(s, FILE_SPACE);
        k->awaited |= k->space_req ? AWAIT_SPACE : 0;
    }
    if (what == AWAIT_BARRIER)
        ask_restore(s);
    if (!k->awaited)
        finish(s);
}

void course_evicted(struct session *s, uint32_t n)
{
    if (n > s->evicted)
        s->course.evicted = n - s->evicted;
    s->evicted = n;
    s->course.evicted_req = 0;
    course_answer(s, AWAIT_EVICTED);
}

void course_restored(struct session *s, uint32_t n, const char *missing, struct msg *m)
{
    struct course *k = &s->course;

    for (unsigned i = 0; i < FROM_FILES; i++)
        source_close(s->vessel, &s->sources[i]);
    buf_done(&s->unsent);
    s->unsent_at = 0;
    s->fences_waiting = 0;
    s->ready = 0;
    s->paused = false;
    frame_reader_done(&s->reader);
    checks_lost(s);
    if (s->closed)
        return;
    if (session_take_sources(s, m, FROM_FILES) == 0) {
        k->restored = true;
        k->restored_to = n;
        buf_add_text(&k->missing, missing);
        s->died = s->broken = false;    /* but for what may still come of it */
        workspace_fills(&s->workspace); /* with what it had then */
    }
    course_answer(s, AWAIT_RESTORE);
}

void course_init_gone(struct session *s)
{
    s->broken = true;
    if (s->state == SETTLING)
        finish(s);
}

void course_died(struct session *s, int wait_status, bool memory_short)
{
    if (s->died || s->state == ENDED)
        return;
    s->died = true;
    s->broken = true;
    if (s->course.restored && s->cell)
        return; /* the next one too: this cell is told how the first ended */
    s->wait_status = wait_status;
    s->memory_short = memory_short;
    if (s->state == IDLE) {
        revive(s);
        return;
    }
    if (s->state == SETTLING) {
        ask_restore(s);
        course_answer(s, AWAIT_DEATH);
        return;
    }
    channel_drain_all(s);
    if (!s->closed)
        settle(s);
}

void course_lost(struct session *s, const char *sentence)
{
    struct err e;

    if (s->state == OPENING) {
        vessel_gone_err(s->vessel, &e);
        session_failed(s, e.text);
    } else if (s->cell) {
        s->broken = true;
        if (s->state != SETTLING)
            channel_drain_all(s);
        if (s->closed || !s->cell)
            return; /* its last words were that it is done */
        if (s->state != SETTLING) {
            s->course.fault = sentence;
            s->course.ended_us = clock_now_us();
            meter_read(&s->meter, &s->usage);
        }
        finish(s);
    } else if (s->state == IDLE) {
        end_idle(s);
    }
}

/* With the next cell. */
static void tell_missing(struct session *s)
{
    cleanup_buf struct buf text = {0};

    if (s->course.missing.len == 0)
        return;
    buf_add_text(&text, "retort: changed since, and not brought back: ");
    for (const char *c = buf_text(&s->course.missing); *c; c++)
        buf_add_fmt(&text, *c == '\n' ? ", " : "%c", *c);
    buf_add_text(&text, "\n");
    output_text(&s->out, OUTPUT_STDERR, text.data, text.len);
}

static void finish(struct session *s)
{
    struct cell *c = s->cell;

    s->course.written = output_written(&s->out);
    output_finish(&s->out, c); /* tells the tail */
    session_collect(s);
    if (s->course.reviving)
        verdict_say_death(s, c);
    else
        verdict_reach(s, c);
    if (s->course.restored) {
        c->restored = !s->broken;
        c->restored_to = s->course.restored_to;
        s->memory_short = s->course.killed = false; /* that was the one before it */
        s->state_n = c->restored_to;
    } else if (c->n > 0) {
        s->state_n = c->n;
    }
    if (c->n == 0) {
        /* What came before it, from threads of earlier cells, belongs to the next cell still. */
        output_done(&s->out);
        s->out = s->aside;
        s->aside = (struct collector){0};
    }
    tell_missing(s);
    buf_done(&s->course.missing);
    buf_done(&s->course.there);
    s->cell = NULL;
    s->state = IDLE;
    session_deadline(s, NEVER);
    if (s->broken) {
        if (!s->died && !s->course.killed && !s->closed)
            link_signal(s, SIGKILL);
        end(s);
    }
    if (s->course.reviving) {
        revive_finish(s, c);
        return;
    }
    s->revived = s->revived && c->n == 0;
    c->session_ended = s->broken;
    if (!s->closed && s->events.done)
        s->events.done(s->ctx, s, c);
    else
        cell_free(c);
}

void course_timer(struct session *s, int64_t now_us)
{
    if (s->cpu_check_us <= now_us)
        check_cpu(s, now_us);
    if (s->deadline_us > now_us)
        return;
    session_deadline(s, NEVER);
    switch (s->state) {
    case RUNNING:
        course_stop(s, STOP_WALL);
        break;
    case SILENT:
        s->course.fault = CLOSED_ITS_CHANNEL;
        kill_it(s);
        break;
    case STOPPING:
        if (!s->course.insisted) {
            s->course.insisted = true;
            strike(s, SIGINT);
            session_deadline(s, now_us + GRACE_US - INSIST_US);
        } else {
            kill_it(s);
        }
        break;
    case DYING: /* the keeper cannot tell: the box is beyond us, and so is this cell */
        channel_drain(s);
        s->course.barrier_req = 0;
        settle(s);
        break;
    case SETTLING:
        s->broken = s->broken || (s->course.awaited & ~(unsigned)AWAIT_BARRIER);
        finish(s);
        break;
    case OPENING:
    case IDLE:
    case ENDED:
        break;
    }
}
