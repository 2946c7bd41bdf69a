/* transport_http: POST, GET and DELETE of /mcp.
 *
 * A POST brings one message, or in one revision of the older protocol a batch. What its calls have to say before their
 * answers makes a stream of its answer, and so does a call that takes long, for whoever is in between to see that it
 * lives; else it is one JSON body.
 *
 *     post ──calls──▶ answers ──none is left──▶ JSON │ the stream's last event │ 202
 *       └── the client leaves ──▶ its calls are abandoned
 *
 * Invariants:
 *  1. A post lives as long as it is being read or has calls; whoever ends last frees it (settle).
 *  2. `request` is NULL as soon as its client has left; then nothing is sent any more.
 *  3. No call is ended from inside `notify`: whoever walks over listeners may rely on it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gate/headers.h"
#include "gate/mcp/protocol.h"
#include "gate/mcp/server.h"

#define H_SESSION "Mcp-Session-Id"
#define H_VERSION "MCP-Protocol-Version"
#define BATCH_VERSION "2025-03-26"
#define BATCH_MAX 64
#define BATCH_BYTES (16u << 20) /* of all its answers */
#define QUIET_MS 10000 /* from then on an answer that is waited for is a stream, with comments */

struct http_call {
    struct mcp_call call; /* first: a call is cast to it */
    struct http_post *post;
    struct http_call *next;
};

struct http_post {
    struct http_post *prev, *next;
    struct gate *gate;
    struct holder *holder;
    struct request *request;
    struct stream *stream;
    bool reading;      /* there may be more calls of it */
    bool batch;        /* its answers are a list */
    bool takes_events; /* the client said that it understands a stream */
    bool ended;        /* the stream has had its last event */
    unsigned status;   /* of an answer in one piece */
    json_t *answers;
    uint64_t answered; /* bytes of a batch's answers */
    uint64_t held;     /* those of them that wait here for the others */
    struct http_call *calls;
    char session[SESSION_ID_MAX]; /* that has begun with it, or "" */
    int64_t began_ms;
};

static struct http_post *posts;

/* ---- the answer ---- */

static void send_event(struct http_post *p, const json_t *message, bool dear, bool last)
{
    cleanup_buf struct buf text = {0};

    buf_add_text(&text, "data: ");
    json_add(&text, message);
    p->ended = last;
    if (last)
        request_unwork(p->request);
    stream_event(p->stream, text.data, text.len, dear, last);
}

/* A stream has no more to say, and nothing came of it. */
static void end_quietly(struct request *r, struct stream *s)
{
    static const char comment[] = ": that was all";

    request_unwork(r);
    stream_event(s, comment, sizeof(comment) - 1, true, true);
}

static void reply(struct http_post *p)
{
    struct request *r = p->request;

    request_unwork(r);
    request_holds(r, &p->held, 0); /* the answer is counted in its turn */
    if (json_array_size(p->answers) == 0) {
        reply_empty(r, 202);
        return;
    }
    reply_json(r, p->status, json_incref(p->batch ? p->answers : json_array_get(p->answers, 0)));
    if (p->session[0])
        response_header(r->response, H_SESSION, p->session);
}

static void settle(struct http_post *p)
{
    if (p->reading || p->calls)
        return;
    if (p->request && p->stream && !p->ended)
        end_quietly(p->request, p->stream);
    else if (p->request && !p->stream)
        reply(p);
    if (p->prev)
        p->prev->next = p->next;
    else
        posts = p->next;
    if (p->next)
        p->next->prev = p->prev;
    json_decref(p->answers);
    free(p);
}

static void on_client_gone(void *work)
{
    struct http_post *p = work;

    p->request = NULL;
    p->stream = NULL;
    p->reading = true; /* it stays until all of them are gone */
    while (p->calls)
        mcp_call_abandon(&p->calls->call);
    p->reading = false;
    settle(p);
}

/* From now on its answer is a stream; what was answered already goes first. */
static void begin_stream(struct http_post *p)
{
    json_t *message;
    size_t i;

    p->stream = stream_new(p->request);
    request_work(p->request, on_client_gone, p);
    json_array_foreach(p->answers, i, message)
    {
        send_event(p, message, true, false);
    }
    json_array_clear(p->answers);
    request_holds(p->request, &p->held, 0); /* the stream counts them */
}

static bool may_stream(const struct http_post *p)
{
    return p->request && !p->stream && p->takes_events;
}

