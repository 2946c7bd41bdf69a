/* calls_fork: sessions that split, and candidates that are tried in branches of one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gate/calls.h"
#include "session/cell_json.h"
#include "wire/proto.h"

#define BRANCHES_MAX 64
#define CANDIDATES_MAX 32

static bool is_not_kept(const char *why)
{
    return strcmp(why, LENT_NOT_KEPT) == 0;
}

static void reply_no_branch(struct request *r, uint32_t n, const char *why)
{
    if (is_not_kept(why))
        reply_error(r, 409, "no_checkpoint",
                    "the state after cell %u is not kept; GET …/checkpoints tells which are", n);
    else
        reply_later(r, 503, 5, "no_box", "no box could be made: %s", why);
}

/* ---- fork ---- */

/* Branches that are being made together: all of them stand, or none. */
struct forking {
    struct request *request;
    struct live *lives[BRANCHES_MAX];
    unsigned n, waiting;
    uint32_t at;
    char why[512]; /* "": none has failed */
};

static void forking_free(struct forking *f)
{
    for (unsigned i = 0; i < f->n; i++)
        if (f->lives[i])
            f->lives[i]->forking = NULL;
    free(f);
}

static void end_all(struct forking *f, const char *reason)
{
    for (unsigned i = 0; i < f->n; i++) {
        struct live *l = f->lives[i];
        f->lives[i] = NULL;
        if (!l)
            continue;
        l->forking = NULL;
        live_end(l, reason);
    }
}

static json_t *sessions_json(const struct forking *f)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < f->n; i++)
        json_array_append_new(list, live_json(f->lives[i]));
    return json_pack("{s:o}", "sessions", list);
}

static int record_all(struct forking *f, struct err *e)
{
    for (unsigned i = 0; i < f->n; i++) {
        live_touch(f->lives[i]);
        if (live_record(f->lives[i], e) < 0)
            return -1;
    }
    return 0;
}

static void forking_over(struct forking *f)
{
    struct request *r = f->request;
    struct err e;

    request_unwork(r);
    if (f->why[0]) {
        end_all(f, "crashed");
        reply_no_branch(r, f->at, f->why);
    } else if (record_all(f, &e) < 0) {
        end_all(f, "crashed");
        reply_store_failed(r, &e);
    } else {
        reply_json(r, 201, sessions_json(f));
    }
    forking_free(f);
}

static void one_less(struct forking *f)
{
    if (--f->waiting == 0)
        forking_over(f);
}

static void on_branch_opened(struct live *l, const struct err *e)
{
    struct forking *f = l->forking;

    if (e)
        snprintf(f->why, sizeof(f->why), "%s", e->text);
    one_less(f);
}

void forking_lost(struct live *l)
{
    struct forking *f = l->forking;

    l->forking = NULL;
    for (unsigned i = 0; i < f->n; i++)
        if (f->lives[i] == l)
            f->lives[i] = NULL;
    snprintf(f->why, sizeof(f->why), "the session was ended before its box stood");
    if (!l->open)
        one_less(f);
}

static void on_forker_gone(void *work)
{
    struct forking *f = work;

    end_all(f, "deleted");
    free(f);
}

/* One of them, which counts as a session like any other. */
static int add_branch(struct forking *f, struct live *from, struct request *r)
{
    if (ask_room(r, &from->limits) < 0)
        return -1;
    struct live *l = live_new(from->gate, from->holder, &from->limits, from->environment, from);
    l->idle_timeout_s = from->idle_timeout_s;
    l->checkpoints = from->checkpoints;
    l->metadata = json_deep_copy(from->metadata);
    l->opened = on_branch_opened;
    l->forking = f;
    f->lives[f->n++] = l;
    return 0;
}

static void fork_session(struct request *r, struct live *from, unsigned count,
                         const struct session_departure *at)
{
    struct forking *f = xcalloc(1, sizeof(*f));

    f->request = r;
    f->at = at->n;
    while (f->n < count)
        if (add_branch(f, from, r) < 0) { /* and it is answered */
            end_all(f, "deleted");
            free(f);
            return;
        }
    f->waiting = f->n;
    live_touch(from);
    request_work(r, on_forker_gone, f);
    for (unsigned i = 0; i < f->n; i++)
        live_open_branch(f->lives[i], from, at);
}

static int ask_count(struct request *r, const json_t *count, unsigned *ret)
{
    json_int_t n = count && !json_is_null(count) ? json_integer_value(count) : 1;

    if ((count && !json_is_null(count) && !json_is_integer(count)) || n < 1 || n > BRANCHES_MAX) {
        reply_error(r, 400, "bad_request", "\"count\" is a number from 1 to %d", BRANCHES_MAX);
        return -1;
    }
    *ret = (unsigned)n;
    return 0;
}

