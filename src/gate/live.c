/* live: sessions that are alive, from their making to their end.
 *
 *     live_new ──live_open──▶ open ──live_end──▶ ending ──cell over──▶ finish ──box gone──▶ freed
 *
 * Whoever ends a session, the way is the same: nothing new begins, what waits is refused, a running cell is
 * interrupted and keeps what it printed; then the box is destroyed, and only when the keeper says that it is
 * gone the one who asked for it is told.
 */
#include <math.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "gate/inside.h"
#include "gate/mcp/mcp.h"

#define ID_BYTES 18

static void make_id(char *ret)
{
    uint8_t random[ID_BYTES];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        bug("no random numbers");
    base64_encode_raw(ret, sizeof(random), random);
    for (char *c = ret; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
}

struct live *live_new(struct gate *g, struct holder *h, const struct limits *limits,
                      unsigned environment, const struct live *from)
{
    struct live *l = xcalloc(1, sizeof(*l));

    make_id(l->id);
    l->gate = g;
    l->holder = h;
    l->limits = *limits;
    l->environment = environment;
    l->created_ms = l->active_ms = clock_wall_ms();
    l->idle_timeout_s = INFINITY;
    l->checkpoints = g->config->checkpoints;
    l->listed = true;
    l->next = g->lives;
    g->lives = l;
    l->charge = charge_new(g, h, limits->memory, from ? from->charge : NULL);
    gate_arm(g, l->created_ms + TOKENS_MS); /* should its token be revoked */
    l->number = ++h->counters.sessions;
    return l;
}

static void unlist(struct live *l)
{
    struct gate *g = l->gate;

    if (!l->listed)
        return;
    l->listed = false;
    for (struct live **at = &g->lives; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    charge_end(l->charge);
    l->charge = NULL;
}

static void live_free(struct live *l)
{
    unlist(l);
    json_decref(l->metadata);
    free(l);
}

void live_open(struct live *l)
{
    l->session = session_open(l->gate->vessel, l->environment, &l->limits, &job_events, l);
    session_keep(l->session, l->checkpoints);
}

void live_open_branch(struct live *l, struct live *from, const struct session_departure *at)
{
    memcpy(l->parent, from->id, sizeof(l->parent));
    l->parent_n = at->n;
    l->session = session_branch(from->session, at, &l->limits, &job_events, l);
    session_keep(l->session, l->checkpoints);
}

int live_record(struct live *l, struct err *e)
{
    json_t *limits = limits_json(&l->limits);
    struct session_row row = {
        .token = l->holder->token.id,
        .environment = (char *)(uintptr_t)l->gate->environments[l->environment],
        .limits = json_text(limits),
        .metadata = json_text(l->metadata),
        .idle_timeout_s = l->idle_timeout_s,
        .created_ms = l->created_ms,
        .active_ms = l->active_ms,
        .parent_n = l->parent_n,
    };

    memcpy(row.id, l->id, sizeof(row.id));
    memcpy(row.parent, l->parent, sizeof(row.parent));
    int result = store_session_new(l->gate->store, &row, e);
    free(row.limits);
    free(row.metadata);
    json_decref(limits);
    return result;
}

void live_touch(struct live *l)
{
    l->active_ms = clock_wall_ms();
    if (isfinite(l->idle_timeout_s))
        gate_arm(l->gate, l->active_ms + (int64_t)(l->idle_timeout_s * 1000));
}

/* ---- which one ---- */

struct live *live_find(const struct request *r)
{
    for (struct live *l = r->gate->lives; l; l = l->next)
        if (l->holder == r->holder && !l->once && l->open && strcmp(l->id, r->params[0]) == 0)
            return l;
    return NULL;
}

struct live *live_asked(struct request *r)
{
    struct live *l = live_find(r);
    struct session_row row;
    struct err e = {0};

    if (l && !l->ending)
        return l;
    int found = store_session_get(r->gate->store, r->holder->token.id, r->params[0], &row, &e);
    if (found < 0) {
        reply_store_failed(r, &e);
    } else if (found == 0) {
        reply_error(r, 404, "not_found", "there is no such session");
    } else {
        const char *reason = l && l->ending ? l->ending : row.reason;
        reply_error(r, 410, "session_ended", "this session has ended (%s); make a new one", reason);
        session_row_done(&row);
    }
    return NULL;
}

/* ---- as JSON ---- */

static json_t *expiry_json(double idle_timeout_s, int64_t active_ms)
{
    return isfinite(idle_timeout_s) ? time_json(active_ms + (int64_t)(idle_timeout_s * 1000))
                                    : json_null();
}

static json_t *seconds_json(double seconds)
{
    if (!isfinite(seconds))
        return json_string("none");
    return seconds == floor(seconds) ? json_integer((json_int_t)seconds) : json_real(seconds);
}

static json_t *parent_json(const char *id, uint32_t n)
{
    return id[0] ? json_pack("{s:s,s:I}", "id", id, "n", (json_int_t)n) : json_null();
}

json_t *live_json(const struct live *l)
{
    bool busy = l->running != NULL;
    /* A busy one begins to be idle now at the earliest. */
    int64_t active = busy || l->transfers ? clock_wall_ms() : l->active_ms;

    return json_pack("{s:s,s:s,s:s,s:o,s:i,s:o,s:o,s:o,s:o,s:I,s:O,s:o}", "id", l->id, "status",
                     busy ? "busy" : "idle", "environment", l->gate->environments[l->environment],
                     "limits", limits_json(&l->limits), "checkpoints", (int)l->checkpoints,
                     "idle_timeout", seconds_json(l->idle_timeout_s), "created_at",
                     time_json(l->created_ms), "last_active_at", time_json(active), "expires_at",
                     expiry_json(l->idle_timeout_s, active), "cells", (json_int_t)l->cells,
                     "metadata", l->metadata, "parent", parent_json(l->parent, l->parent_n));
}

static json_t *loaded(const char *text)
{
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    return j ? j : json_object();
}

json_t *row_json(const struct session_row *row)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:n,s:o,s:I,s:o,s:o}", "id", row->id,
                     "status", "ended", "reason", row->reason[0] ? row->reason : "restart",
                     "environment", row->environment, "limits", loaded(row->limits), "idle_timeout",
                     seconds_json(row->idle_timeout_s), "created_at", time_json(row->created_ms),
                     "last_active_at", time_json(row->active_ms), "expires_at", "ended_at",
                     time_json(row->ended_ms), "cells", (json_int_t)row->cells, "metadata",
                     loaded(row->metadata), "parent", parent_json(row->parent, row->parent_n));
}

