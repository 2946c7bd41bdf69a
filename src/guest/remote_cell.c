/* remote_cell: a cell on a server, from its text to its end.
 *
 *     POST cells ──200──▶ stdout, stderr, display, result, error … cell
 *         ├─ 429, 503, Retry-After: once more
 *         ├─ 404, 410: the session died meanwhile: a fresh one, unless it is the first cell
 *         └─ anything else, or a connection that ends before "cell": the owner is lost
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "guest/remote.h"
#include "session/sanitise.h"
#include "session/cell.h"
#include "session/cell_from_json.h"
#include "session/cell_json.h"

#define EVENT_BASE (256u << 20) /* displays (64 MiB) and code (16 MiB), as JSON */
#define EVENT_VALUES 1000000u /* a cell with all outputs and files there can be has a fifth of it */
#define TEXT_MAX (128u << 20) /* of text; what a server would send beyond is no event */
#define LARGE_ALL (128u << 20) /* bytes of these */

void remote_forget_cell(struct remote *r)
{
    remote_call_done(&r->call);
    remote_call_done(&r->interrupt);
    events_done(&r->events);
    for (unsigned i = 0; i < r->n_large; i++)
        cell_output_done(&r->large[i]);
    free(r->large);
    free(r->code);
    cell_free(r->cell);
    r->large = NULL;
    r->code = NULL;
    r->cell = NULL;
    r->n_large = 0;
    r->large_bytes = 0;
    r->again_ms = 0;
    r->interrupt_due = r->tried_again = false;
    r->text_bytes = r->displays = 0;
    r->why[0] = '\0';
}

/* ---- what comes in ---- */

static void keep_large(struct remote *r, struct output *o)
{
    size_t size = 0;

    /* As the server counts: in base64 where it is not text. */
    for (unsigned i = 0; i < o->n_parts; i++)
        size += o->parts[i].text ? o->parts[i].len : (o->parts[i].len + 2) / 3 * 4;
    if (size <= CELL_LARGE || size > LARGE_ALL - r->large_bytes) {
        cell_output_done(o);
        return;
    }
    r->large = reallocarray(r->large, r->n_large + 1, sizeof(*r->large));
    assert_that(r->large);
    r->large[r->n_large++] = *o;
    r->large_bytes += size;
}

static int take_output(struct remote *r, const json_t *j, struct err *e)
{
    const struct guest_view *view = r->guest->view;
    struct output o;

    if (output_from_json(j, &o, e) < 0)
        return -1;
    if (o.kind == OUTPUT_STDOUT || o.kind == OUTPUT_STDERR) {
        r->text_bytes += o.len;
        if (view && view->text)
            view->text(view->ctx, o.kind, o.text, o.len);
        cell_output_done(&o);
        return 0;
    }
    r->displays++;
    if (view && view->display)
        view->display(view->ctx, &o);
    keep_large(r, &o);
    return 0;
}

static int take_event(struct remote *r, const char *name, const json_t *j, struct err *e)
{
    if (r->cell) /* that was the last */
        return 0;
    if (strcmp(name, "cell") == 0) {
        r->cell = cell_from_json(j, e);
        return r->cell ? 0 : -1;
    }
    if (strcmp(name, "error") == 0) { /* comes again with the cell, unless there is none */
        sanitise_name(remote_text(j, "value"), r->why, sizeof(r->why));
        return 0;
    }
    for (int k = OUTPUT_STDOUT; k <= OUTPUT_RESULT; k++)
        if (strcmp(name, output_kind_name((enum output_kind)k)) == 0)
            return take_output(r, j, e);
    return 0; /* an event of a later server's */
}

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
    json_error_t why;

    if (json_count_values(data, len) > EVENT_VALUES)
        return err_set(e, EFBIG, "the server sent an event of more than %u values", EVENT_VALUES);
    json_t *j = json_loadb(data, len, CELL_JSON_READ, &why);
    if (!j)
        return err_set(e, 0, "the server sent an event that is not JSON (%s)", why.text);
    int result = take_event(ctx, name, j, e);
    json_decref(j);
    return result < 0 ? err_wrap(e, "the server's event \"%s\" cannot be understood", name) : 0;
}

static int on_piece(void *ctx, const char *data, size_t len, struct err *e)
{
    struct remote *r = ctx;

    return events_feed(&r->events, data, len, e);
}

/* ---- its end ---- */

/* Put the displays back that the server sent once, and say what never came. */
static void complete(struct remote *r, struct cell *c)
{
    unsigned large = 0, displays = 0;
    uint64_t text = 0;

    for (unsigned i = 0; i < c->n_outputs; i++) {
        struct output *o = &c->outputs[i];
        bool display = o->kind == OUTPUT_DISPLAY || o->kind == OUTPUT_RESULT;
        displays += display;
        text += o->len;
        if (!display || o->n_parts > 0 || large == r->n_large)
            continue;
        struct output *was = &r->large[large++];
        enum output_kind kind = o->kind;
        cell_output_done(o);
        *o = *was;
        o->kind = kind;
        *was = (struct output){0};
    }
    if (text > r->text_bytes || displays > r->displays)
        outlet_note(
            &r->guest->owner->out,
            "the connection was too slow: %llu bytes of text and %u displays were not shown "
            "(--json has them)",
            (unsigned long long)(text - r->text_bytes), displays - r->displays);
}