static int ask_departure(struct request *r, const json_t *at, const struct live *from,
                         struct session_departure *ret)
{
    json_int_t n = json_integer_value(at);
    uint32_t now = session_state_n(from->session);

    *ret = (struct session_departure){.n = now, .present = !from->running};
    if (!at || json_is_null(at))
        return 0;
    if (!json_is_integer(at) || n < 0 || n >= UINT32_MAX) {
        reply_error(r, 400, "bad_request", "\"at\" is the number of a cell");
        return -1;
    }
    if (n > now) { /* init would wait for it */
        reply_no_branch(r, (uint32_t)n, LENT_NOT_KEPT);
        return -1;
    }
    ret->n = (uint32_t)n;
    ret->present = ret->present && ret->n == now;
    return 0;
}

void call_fork(struct request *r)
{
    static const char *const members[] = {"count", "at", NULL};
    json_t *body = ask_object(r, members);
    struct session_departure at;
    unsigned count;

    if (!body)
        return;
    struct live *l = live_asked(r);
    if (l && ask_count(r, json_object_get(body, "count"), &count) == 0 &&
        ask_departure(r, json_object_get(body, "at"), l, &at) == 0)
        fork_session(r, l, count, &at);
    json_decref(body);
}

/* ---- try ---- */

/* One candidate in its branch. */
struct attempt {
    struct trial *trial;
    struct session *session; /* NULL: it is over */
    struct charge *charge;
    bool heard;        /* whether it could be opened */
    struct cell *cell; /* what came of it */
    const char *code;  /* the body's */
};

struct trial {
    struct job *job;
    json_t *body;
    bool keep;
    bool stopped;
    bool refused; /* a branch could not be made */
    uint32_t at;
    uint64_t timeout_ms;
    unsigned summary;
    unsigned n, left; /* that are not over */
    char why[512];
    struct attempt list[CANDIDATES_MAX];
};

static void attempt_end(struct attempt *a)
{
    if (!a->session)
        return;
    session_close(a->session);
    a->session = NULL;
    charge_end(a->charge);
}

void trial_free(struct trial *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->n; i++) {
        if (t->job)
            attempt_end(&t->list[i]);
        cell_free(t->list[i].cell);
    }
    json_decref(t->body);
    free(t);
}

/* One that ended well, and has not died since, while the others ran. */
static bool is_ok(const struct attempt *a)
{
    return a->cell && a->cell->status == CELL_OK && a->session && !session_ended(a->session);
}

static struct attempt *first_ok(struct trial *t)
{
    for (unsigned i = 0; t->keep && !t->stopped && i < t->n; i++)
        if (is_ok(&t->list[i]))
            return &t->list[i];
    return NULL;
}

/* The session goes on as the winner; what it was ends. */
static void adopt(struct live *l, struct attempt *a)
{
    struct session *before = l->session;

    live_end_transfers(l); /* of files that are not the session's any more */
    session_give(a->session, &job_events, l);
    session_share(a->session, 1);
    l->session = a->session;
    a->session = NULL;
    charge_end(l->charge);
    l->charge = a->charge;
    session_close(before);
}

static json_t *trial_json(const struct trial *t, const struct attempt *kept)
{
    json_t *cells = json_array();

    for (unsigned i = 0; i < t->n; i++) {
        json_t *cell = cell_json(t->list[i].cell, t->summary);
        cell_json_add_end(cell, t->list[i].cell);
        json_array_append_new(cells, cell);
    }
    return json_pack("{s:o,s:o}", "cells", cells, "kept",
                     kept ? json_integer(kept - t->list) : json_null());
}

static void trial_over(struct trial *t)
{
    struct job *j = t->job;
    struct live *l = j->live;
    struct request *r = j->request;
    struct attempt *kept = t->refused || l->ending ? NULL : first_ok(t);

    j->request = NULL;
    if (kept) {
        l->cells++;
        job_record(l, j, kept->cell);
        adopt(l, kept);
    }
    if (r && t->refused)
        reply_no_branch(r, t->at, t->why);
    else if (r)
        reply_json(r, 200, trial_json(t, kept));
    job_over(l, j, NULL); /* and frees the trial */
}

static void refuse_trial(struct trial *t, const char *why)
{
    t->refused = true;
    snprintf(t->why, sizeof(t->why), "%s", why);
}

