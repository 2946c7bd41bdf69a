/* jobs: turns of a session. One runs, the others wait in order.
 *
 * A job that runs is ended by its session alone: whatever its client does, the cell is told to the journal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gate/headers.h"
#include "gate/inner.h"
#include "gate/inside.h"
#include "gate/journal.h"
#include "gate/mcp/mcp.h"
#include "session/cell_json.h"

#define VARIABLES_MS 10000
#define JOURNAL_LEAST 1024

void job_free(struct job *j)
{
    if (!j)
        return;
    if (j->request && j->request->work == j)
        request_unwork(j->request);
    cell_free(j->failed);
    trial_free(j->trial);
    free(j->code);
    free(j);
}

static void unqueue(struct job *j)
{
    for (struct job **at = &j->live->queue; *at; at = &(*at)->next)
        if (*at == j) {
            *at = j->next;
            j->live->n_queue--;
            return;
        }
}

/* Its client has gone away. */
static void on_abandoned(void *work)
{
    struct job *j = work;
    struct live *l = j->live;

    j->request = NULL;
    j->stream = NULL;
    if (j == l->running && j->trial) {
        trial_stop(j->trial);
        return;
    }
    if (j == l->running) {
        session_interrupt(l->session);
        return;
    }
    unqueue(j);
    job_free(j);
    if (l->once)
        live_end(l, "deleted");
}

int job_add(struct live *l, struct request *r, const struct job_order *o)
{
    const char *accept = request_header(r, MHD_HTTP_HEADER_ACCEPT);

    if ((l->running || l->queue) && l->n_queue >= l->gate->config->max_queue) {
        reply_later(r, 429, 1, "too_many_cells",
                    "%u cells wait in this session already; try again when some are done",
                    l->n_queue);
        return -1;
    }
    struct job *j = xcalloc(1, sizeof(*j));
    *j = (struct job){.live = l,
                      .request = r,
                      .kind = o->kind,
                      .code = xcalloc(1, o->len + 1),
                      .code_len = o->len,
                      .timeout_ms = o->timeout_ms,
                      .summary = o->summary,
                      .pictures = o->pictures,
                      .to = o->to,
                      .undo = o->undo,
                      .trial = o->trial};
    if (o->len > 0)
        memcpy(j->code, o->code, o->len);
    request_holds(r, &r->body_held, o->len);
    if (o->kind == JOB_CELL && accept && header_wants_events(accept))
        j->stream = stream_new(r);
    request_work(r, on_abandoned, j);
    struct job **at = &l->queue;
    while (*at)
        at = &(*at)->next;
    *at = j;
    l->n_queue++;
    live_touch(l);
    jobs_next(l);
    return 0;
}

/* ---- answers ---- */

static void refuse(struct job *j, unsigned status, const char *code, const char *why)
{
    struct request *r = j->request;

    j->request = NULL;
    if (!r)
        return;
    if (j->stream) {
        request_unwork(r);
        stream_fail(j->stream, why);
    } else if (status == 503) {
        reply_later(r, status, 5, code, "%s", why);
    } else {
        reply_error(r, status, code, "%s", why);
    }
}

void jobs_refuse(struct live *l, unsigned status, const char *code, const char *why)
{
    struct job *j;

    while ((j = l->queue)) {
        unqueue(j);
        refuse(j, status, code, why);
        job_free(j);
    }
}

static int begin(struct live *l, const struct job *j, struct err *e)
{
    switch (j->kind) {
    case JOB_VARIABLES:
        return session_variables(l->session, VARIABLES_MS, e);
    case JOB_ROLLBACK:
        return session_rollback(l->session, j->to, e);
    case JOB_TRY: /* see jobs_next */
    case JOB_CELL:
        break;
    }
    session_pictures(l->session, j->pictures);
    return j->undo ? session_run_undoable(l->session, j->code, j->code_len, j->timeout_ms, e)
                   : session_run(l->session, j->code, j->code_len, j->timeout_ms, e);
}

void jobs_next(struct live *l)
{
    struct err e;

    while (!l->running && l->open && !l->ending && l->queue) {
        struct job *j = l->queue;
        unqueue(j);
        j->began_ms = clock_wall_ms();
        l->running = j;
        if (j->kind == JOB_TRY && trial_begin(l, j) == 0)
            return;
        if (j->kind == JOB_TRY) {
            l->running = NULL;
            job_free(j);
            continue;
        }
        int begun = begin(l, j, &e);
        if (begun == 0)
            return;
        l->running = NULL;
        refuse(j, e.code == EFBIG ? 413 : 409, e.code == EFBIG ? "too_large" : "not_run", e.text);
        job_free(j);
    }
}

/* What the journal keeps of the next cell. One that has no room left for more still tells that there was a
 * cell, and what was cut. */
static uint64_t journal_room(const struct live *l)
{
    const struct config *c = l->gate->config;
    uint64_t left = l->journal < c->journal_session ? c->journal_session - l->journal : 0;

    left = left > JOURNAL_LEAST ? left : JOURNAL_LEAST;
    return left < c->journal_outputs ? left : c->journal_outputs;
}

/* `text` is the cell as it was answered. */
static void record(struct live *l, const struct job *j, json_t *cell, uint32_t n,
                   const struct buf *text)
{
    uint64_t max = journal_room(l);
    cleanup_free char *cut = NULL;
    struct err e;

    if (text->len > max) {
        journal_fit(cell, max);
        cut = json_text(cell);
    }
    const char *kept = cut ? cut : text->data;
    size_t len = cut ? strlen(cut) : text->len;
    l->journal += len;
    if (store_cell_add(l->gate->store, l->id, n, j->began_ms, kept, len, &e) < 0)
        log_line("store error=\"%s\"", e.text);
}