int64_t mcp_http_tick(int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;

    for (struct http_post *p = posts; p; p = p->next) {
        if (!may_stream(p))
            continue;
        if (now_ms - p->began_ms >= QUIET_MS)
            begin_stream(p);
        else if (p->began_ms + QUIET_MS < next_ms)
            next_ms = p->began_ms + QUIET_MS;
    }
    return next_ms;
}

/* ---- calls ---- */

/* Errors of the modern protocol that are told by HTTP too. Those that a method makes are answers like others. */
static unsigned status_of(const struct mcp_call *c, const json_t *message)
{
    const json_t *error = json_object_get(message, "error");
    json_int_t code = json_integer_value(json_object_get(error, "code"));

    if (!error || c->era != MCP_MODERN)
        return 200;
    if (code == MCP_HEADER_MISMATCH || code == MCP_NO_CAPABILITY || code == MCP_NO_VERSION)
        return 400;
    return c->how ? 200 : code == MCP_NO_METHOD ? 404 : 400;
}

/* The answers of a batch wait for one another, or for a slow reader, and each may be long: what is too much becomes an
 * error, which the client can go on with. */
static json_t *fitting(struct http_post *p, const struct mcp_call *c, json_t *message)
{
    size_t len = json_dumpb(message, NULL, 0, JSON_COMPACT);

    if (len > SMALL_REQUEST && (p->answered + len > BATCH_BYTES || !request_has_room(p->request))) {
        json_decref(message);
        message = rpc_error(c->id, MCP_BUSY, NULL,
                            "the answers of this batch are too long together; ask one by one");
        len = SMALL_REQUEST / BATCH_MAX;
    }
    p->answered += len;
    if (!p->stream)
        request_holds(p->request, &p->held, p->answered);
    return message;
}

static void on_answer(struct mcp_call *c, json_t *message)
{
    struct http_call *h = (struct http_call *)c;
    struct http_post *p = h->post;

    if (p->batch && p->request)
        message = fitting(p, c, message);
    if (p->stream) {
        send_event(p, message, true, !p->reading && p->calls == h && !h->next);
    } else if (p->request) {
        p->status = status_of(c, message);
        json_array_append(p->answers, message);
    }
    json_decref(message);
}

static void on_notify(struct mcp_call *c, json_t *message)
{
    struct http_post *p = ((struct http_call *)c)->post;

    if (may_stream(p))
        begin_stream(p);
    if (p->stream)
        send_event(p, message, json_object_get(message, "id"), false);
    json_decref(message);
}