/* What is not open yet is not waited for: that may take as long as the session's guest likes. */
void trial_stop(struct trial *t)
{
    unsigned given_up = 0;

    t->stopped = true;
    for (unsigned i = 0; i < t->n; i++) {
        struct attempt *a = &t->list[i];
        if (!a->session || a->cell)
            continue;
        if (a->heard) {
            session_interrupt(a->session);
            continue;
        }
        refuse_trial(t, "it was given up");
        attempt_end(a);
        given_up++;
    }
    t->left -= given_up;
    if (given_up > 0 && t->left == 0)
        trial_over(t);
}

static void one_is_over(struct trial *t)
{
    if (--t->left == 0)
        trial_over(t);
}

static void on_attempt_opened(void *ctx, struct session *s, const struct err *e)
{
    struct attempt *a = ctx;
    struct trial *t = a->trial;
    struct err why = {0};

    a->heard = true;
    if (!e && !t->refused && !t->stopped &&
        session_run_at_once(s, a->code, strlen(a->code), t->timeout_ms, &why) == 0)
        return;
    refuse_trial(t, e ? e->text : why.text[0] ? why.text : "it was given up");
    one_is_over(t);
}

static void on_attempt_done(void *ctx, struct session *s, struct cell *c)
{
    struct attempt *a = ctx;
    struct trial *t = a->trial;
    (void)s;

    count_cell(t->job->live->holder, c);
    a->cell = c;
    if (c->session_ended || c->status != CELL_OK || !t->keep)
        attempt_end(a);
    one_is_over(t);
}

static const struct session_events attempt_events = {
    .opened = on_attempt_opened,
    .done = on_attempt_done,
};

int trial_begin(struct live *l, struct job *j)
{
    struct trial *t = j->trial;
    const struct session_departure at = {
        .n = session_state_n(l->session), .present = true, .last = session_last_n(l->session)};

    for (unsigned i = 0; i < t->n; i++) {
        if (ask_room(j->request, &l->limits) < 0) {
            j->request = NULL;
            return -1; /* those that were counted are uncounted with the trial */
        }
        t->job = j;
        t->at = at.n;
        t->list[i].session =
            session_branch(l->session, &at, &l->limits, &attempt_events, &t->list[i]);
        session_keep(t->list[i].session, l->checkpoints);
        session_share(t->list[i].session, t->n);
        t->list[i].charge = charge_new(l->gate, l->holder, l->limits.memory, l->charge);
    }
    t->left = t->n;
    return 0;
}

static int ask_candidates(struct request *r, struct trial *t)
{
    const json_t *list = json_object_get(t->body, "candidates");
    size_t n = json_array_size(list);

    if (!json_is_array(list) || n < 1 || n > CANDIDATES_MAX) {
        reply_error(r, 400, "bad_request", "\"candidates\" is a list of 1 to %d pieces of code",
                    CANDIDATES_MAX);
        return -1;
    }
    for (; t->n < n; t->n++) {
        const char *code = json_string_value(json_array_get(list, t->n));
        if (!code || strlen(code) != json_string_length(json_array_get(list, t->n))) {
            reply_error(r, 400, "bad_request", "\"candidates\": number %u is not a text of code",
                        t->n);
            return -1;
        }
        t->list[t->n] = (struct attempt){.trial = t, .code = code};
    }
    return 0;
}

static int ask_keep(struct request *r, const json_t *keep, bool *ret)
{
    const char *word = json_string_value(keep);

    *ret = !keep || json_is_null(keep) || (word && strcmp(word, "first_ok") == 0);
    if (*ret || (word && strcmp(word, "none") == 0))
        return 0;
    reply_error(r, 400, "bad_request", "\"keep\" is \"first_ok\" (the default) or \"none\"");
    return -1;
}

void call_try(struct request *r)
{
    static const char *const members[] = {"candidates", "keep", "timeout", "summary", NULL};
    json_t *body = ask_object(r, members);

    if (!body)
        return;
    struct trial *t = xcalloc(1, sizeof(*t));
    t->body = body;
    struct live *l = live_asked(r);
    if (!l || ask_candidates(r, t) < 0 ||
        ask_keep(r, json_object_get(body, "keep"), &t->keep) < 0 ||
        ask_timeout(r, json_object_get(body, "timeout"), r->gate->config->max.timeout_ms,
                    &t->timeout_ms) < 0 ||
        ask_summary(r, json_object_get(body, "summary"), &t->summary) < 0) {
        trial_free(t);
        return;
    }
    for (unsigned i = 0; i < t->n; i++)
        if (holder_begins_cell(r) < 0) {
            trial_free(t);
            return;
        }
    if (job_add(l, r, &(struct job_order){.kind = JOB_TRY, .summary = t->summary, .trial = t}) < 0)
        trial_free(t);
}