/* A cell that the server did not run. */
static struct cell *refused(const struct remote *r, enum cell_status status, const struct err *why)
{
    struct cell *c = cell_new(0, r->code, r->len);

    c->status = status;
    cell_set_fault(c, "Refused", why->text);
    return c;
}

static void begin_cell(struct remote *r);

static void on_afresh(void *ctx)
{
    struct remote *r = ctx;
    struct err e;
    bool made = r->call->status == 201;

    if (made ? remote_take_session(r->guest, r->call, &e) < 0
             : remote_call_failed(r->call, &e) < 0) {
        owner_lose(r->guest->owner, &e);
        remote_forget_cell(r);
        return;
    }
    r->ended = false;
    begin_cell(r);
}

/* The interpreter died while nobody looked: as with one of our own, the cell runs in a fresh box. Not the
 * first cell, which may want files that are gone with the old one. */
static void begin_afresh(struct remote *r)
{
    remote_call_done(&r->call);
    remote_call_done(&r->touch); /* it asks for the old one */
    r->id[0] = '\0';
    r->call = call_begin(r->client, &(struct call_spec){.method = "POST",
                                                        .path = "/v1/sessions",
                                                        .body = remote_wish(r->guest),
                                                        .over = on_afresh,
                                                        .ctx = r});
}

static void cell_over(void *ctx)
{
    struct remote *r = ctx;
    struct guest *g = r->guest;
    const struct call *call = r->call;
    struct cell *c = r->cell;
    struct err e;

    r->touched_ms = clock_now_ms();
    if (!c && remote_worth_waiting(call) && !r->tried_again) {
        r->again_ms = clock_now_ms() + call->retry_after_s * 1000;
        client_wake(r->client, (int)call->retry_after_s * 1000);
        return; /* see after() */
    }
    r->cell = NULL;
    if (c)
        complete(r, c);
    else
        remote_call_failed(call, &e);
    if (!c && call->status == 200)
        err_set(&e, 0, "the server did not run the cell to its end%s%s", r->why[0] ? ": " : "",
                r->why);
    r->ended = c ? c->session_ended : remote_is_gone(call);
    if (!c && r->ended && r->cells > 0) {
        begin_afresh(r);
        return;
    }
    if (!c && (call->status == 400 || call->status == 409 || call->status == 413))
        c = refused(r, CELL_FAILED, &e);
    if (c)
        g->cell = c;
    else
        owner_lose(g->owner, &e);
    r->cells++;
    remote_forget_cell(r);
}

/* ---- its beginning ---- */

static char *cell_text(const struct remote *r)
{
    json_t *j = json_object();

    json_object_set_new(j, "code", json_stringn_nocheck(r->code, r->len));
    if (r->timeout_ms == LIMIT_NONE)
        json_object_set_new(j, "timeout", json_string("none"));
    else if (r->timeout_ms)
        json_object_set_new(j, "timeout", json_real((double)r->timeout_ms / 1000));
    if (r->guest->undo)
        json_object_set_new(j, "on_error", json_string("rollback"));
    return remote_dump(j);
}

static void begin_cell(struct remote *r)
{
    cleanup_free char *path = xasprintf("/v1/sessions/%s/cells", r->id);
    uint64_t output = r->guest->limits.output;

    remote_call_done(&r->call);
    events_done(&r->events);
    events_init(&r->events, EVENT_BASE + 6 * (size_t)(output < TEXT_MAX ? output : TEXT_MAX),
                on_event, r);
    r->call = call_begin(r->client, &(struct call_spec){.method = "POST",
                                                        .path = path,
                                                        .accept = "text/event-stream",
                                                        .body = cell_text(r),
                                                        .piece = on_piece,
                                                        .over = cell_over,
                                                        .ctx = r});
}

int remote_start(struct guest *g, const char *code, size_t len, uint64_t timeout_ms, struct err *e)
{
    struct remote *r = g->remote;

    if (r->call)
        return err_set(e, EBUSY, "the session runs a cell");
    r->code = xcalloc(1, len + 1);
    memcpy(r->code, code, len);
    r->len = len;
    r->timeout_ms = timeout_ms;
    begin_cell(r);
    return 0;
}

/* An interrupt that overtakes its cell would stop nothing. */
static void send_interrupt(struct remote *r)
{
    if (!r->interrupt_due || r->interrupt || !r->call || !r->call->answered)
        return;
    r->interrupt_due = false;
    r->interrupt = remote_call(r, "POST", "/interrupt", NULL);
}

void remote_interrupt(struct guest *g)
{
    struct remote *r = g->remote;
    struct err e;

    if (!r->call)
        return;
    if (!r->again_ms) {
        r->interrupt_due = true;
        send_interrupt(r);
        return;
    }
    err_set(&e, 0, "interrupted before the server could begin");
    g->cell = refused(r, CELL_INTERRUPTED, &e);
    remote_forget_cell(r);
}

void remote_tend_cell(struct remote *r, int64_t now_ms)
{
    if (r->interrupt && r->interrupt->over)
        remote_call_done(&r->interrupt);
    send_interrupt(r);
    if (r->again_ms && now_ms >= r->again_ms) {
        r->again_ms = 0;
        r->tried_again = true;
        begin_cell(r);
    }
}
