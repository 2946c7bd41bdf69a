/* exchange: see exchange.h.
 *
 *     begin ─▶ await ─▶ judge ── WHOLE ──▶ the caller
 *       ▲                 │ │
 *       │                 │ └─ HOPELESS, or the last try ──▶ an error
 *       ├── LACKING ──────┤    (at once, without what the server cannot have)
 *       └── AGAIN, rest ──┘
 */
#include "agent/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/refusal.h"
#include "base/clock.h"
#include "guest/events.h"
#include "session/cell_from_json.h"

#define SILENCE_S 600    /* a model may think for minutes without a byte */
#define STUBBORN_TRIES 2 /* for what hardly changes by itself */
#define ANSWER_MAX                                                                                 \
    (16u << 20) /* a body, or an event: REPLY_BYTES may be escaped in it, and twice */
#define STREAM_MAX (128u << 20) /* all events: some take a hundred times what they say */
#define LINGER_MS 2000          /* for the end of a connection, when the reply's has been said */
#define WAKE_MS 60000           /* at least so often we look at the clock */
#define HEADER_LINES 8

#define STOPS (TURN_SIGINT | TURN_STOP | TURN_CLOSED)

enum verdict { WHOLE, AGAIN, LACKING, HOPELESS };

struct exchange {
    struct owner *owner;
    struct client *client;
    struct model *model;
    const struct request *request;
    const struct exchange_view *view;
    int64_t deadline_ms;
    bool local; /* the server is on this machine */

    /* one try */
    struct call *call; /* NULL: none is under way */
    struct reply reply;
    enum { UNKNOWN, EVENTS, ONE_BODY } shape;
    struct events events;
    struct buf body;
    size_t streamed;
    int64_t enough_ms; /* when its end is no longer waited for; 0: it has not been said */
    unsigned wait_s;   /* before the next, as the server wants it; 0: it does not say */

    /* all of them */
    unsigned tries, stubborn;
};

/* ---- calling ---- */

struct client *model_client(const struct model *m, struct err *e)
{
    struct address a;

    if (address_plain(&a, m->base, e) < 0)
        return NULL;
    struct client *c = client_new(&a,
                                  a.loopback ? "is a model's server running there?"
                                             : "is the address right, and this machine online?",
                                  e);
    address_done(&a);
    return c;
}

struct lines {
    char *line[HEADER_LINES + 1];
    unsigned n;
};

static void add_line(void *ctx, const char *line)
{
    struct lines *lines = ctx;

    assert_that(lines->n < HEADER_LINES);
    lines->line[lines->n++] = xstrdup(line);
}

struct call *exchange_call(struct client *c, const struct model *m, const struct call_spec *spec)
{
    struct lines lines = {0};
    struct call_spec with = *spec;

    m->protocol->headers(m, add_line, &lines);
    with.headers = (const char *const *)lines.line;
    struct call *call = call_begin(c, &with);
    for (unsigned i = 0; i < lines.n; i++) {
        explicit_bzero(lines.line[i], strlen(lines.line[i]));
        free(lines.line[i]);
    }
    return call;
}

/* ---- one try ---- */

/* A server may answer in one piece although a stream was asked for, or say nothing of what it sends. */
static int shape_of(const char *type, const char *data, size_t len)
{
    if (strcmp(type, "text/event-stream") == 0)
        return EVENTS;
    if (strcmp(type, "application/json") == 0)
        return ONE_BODY;
    return len > 0 && (data[0] == '{' || data[0] == '[') ? ONE_BODY : EVENTS;
}

static int on_piece(void *ctx, const char *data, size_t len, struct err *e)
{
    struct exchange *x = ctx;

    if (x->shape == UNKNOWN)
        x->shape = shape_of(x->call->type, data, len);
    if (x->shape == EVENTS && len > STREAM_MAX - x->streamed)
        return err_set(e, EFBIG, "the stream has more than %u bytes", STREAM_MAX);
    if (x->shape == EVENTS) {
        x->streamed += len;
        return events_feed(&x->events, data, len, e);
    }
    if (len > ANSWER_MAX - x->body.len)
        return err_set(e, EFBIG, "the answer has more than %u bytes", ANSWER_MAX);
    buf_add(&x->body, data, len);
    return 0;
}

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
    struct exchange *x = ctx;

    if (x->model->protocol->event(&x->reply, name, data, len, e) < 0)
        return -1;
    if (x->reply.over && !x->enough_ms)
        x->enough_ms = clock_now_ms() + LINGER_MS;
    return 0;
}