void job_record(struct live *l, struct job *j, struct cell *c)
{
    struct buf text = {0};
    json_t *cell = cell_json(c, j->summary);

    cell_json_add_end(cell, c);
    json_add(&text, cell);
    mcp_files_changed(l->gate, l->holder, l->id, json_object_get(cell, "files"));
    record(l, j, cell, c->n, &text);
    buf_done(&text);
    json_decref(cell);
}

static void answer_cell(struct live *l, struct job *j, struct cell *c)
{
    struct buf text = {0};
    json_t *cell = cell_json(c, j->summary);

    cell_json_add_end(cell, c);
    json_add(&text, cell);
    count_cell(l->holder, c);
    if (!l->once)
        mcp_files_changed(l->gate, l->holder, l->id, json_object_get(cell, "files"));
    if (j->stream) {
        request_unwork(j->request);
        stream_end(j->stream, cell, &text);
    }
    struct request *r = j->stream ? NULL : j->request;
    bool inner = r && r->inner;
    if (!l->once) {
        /* The journal cuts its own: an inner call gets this very object. */
        bool copy = inner && text.len > journal_room(l);
        json_t *kept = copy ? json_deep_copy(cell) : json_incref(cell);
        record(l, j, kept, c->n, &text);
        json_decref(kept);
    }
    if (inner) {
        request_answer_holds(r, &r->answer_held, text.len);
        reply_json(r, 200, json_incref(cell));
    } else if (r) {
        buf_add(&text, "\n", 1);
        reply_text(r, 200, "application/json", &text);
    }
    buf_done(&text);
    json_decref(cell);
    j->request = NULL;
}

static void answer_rollback(struct live *l, struct job *j, const struct cell *c)
{
    struct request *r = j->request;

    j->request = NULL;
    if (c->restored)
        mcp_list_changed(l->gate, l->holder, "resources"); /* files went back too */
    if (!r)
        return;
    if (c->restored)
        reply_json(r, 200, live_json(l));
    else if (c->error.name && strcmp(c->error.name, NO_POINT) == 0)
        reply_error(r, 409, "no_checkpoint", "%s", c->error.value);
    else
        reply_error(r, 410, "session_ended",
                    "the session could not be brought back, and has ended");
}

static void answer_variables(struct job *j, const struct cell *c)
{
    json_t *list = cell_variables_json(c);
    struct request *r = j->request;

    j->request = NULL;
    if (r && list)
        reply_json(r, 200, page_json(json_incref(list), NULL));
    else if (r)
        reply_error(r, 409, "no_variables", "the interpreter could not list its variables (%s)",
                    cell_status_name(c->status));
    json_decref(list);
}

/* ---- from the session ---- */

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    struct live *l = ctx;
    (void)s;

    l->open = !e;
    l->opened(l, e);
}

static void on_text(void *ctx, struct session *s, enum output_kind kind, const char *text,
                    size_t len)
{
    struct live *l = ctx;
    (void)s;

    const struct job *j = l->running;

    if (j && j->stream)
        stream_text(j->stream, kind, text, len);
    else if (j && j->request && j->request->inner && j->kind == JOB_CELL)
        inner_wrote(j->request, text, len);
}

static void on_display(void *ctx, struct session *s, const struct output *o)
{
    struct live *l = ctx;
    (void)s;

    if (l->running && l->running->stream)
        stream_display(l->running->stream, o);
}

static void on_error(void *ctx, struct session *s, const struct cell *c)
{
    struct live *l = ctx;
    (void)s;

    if (l->running && l->running->stream)
        stream_error(l->running->stream, c);
}

static const char *reason_of(const struct cell *c)
{
    return c->status == CELL_LIMIT ? "limit" : "crashed";
}

/* True: it has failed, and is not over before nothing is left of it. */
static bool undo(struct live *l, struct job *j, struct cell *c)
{
    struct err e;

    if (!j->undo || j->failed || c->status == CELL_OK || c->session_ended || l->ending ||
        session_rollback(l->session, c->n - 1, &e) < 0)
        return false;
    j->failed = c;
    return true;
}

/* The cell that was undone, which says so. */
static struct cell *undone(struct job *j, struct cell *c)
{
    struct cell *failed = j->failed;

    cell_undone(failed, c);
    j->failed = NULL;
    cell_free(c);
    return failed;
}

void job_over(struct live *l, struct job *j, const char *ended)
{
    l->running = NULL;
    job_free(j);
    live_touch(l);
    if (l->ending)
        live_ended(l);
    else if (ended)
        live_end(l, ended);
    else
        jobs_next(l);
}

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    struct live *l = ctx;
    struct job *j = l->running;
    (void)s;

    if (undo(l, j, c))
        return;
    if (j->failed)
        c = undone(j, c);
    bool died = c->session_ended;
    const char *reason = reason_of(c);
    l->running = NULL;
    if (j->kind == JOB_CELL) {
        l->cells++;
        answer_cell(l, j, c);
    } else if (j->kind == JOB_ROLLBACK) {
        answer_rollback(l, j, c);
    } else {
        answer_variables(j, c);
    }
    cell_free(c);
    job_over(l, j, l->once ? "deleted" : died ? reason : NULL);
}

static void on_ended(void *ctx, struct session *s)
{
    (void)s;
    live_end(ctx, "crashed");
}

const struct session_events job_events = {
    .opened = on_opened,
    .text = on_text,
    .display = on_display,
    .error = on_error,
    .done = on_done,
    .ended = on_ended,
};
