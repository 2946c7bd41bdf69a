/* rounds: a method that needs something of its client first.
 *
 * In the modern protocol the answer is "input_required" with what is asked; the client sends the request again with
 * the answers, maybe to another process of ours, so what was kept in between travels with it. It is sealed (HMAC) with
 * a key of this process, together with who may use it for which request until when: nobody can make one up, change it,
 * or use it with another token, method, tool or argument. Whoever has it can use it again until then, as he could send
 * the first request again.
 *
 * In the older protocol we send requests of our own on the stream of the call, and wait for the client's answers. The
 * method cannot tell the difference: it is run again, with the answers.
 */
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "gate/mcp/protocol.h"

#define VALID_MS 600000
#define STATE_LONGEST (64u << 10)

/* What was asked in the older protocol. */
struct mcp_round {
    struct mcp_round *next;
    struct mcp_call *call;
    json_t *waiting; /* {id: key} */
    json_t *answers; /* {key: answer} */
    json_t *kept;
};

/* ---- what a client can do ---- */

bool mcp_client_can(const struct mcp_call *c, const char *capability)
{
    const json_t *all = c->era == MCP_MODERN ? json_object_get(c->meta, META_CAPABILITIES)
                        : c->peer            ? c->peer->capabilities
                                             : NULL;

    return json_is_object(json_object_get(all, capability));
}

static const char *capability_for(const char *method)
{
    return strcmp(method, "elicitation/create") == 0       ? "elicitation"
           : strcmp(method, "sampling/createMessage") == 0 ? "sampling"
                                                           : "roots";
}

/* NULL, or those that are missing: {name: {}}. */
static json_t *missing(const struct mcp_call *c, json_t *requests)
{
    json_t *ret = json_object(), *request;
    const char *key;

    json_object_foreach(requests, key, request)
    {
        const char *what = capability_for(json_string_value(json_object_get(request, "method")));
        if (!mcp_client_can(c, what))
            json_object_set_new(ret, what, json_object());
    }
    if (json_object_size(ret) > 0)
        return ret;
    json_decref(ret);
    return NULL;
}

/* ---- the seal ---- */