static void begin(struct exchange *x)
{
    const struct protocol *p = x->model->protocol;
    struct request r = *x->request;
    cleanup_buf struct buf path = {0};

    r.stream = x->model->streams;
    p->path(x->model, r.stream, &path);
    json_t *body = p->body(x->model, &r);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    assert_that(text);

    reply_init(&x->reply, &x->view->reply);
    events_init(&x->events, ANSWER_MAX, on_event, x);
    x->shape = UNKNOWN;
    x->streamed = 0;
    x->enough_ms = 0;
    x->wait_s = 0;
    x->call = exchange_call(
        x->client, x->model,
        &(struct call_spec){.method = "POST",
                            .path = buf_text(&path),
                            .accept = r.stream ? "text/event-stream, application/json" : NULL,
                            .body = text,
                            .silence_s = SILENCE_S,
                            .piece = on_piece,
                            .ctx = x});
}

/* What the try has left behind, but for the reply. */
static void forget(struct exchange *x)
{
    if (x->call)
        call_end(x->call);
    x->call = NULL;
    events_done(&x->events);
    buf_done(&x->body);
}

/* ---- waiting ---- */

static int too_late(struct exchange *x, struct err *e)
{
    err_set(e, 0, "%s did not answer within the time that there is", x->model->provider);
    e->code = ETIMEDOUT;
    return -1;
}

/* Until the call is over, where there is one, or until then. 0; a set of enum turn that said to stop; or -1. */
static int wait_for(struct exchange *x, int64_t rest_until_ms, struct err *e)
{
    while (!x->call || !x->call->over) {
        int64_t now_ms = clock_now_ms();
        int64_t until_ms = x->call ? x->enough_ms : rest_until_ms;
        if (until_ms && now_ms >= until_ms)
            return 0;
        if (x->deadline_ms && now_ms >= x->deadline_ms)
            return too_late(x, e);
        if (!until_ms || (x->deadline_ms && x->deadline_ms < until_ms))
            until_ms = x->deadline_ms ? x->deadline_ms : now_ms + WAKE_MS;
        int64_t left_ms = until_ms - now_ms;
        client_wake(x->client, left_ms < WAKE_MS ? (int)left_ms : WAKE_MS);
        int turn = owner_turn(x->owner, -1, e);
        if (turn < 0 || turn & STOPS)
            return turn;
        if (turn & TURN_TICK && x->view->tick)
            x->view->tick(x->view->ctx);
    }
    return 0;
}

/* 1, 2, 4, 8 seconds, or what the server wants; and up to a quarter more, so that those who were sent away
 * together do not come back together. */
static int64_t rest_ms(const struct exchange *x)
{
    unsigned seconds = x->wait_s ? x->wait_s : 1u << (x->tries - 1);
    unsigned random = 0;

    if (getrandom(&random, sizeof(random), 0) < 0)
        random = 0;
    return (int64_t)seconds * 1000 + random % (seconds * 250);
}

/* ---- judging ---- */

static enum verdict judge_refusal(struct exchange *x, struct err *e)
{
    struct refusal r;

    refusal_read(&r, x->model, x->call);
    if (refusal_is_lack(&r, x->model, x->request->talk, e))
        return LACKING;
    refusal_explain(&r, x->model, e);
    x->wait_s = r.wait_s;
    if (!r.worth_a_try || r.wait_s <= EXCHANGE_WAIT_MAX_S)
        return r.worth_a_try ? AGAIN : HOPELESS;
    err_wrap(e, "it wants to be asked again in %u s, which is too long", r.wait_s);
    return HOPELESS;
}

/* There is no answer, or not all of it. */
static enum verdict judge_way(struct exchange *x, struct err *e)
{
    const struct call *call = x->call;
    bool stubborn = call->fault == CALL_SILENT || (call->fault == CALL_ABSENT && x->local);

    *e = call->e;
    refusal_clean(x->model, call->e.text, e->text, sizeof(e->text));
    if (call->fault == CALL_UNTRUSTED || (stubborn && ++x->stubborn >= STUBBORN_TRIES))
        return HOPELESS;
    return AGAIN;
}