static void on_free(struct mcp_call *c)
{
    struct http_call *h = (struct http_call *)c;
    struct http_post *p = h->post;

    for (struct http_call **at = &p->calls; *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    free(h);
    settle(p);
}

static const struct mcp_outlet outlet = {on_answer, on_notify, on_free};

static struct mcp_call *new_call(struct http_post *p, const struct rpc *m)
{
    struct http_call *h = xcalloc(1, sizeof(*h));

    h->call = (struct mcp_call){.outlet = &outlet, .gate = p->gate, .holder = p->holder};
    mcp_call_fill(&h->call, m);
    h->post = p;
    h->next = p->calls;
    p->calls = h;
    return &h->call;
}

/* ---- sessions of the older protocol ---- */

/* Where messages go that belong to no call: to the stream that the client opened with GET, if it did. */
struct carrier {
    struct request *request;
    struct stream *stream;
};

static void line_send(struct mcp_peer *peer, json_t *message)
{
    const struct carrier *c = peer->carrier;
    cleanup_buf struct buf text = {0};

    if (c) {
        buf_add_text(&text, "data: ");
        json_add(&text, message);
        stream_event(c->stream, text.data, text.len, false, false);
    }
    json_decref(message);
}

static void line_closed(struct mcp_peer *peer)
{
    struct carrier *c = peer->carrier;

    if (!c)
        return;
    peer->carrier = NULL;
    end_quietly(c->request, c->stream);
    free(c);
}

static const struct mcp_line line = {line_send, line_closed};

static void on_listener_gone(void *work)
{
    struct mcp_peer *peer = work;

    free(peer->carrier);
    peer->carrier = NULL;
    peer_touch(peer);
}

/* ---- what a message is ---- */

static const char *get_header(void *ctx, const char *name, unsigned *ret_count)
{
    *ret_count = request_count_headers(ctx, name);
    return request_header(ctx, name);
}

/* A header that may be there once. -1: it is there twice. */
static int one_header(struct request *r, const char *name, const char **ret)
{
    *ret = request_header(r, name);
    return request_count_headers(r, name) > 1 ? -1 : 0;
}

static void refuse(struct http_post *p, unsigned status, json_t *id, struct mcp_fault *f)
{
    p->status = status;
    json_array_append_new(p->answers, rpc_fault(id, f));
}

static bool is_legacy_version(const char *version)
{
    for (unsigned i = 0; mcp_legacy_versions[i]; i++)
        if (strcmp(mcp_legacy_versions[i], version) == 0)
            return true;
    return false;
}

/* Whose message is it? NULL with the status and what is wrong. */
static struct mcp_peer *peer_asked(struct request *r, unsigned *ret_status, struct mcp_fault *f)
{
    const char *id, *version;

    *ret_status = 400;
    if (one_header(r, H_SESSION, &id) < 0 || one_header(r, H_VERSION, &version) < 0 || !id) {
        mcp_fault_set(f, MCP_INVALID_REQUEST,
                      "a message has one \"" H_SESSION
                      "\", as the answer to \"initialize\" gave it; "
                      "or \"_meta\" as version " MCP_MODERN_VERSION " has it");
        return NULL;
    }
    if (version && !is_legacy_version(version)) {
        mcp_fault_set(f, MCP_INVALID_REQUEST, "\"" H_VERSION "\" is not one that is spoken here");
        return NULL;
    }
    struct mcp_peer *peer = peer_find(r->gate, r->holder, id);
    if (!peer) {
        *ret_status = 404;
        mcp_fault_set(f, MCP_INVALID_REQUEST, "there is no such session: \"initialize\" a new one");
        return NULL;
    }
    peer_touch(peer);
    return peer;
}

/* Nobody may wait with the next message for a request that takes long, so this is where it returns. */
static void start(struct http_post *p, const struct rpc *m, struct mcp_peer *peer, bool modern)
{
    const struct mcp_headers headers = {get_header, p->request};
    struct mcp_call *c = new_call(p, m);
    bool wants_progress = c->progress_token != NULL;

    c->era = modern ? MCP_MODERN : MCP_LEGACY;
    c->version = modern ? MCP_MODERN_VERSION : peer->version;
    c->peer = peer;
    mcp_start(c, m, modern ? &headers : NULL);
    /* The call may be over, and the client may have been told so. */
    if (p->calls && wants_progress && may_stream(p))
        begin_stream(p);
}

static void initialize(struct http_post *p, const struct rpc *m)
{
    struct mcp_peer *peer = peer_new(p->gate, p->holder, &line);

    start(p, m, peer, false); /* it is answered at once */
    if (peer->version)
        memcpy(p->session, peer->id, sizeof(p->session));
    else
        peer_end(peer);
}

static void take_request(struct http_post *p, const struct rpc *m)
{
    struct mcp_fault f = {0};
    unsigned status;
    const char *version = request_header(p->request, H_VERSION);
    struct mcp_peer *peer;

    if (envelope_is_modern(m, version))
        start(p, m, NULL, true);
    else if (strcmp(m->method, "initialize") == 0)
        initialize(p, m);
    else if ((peer = peer_asked(p->request, &status, &f)))
        start(p, m, peer, false);
    else
        refuse(p, status, m->id, &f);
}

/* What is no request has no answer, and in the modern protocol no meaning: a stream is cancelled by closing it. */
static void take_other(struct http_post *p, const struct rpc *m)
{
    const char *version = request_header(p->request, H_VERSION);
    struct mcp_fault f = {0};
    unsigned status;

    if (m->kind == RPC_NOTIFICATION && envelope_is_modern(m, version))
        return;
    struct mcp_peer *peer = peer_asked(p->request, &status, &f);
    if (!peer)
        refuse(p, status, NULL, &f);
    else if (m->kind == RPC_RESPONSE)
        rounds_take_response(peer, m);
    else
        peer_take_notification(peer, m);
}

static void take_one(struct http_post *p, json_t *message)
{
    struct mcp_fault f = {0};
    struct rpc m;

    if (rpc_read(message, &m, &f) < 0)
        refuse(p, 400, m.id, &f);
    else if (m.kind == RPC_REQUEST)
        take_request(p, &m);
    else
        take_other(p, &m);
}

/* One of a batch: its peer is known, and may have ended with the last one. */
static void take_of_batch(struct http_post *p, json_t *message)
{
    struct mcp_fault f = {0};
    struct rpc m;

    int r = rpc_read(message, &m, &f);
    if (r == 0 && m.kind == RPC_REQUEST &&
        (strcmp(m.method, "initialize") == 0 || envelope_is_modern(&m, NULL)))
        r = mcp_fault_set(&f, MCP_INVALID_REQUEST, "this cannot be part of a batch");
    if (r < 0)
        refuse(p, 200, m.id, &f);
    else if (m.kind == RPC_REQUEST)
        take_request(p, &m);
    else
        take_other(p, &m);
}

static void take_batch(struct http_post *p, json_t *messages)
{
    struct mcp_fault f = {0};
    unsigned status;
    json_t *message;
    size_t i;

    struct mcp_peer *peer = peer_asked(p->request, &status, &f);
    size_t n = json_array_size(messages);
    if (!peer || strcmp(peer->version, BATCH_VERSION) != 0 || n == 0 || n > BATCH_MAX) {
        mcp_fault_set(
            &f, MCP_INVALID_REQUEST,
            "a batch has 1 to %d messages, and belongs to a session of version " BATCH_VERSION,
            BATCH_MAX);
        refuse(p, 400, NULL, &f);
        return;
    }
    p->batch = true;
    json_array_foreach(messages, i, message)
    {
        take_of_batch(p, message);
    }
    p->status = 200;
}

/* ---- the calls of HTTP ---- */

/* Does the client say that it does not understand JSON? */
static bool insists_on_events(const char *accept)
{
    return accept && !strcasestr(accept, "application/json") && !strstr(accept, "*/*") &&
           !strcasestr(accept, "application/*");
}

static struct http_post *post_new(struct request *r)
{
    struct http_post *p = xcalloc(1, sizeof(*p));
    const char *accept = request_header(r, MHD_HTTP_HEADER_ACCEPT);

    *p = (struct http_post){.next = posts,
                            .gate = r->gate,
                            .holder = r->holder,
                            .request = r,
                            .reading = true,
                            .takes_events = accept && header_wants_events(accept),
                            .status = 200,
                            .answers = json_array(),
                            .began_ms = clock_wall_ms()};
    if (posts)
        posts->prev = p;
    posts = p;
    request_work(r, on_client_gone, p);
    gate_arm(r->gate, p->began_ms + QUIET_MS);
    return p;
}

void call_mcp_post(struct request *r)
{
    struct http_post *p = post_new(r);
    struct mcp_fault f = {0};
    json_t *message = rpc_parse(r->body.data ? r->body.data : "", r->body.len, &f);

    if (!message)
        refuse(p, 400, NULL, &f);
    else if (json_is_array(message))
        take_batch(p, message);
    else
        take_one(p, message);
    json_decref(message);
    if (p->calls && may_stream(p) && insists_on_events(request_header(r, MHD_HTTP_HEADER_ACCEPT)))
        begin_stream(p);
    p->reading = false;
    settle(p);
}

static void refuse_plainly(struct request *r, unsigned status, struct mcp_fault *f)
{
    reply_json(r, status, rpc_fault(NULL, f));
}

/* Only sessions of the older protocol have a stream of their own. */
void call_mcp_get(struct request *r)
{
    const char *accept = request_header(r, MHD_HTTP_HEADER_ACCEPT);
    struct mcp_fault f = {0};
    unsigned status;

    if (!request_header(r, H_SESSION) || strcmp(r->method, MHD_HTTP_METHOD_GET) != 0) {
        reply_error(r, 405, "method_not_allowed", "there is no stream without a session: POST");
        response_header(r->response, MHD_HTTP_HEADER_ALLOW, "POST");
        return;
    }
    struct mcp_peer *peer = peer_asked(r, &status, &f);
    if (!peer) {
        refuse_plainly(r, status, &f);
        return;
    }
    if (!accept || !header_wants_events(accept)) {
        mcp_fault_set(&f, MCP_INVALID_REQUEST, "say \"Accept: text/event-stream\"");
        refuse_plainly(r, 406, &f);
        return;
    }
    line_closed(peer); /* one is enough: the last that was opened */
    struct carrier *c = xcalloc(1, sizeof(*c));
    *c = (struct carrier){.request = r, .stream = stream_new(r)};
    peer->carrier = c;
    request_work(r, on_listener_gone, peer);
}

void call_mcp_delete(struct request *r)
{
    struct mcp_fault f = {0};
    unsigned status;
    struct mcp_peer *peer = peer_asked(r, &status, &f);

    if (!peer) {
        refuse_plainly(r, status, &f);
        return;
    }
    peer_end(peer);
    reply_empty(r, 204);
}