/* What was asked, written in one way only, without what changes from round to round. */
static char *asked_text(const json_t *params)
{
    json_t *asked = json_copy((json_t *)(uintptr_t)params);

    json_object_del(asked, "_meta");
    json_object_del(asked, "inputResponses");
    json_object_del(asked, "requestState");
    char *text = json_dumps(asked, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(asked);
    if (!text)
        bug("cannot write JSON");
    return text;
}

static void mac_of(const struct mcp_call *c, const char *payload, size_t len,
                   uint8_t ret[SHA256_DIGEST_SIZE])
{
    struct hmac_sha256_ctx ctx;
    const int64_t token = c->holder->token.id;
    cleanup_free char *text = asked_text(c->params);

    hmac_sha256_set_key(&ctx, sizeof(c->gate->mcp->key), c->gate->mcp->key);
    hmac_sha256_update(&ctx, sizeof(token), (const uint8_t *)&token);
    hmac_sha256_update(&ctx, strlen(c->how->name) + 1, (const uint8_t *)c->how->name);
    hmac_sha256_update(&ctx, strlen(text) + 1, (const uint8_t *)text);
    hmac_sha256_update(&ctx, len, (const uint8_t *)payload);
    hmac_sha256_digest(&ctx, SHA256_DIGEST_SIZE, ret);
}

static void add_encoded(struct buf *to, const void *data, size_t len)
{
    struct base64_encode_ctx ctx;
    char *at = buf_room(to, BASE64_ENCODE_LENGTH(len) + BASE64_ENCODE_FINAL_LENGTH);

    base64url_encode_init(&ctx);
    size_t n = base64_encode_update(&ctx, at, len, data);
    n += base64_encode_final(&ctx, at + n);
    to->len += n;
}

/* What is before or behind the dot. */
static int decode(const char *text, size_t len, struct buf *ret)
{
    struct base64_decode_ctx ctx;
    size_t n = BASE64_DECODE_LENGTH(len);
    char *at = buf_room(ret, n + 1);

    base64url_decode_init(&ctx);
    if (!base64_decode_update(&ctx, &n, (uint8_t *)at, len, text) || !base64_decode_final(&ctx))
        return -1;
    ret->len += n;
    return 0;
}

char *rounds_seal(const struct mcp_call *c, const json_t *kept, int64_t now_ms)
{
    uint8_t mac[SHA256_DIGEST_SIZE];
    struct buf state = {0};
    uint32_t once;

    if (getrandom(&once, sizeof(once), 0) != (ssize_t)sizeof(once))
        bug("no random numbers");
    json_t *j = json_pack("{s:I,s:I,s:O}", "until", (json_int_t)(now_ms + VALID_MS), "once",
                          (json_int_t)once, "kept", kept);
    cleanup_free char *payload = json_text(j);
    json_decref(j);
    mac_of(c, payload, strlen(payload), mac);
    add_encoded(&state, payload, strlen(payload));
    buf_add(&state, ".", 1);
    add_encoded(&state, mac, sizeof(mac));
    buf_text(&state);
    return buf_steal(&state);
}

json_t *rounds_unseal(const struct mcp_call *c, const char *state, int64_t now_ms)
{
    cleanup_buf struct buf payload = {0}, mac = {0};
    const char *dot = strchr(state, '.');
    uint8_t right[SHA256_DIGEST_SIZE];

    if (!dot || strlen(state) > STATE_LONGEST ||
        decode(state, (size_t)(dot - state), &payload) < 0 ||
        decode(dot + 1, strlen(dot + 1), &mac) < 0 || mac.len != sizeof(right))
        return NULL;
    mac_of(c, payload.data, payload.len, right);
    if (!memeql_sec(right, mac.data, sizeof(right)))
        return NULL;
    json_t *j = json_loadb(payload.data, payload.len, 0, NULL);
    json_t *kept = NULL;
    if (json_integer_value(json_object_get(j, "until")) >= now_ms)
        kept = json_incref(json_object_get(j, "kept"));
    json_decref(j);
    return kept;
}

/* ---- modern ---- */

static int check_answers(const json_t *answers, struct mcp_fault *f)
{
    const char *key;
    json_t *answer;

    if (!json_is_object(answers))
        return mcp_fault_set(f, MCP_INVALID_PARAMS, "\"inputResponses\" must be an object");
    json_object_foreach((json_t *)(uintptr_t)answers, key, answer)
    {
        if (!json_is_object(answer))
            return mcp_fault_set(
                f, MCP_INVALID_PARAMS,
                "\"inputResponses\": what is answered to \"%.80s\" must be an object", key);
    }
    return 0;
}

int rounds_open(struct mcp_call *c, struct mcp_fault *f)
{
    json_t *answers = json_object_get(c->params, "inputResponses");
    const json_t *state = json_object_get(c->params, "requestState");

    if (c->era != MCP_MODERN)
        return 0;
    if (answers && check_answers(answers, f) < 0)
        return -1;
    c->answers = json_incref(answers);
    if (!state)
        return 0;
    c->kept =
        json_is_string(state) ? rounds_unseal(c, json_string_value(state), clock_wall_ms()) : NULL;
    return c->kept ? 0
                   : mcp_fault_set(f, MCP_INVALID_PARAMS,
                                   "\"requestState\" is not one that this request was given, or it "
                                   "is too old; send the request without it");
}

static void require_input(struct mcp_call *c, json_t *requests, json_t *kept)
{
    json_t *result =
        json_pack("{s:s,s:o}", "resultType", "input_required", "inputRequests", requests);

    if (kept) {
        cleanup_free char *state = rounds_seal(c, kept, clock_wall_ms());
        json_object_set_new(result, "requestState", json_string(state));
        json_decref(kept);
    }
    mcp_result(c, result);
}

/* ---- the older protocol ---- */

static void free_round(struct mcp_peer *p, struct mcp_round *r)
{
    for (struct mcp_round **at = &p->rounds; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    json_decref(r->waiting);
    json_decref(r->answers);
    json_decref(r->kept);
    free(r);
}

void rounds_forget(struct mcp_call *c)
{
    struct mcp_round *next;

    for (struct mcp_round *r = c->peer ? c->peer->rounds : NULL; r; r = next) {
        next = r->next;
        if (r->call == c)
            free_round(c->peer, r);
    }
}

static void send_requests(struct mcp_call *c, json_t *requests, json_t *kept)
{
    struct mcp_round *r = xcalloc(1, sizeof(*r));
    struct mcp_peer *p = c->peer;
    json_t *request;
    const char *key;
    char id[32];

    *r = (struct mcp_round){.next = p->rounds,
                            .call = c,
                            .waiting = json_object(),
                            .answers = json_object(),
                            .kept = kept};
    p->rounds = r;
    json_object_foreach(requests, key, request)
    {
        snprintf(id, sizeof(id), "%lld", (long long)++p->asked);
        json_object_set_new(r->waiting, id, json_string(key));
        c->outlet->notify(c, rpc_request(p->asked,
                                         json_string_value(json_object_get(request, "method")),
                                         json_incref(json_object_get(request, "params"))));
    }
    json_decref(requests);
}

/* All of it is there: the method is run once more. */
static void go_on(struct mcp_peer *p, struct mcp_round *r)
{
    struct mcp_call *c = r->call;

    json_decref(c->answers);
    json_decref(c->kept);
    c->answers = json_incref(r->answers);
    c->kept = json_incref(r->kept);
    free_round(p, r);
    c->how->run(c);
}

static void unanswered(struct mcp_call *c)
{
    mcp_error(c, MCP_INVALID_REQUEST, NULL, "the client did not answer what it was asked");
}

void rounds_end(struct mcp_peer *p)
{
    while (p->rounds)
        unanswered(p->rounds->call);
}

void rounds_take_response(struct mcp_peer *p, const struct rpc *m)
{
    struct mcp_round *r = p->rounds;
    char id[32];

    if (!json_is_integer(m->id))
        return;
    snprintf(id, sizeof(id), "%lld", (long long)json_integer_value(m->id));
    while (r && !json_object_get(r->waiting, id))
        r = r->next;
    if (!r)
        return;
    if (m->error || !json_is_object(m->result)) {
        unanswered(r->call);
        return;
    }
    json_object_set(r->answers, json_string_value(json_object_get(r->waiting, id)), m->result);
    json_object_del(r->waiting, id);
    if (json_object_size(r->waiting) == 0)
        go_on(p, r);
}

/* ---- for methods ---- */

void mcp_ask(struct mcp_call *c, json_t *requests, json_t *kept)
{
    json_t *lacks = missing(c, requests);

    assert_that(c->how->asks);
    mcp_work(c, NULL, NULL); /* whoever asks has done his part */
    if (!lacks && c->era == MCP_MODERN) {
        require_input(c, requests, kept);
        return;
    }
    if (!lacks && c->peer) {
        send_requests(c, requests, kept);
        return;
    }
    json_decref(requests);
    json_decref(kept);
    mcp_error(c, c->era == MCP_MODERN ? MCP_NO_CAPABILITY : MCP_INVALID_REQUEST,
              json_pack("{s:o}", "requiredCapabilities", lacks ? lacks : json_object()),
              "this needs a client that can be asked");
}

const json_t *mcp_answered(const struct mcp_call *c, const char *key)
{
    return json_object_get(c->answers, key);
}

const json_t *mcp_kept(const struct mcp_call *c)
{
    return c->kept;
}