static int take_body(struct exchange *x, struct err *e)
{
    json_error_t why;

    if (json_count_values(buf_text(&x->body), x->body.len) > PROTOCOL_VALUES_MAX)
        return err_set(e, EFBIG, "the answer has more than %u values", PROTOCOL_VALUES_MAX);
    json_t *body = json_loadb(buf_text(&x->body), x->body.len, 0, &why);
    int r = body ? x->model->protocol->whole(&x->reply, body, e)
                 : err_set(e, 0, "the answer is not JSON (%s)", why.text);

    json_decref(body);
    return r;
}

/* What came is all that comes: is it a reply? */
static int take_rest(struct exchange *x, struct err *e)
{
    if (x->call->ours) {
        *e = x->call->e;
        return -1;
    }
    if (x->shape == ONE_BODY && take_body(x, e) < 0)
        return -1;
    /* Some leave out the empty line behind the last event. */
    if (x->shape == EVENTS && !x->reply.over && events_feed(&x->events, "\n\n", 2, e) < 0)
        return -1;
    return reply_finish(&x->reply, e);
}

/* It answered, but not with a reply; the error may be the server's own, told in its stream. */
static enum verdict judge_words(struct exchange *x, struct err *e)
{
    struct refusal r = {.status = 500};
    bool hopeless = e->code == EFBIG;

    refusal_clean(x->model, e->text, r.words, sizeof(r.words));
    if (x->reply.text.len == 0 && x->reply.n_calls == 0 &&
        refusal_is_lack(&r, x->model, x->request->talk, e))
        return LACKING;
    err_set(e, 0, "%s: %s", x->model->provider, r.words);
    return hopeless ? HOPELESS : AGAIN;
}

static enum verdict judge(struct exchange *x, struct err *e)
{
    const struct call *call = x->call;

    if (call->status && call->status != 200)
        return judge_refusal(x, e);
    if (call->over && !call->status && !call->ours && !x->reply.over)
        return judge_way(x, e);
    if (take_rest(x, e) == 0)
        return WHOLE;
    if (strcmp(call->type, "text/html") == 0) {
        err_set(e, 0, "what answers at %s is a page, and no model", x->model->base);
        return HOPELESS;
    }
    return judge_words(x, e);
}

/* ---- all of it ---- */

/* 0: *ret_verdict; else as wait_for. */
static int try_once(struct exchange *x, enum verdict *ret_verdict, struct err *e)
{
    begin(x);
    int turn = wait_for(x, 0, e);
    if (turn == 0)
        *ret_verdict = judge(x, e);
    forget(x);
    if (turn != 0 || *ret_verdict != WHOLE)
        reply_done(&x->reply);
    return turn;
}

/* Before the next try. */
static int rest(struct exchange *x, enum verdict v, struct err *why)
{
    int64_t ms = v == LACKING ? 0 : rest_ms(x);
    int64_t until_ms = clock_now_ms() + ms;

    if (x->deadline_ms && until_ms >= x->deadline_ms) {
        why->code = ETIMEDOUT;
        return -1;
    }
    if (x->view->again)
        x->view->again(x->view->ctx, why->text, (unsigned)(ms / 1000));
    return v == LACKING ? 0 : wait_for(x, until_ms, why);
}

static int try_all(struct exchange *x, struct err *e)
{
    enum verdict v = AGAIN;

    for (;;) {
        x->tries++;
        int turn = try_once(x, &v, e);
        if (turn != 0 || v == WHOLE)
            return turn;
        if (v == HOPELESS)
            return -1;
        if (v == LACKING)
            x->tries--;
        else if (x->tries == EXCHANGE_TRIES)
            return err_wrap(e, "asked %u times", x->tries);
        turn = rest(x, v, e);
        if (turn != 0)
            return turn;
    }
}

int exchange(struct owner *o, struct client *c, struct model *m, const struct request *r,
             const struct exchange_view *view, int64_t deadline_ms, struct reply *ret,
             struct err *e)
{
    struct exchange x = {.owner = o,
                         .client = c,
                         .model = m,
                         .request = r,
                         .view = view,
                         .deadline_ms = deadline_ms};
    struct client *before = o->other;
    struct address a;

    if (address_plain(&a, m->base, e) < 0)
        return -1;
    x.local = a.loopback;
    address_done(&a);
    owner_listen(o, c);
    int turn = try_all(&x, e);
    owner_listen(o, before);
    if (turn == 0)
        *ret = x.reply;
    return turn;
}