/* ---- the end ---- */

static void on_gone(void *ctx)
{
    struct live *l = ctx;

    if (l->deleter)
        reply_empty(l->deleter, 204);
    live_free(l);
}

static void finish(struct live *l)
{
    struct gate *g = l->gate;
    struct err e;

    if (!l->once && l->open &&
        store_session_end(g->store, l->id, l->ending, clock_wall_ms(), &e) < 0)
        log_line("store error=\"%s\"", e.text);
    unlist(l);
    if (!l->once && l->open)
        mcp_list_changed(g, l->holder, "resources"); /* its files are gone with it */
    job_free(
        l->running); /* under way when the server leaves: candidates are sessions, and counted */
    l->running = NULL;
    if (l->once) {
        g->n_runs--;
        runs_next(g);
    }
    struct session *s = l->session;
    l->session = NULL;
    if (s)
        session_close_then(s, on_gone, l);
    else
        on_gone(l);
}

void live_end(struct live *l, const char *reason)
{
    if (l->ending)
        return;
    l->ending = reason;
    jobs_refuse(l, 410, "session_ended", "the session has ended before this cell began");
    live_end_transfers(l);
    if (l->run)
        run_ended(l->run, reason);
    if (l->forking)
        forking_lost(l);
    given_stop(l);
    if (l->creator) {
        struct request *r = l->creator;
        l->creator = NULL;
        reply_error(r, 410, "session_ended", "the session was ended before its box stood");
    }
    if (l->running && l->running->trial)
        trial_stop(l->running->trial);
    else if (l->running)
        session_interrupt(l->session); /* job_events.done goes on with live_ended */
    else
        finish(l);
}

void live_ended(struct live *l)
{
    finish(l);
}

/* ---- time ---- */

int64_t lives_tick(struct gate *g, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    struct live *next;

    for (struct live *l = g->lives; l; l = next) {
        next = l->next;
        if (!l->open || l->running || l->transfers || l->ending || !isfinite(l->idle_timeout_s))
            continue;
        int64_t at = l->active_ms + (int64_t)(l->idle_timeout_s * 1000);
        if (at <= now_ms)
            live_end(l, "idle");
        else if (at < next_ms)
            next_ms = at;
    }
    return next_ms;
}

/* Each from the beginning: with one of several branches that are being made together, the others end too. */
static void end_those(struct gate *g, const struct holder *of, const char *reason)
{
    struct live *l = g->lives;

    while (l) {
        bool begins = !l->ending && (!of || l->holder == of);
        if (begins)
            live_end(l, reason);
        l = begins ? g->lives : l->next;
    }
}

void lives_end_all(struct gate *g, const char *reason)
{
    end_those(g, NULL, reason);
}

void lives_end_of(struct gate *g, const struct holder *h, const char *reason)
{
    end_those(g, h, reason);
}
