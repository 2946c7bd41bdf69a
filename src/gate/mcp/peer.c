/* peer: whoever sends several requests that belong together: a session of the older protocol, or the program at
 * standard input. It has calls under way, which it can cancel by their ids, and hears of changes.
 *
 *     peer_new ──initialize──▶ in use ──DELETE, idle, one too many, its token's end, the server's end──▶ peer_end
 *
 * A modern request over HTTP has none: it stands alone, and to close its connection is to cancel it.
 */
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "gate/mcp/protocol.h"
#include "gate/mcp/server.h"

#define ID_BYTES 24

static void make_id(char ret[SESSION_ID_MAX])
{
    uint8_t random[ID_BYTES];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        bug("no random numbers");
    base64_encode_raw(ret, sizeof(random), random);
    for (char *c = ret; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
}

static bool is_idle(const struct mcp_peer *p)
{
    return p->n_calls == 0 && !p->carrier;
}

/* Of two, which one is missed less? */
static const struct mcp_peer *lesser(const struct mcp_peer *a, const struct mcp_peer *b)
{
    if (is_idle(a) != is_idle(b))
        return is_idle(a) ? a : b;
    return a->active_ms <= b->active_ms ? a : b;
}

/* Whoever begins more than there may be loses the one that he has not used for longest. */
static void make_room(struct gate *g, const struct holder *h)
{
    const struct mcp_peer *least = NULL;
    unsigned n = 0;

    for (struct mcp_peer *p = g->mcp->peers; p; p = p->next)
        if (p->holder == h) {
            n++;
            least = least ? lesser(least, p) : p;
        }
    if (n >= PEERS_OF_TOKEN)
        peer_end((struct mcp_peer *)(uintptr_t)least);
}

struct mcp_peer *peer_new(struct gate *g, struct holder *h, const struct mcp_line *line)
{
    make_room(g, h);
    struct mcp_peer *p = xcalloc(1, sizeof(*p));

    *p = (struct mcp_peer){.next = g->mcp->peers,
                           .gate = g,
                           .holder = h,
                           .line = line,
                           .subscriptions = json_object()};
    make_id(p->id);
    peer_touch(p);
    g->mcp->peers = p;
    return p;
}

struct mcp_peer *peer_find(struct gate *g, const struct holder *h, const char *id)
{
    for (struct mcp_peer *p = g->mcp->peers; p; p = p->next)
        if (p->holder == h && strcmp(p->id, id) == 0)
            return p;
    return NULL;
}

void peer_touch(struct mcp_peer *p)
{
    p->active_ms = clock_wall_ms();
}

void peer_end(struct mcp_peer *p)
{
    for (struct mcp_peer **at = &p->gate->mcp->peers; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    while (p->calls)
        mcp_call_abandon(p->calls);
    p->line->closed(p);
    json_decref(p->capabilities);
    json_decref(p->subscriptions);
    free(p);
}

/* ---- its calls ---- */

static struct mcp_call *find_call(const struct mcp_peer *p, const json_t *id)
{
    for (struct mcp_call *c = p->calls; c; c = c->next)
        if (json_equal(c->id, id))
            return c;
    return NULL;
}

int peer_add_call(struct mcp_peer *p, struct mcp_call *c, struct mcp_fault *f)
{
    if (p->n_calls >= PEER_CALLS)
        return mcp_fault_set(f, MCP_BUSY, "%d requests are under way already", PEER_CALLS);
    if (find_call(p, c->id))
        return mcp_fault_set(f, MCP_INVALID_REQUEST, "a request with this \"id\" is under way");
    c->peer = p;
    c->next = p->calls;
    p->calls = c;
    p->n_calls++;
    return 0;
}

void peer_remove_call(struct mcp_call *c)
{
    for (struct mcp_call **at = &c->peer->calls; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            c->peer->n_calls--;
            break;
        }
    peer_touch(c->peer);
}

/* Others than a cancellation say nothing that we need to know. One that comes too late finds nothing. */
void peer_take_notification(struct mcp_peer *p, const struct rpc *m)
{
    struct mcp_call *c;

    if (strcmp(m->method, "notifications/cancelled") != 0)
        return;
    c = find_call(p, json_object_get(m->params, "requestId"));
    if (c)
        mcp_call_abandon(c);
}

/* ---- the server ---- */

void mcp_open(struct gate *g)
{
    g->mcp = xcalloc(1, sizeof(*g->mcp));
    if (getrandom(g->mcp->key, sizeof(g->mcp->key), 0) != (ssize_t)sizeof(g->mcp->key))
        bug("no random numbers");
}

void mcp_close(struct gate *g)
{
    if (!g->mcp)
        return;
    mcp_stdio_close(g);
    while (g->mcp->peers)
        peer_end(g->mcp->peers);
    explicit_bzero(g->mcp->key, sizeof(g->mcp->key));
    free(g->mcp);
    g->mcp = NULL;
}

bool mcp_has(const struct gate *g, const struct holder *h)
{
    for (const struct mcp_peer *p = g->mcp->peers; p; p = p->next)
        if (!h || p->holder == h)
            return true;
    return g->mcp->listeners != NULL;
}

void mcp_end_of(struct gate *g, const struct holder *h)
{
    struct mcp_peer *next;

    listen_end(g, h);
    for (struct mcp_peer *p = g->mcp->peers; p; p = next) {
        next = p->next;
        if (p->holder == h)
            peer_end(p);
    }
}

int64_t mcp_tick(struct gate *g, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    struct mcp_peer *next;

    for (struct mcp_peer *p = g->mcp->peers; p; p = next) {
        next = p->next;
        if (is_idle(p) && now_ms - p->active_ms >= PEER_IDLE_MS)
            peer_end(p);
        else if (is_idle(p) && p->active_ms + PEER_IDLE_MS < next_ms)
            next_ms = p->active_ms + PEER_IDLE_MS;
    }
    int64_t at = mcp_http_tick(now_ms);
    return at < next_ms ? at : next_ms;
}

void mcp_drain(struct gate *g)
{
    listen_end(g, NULL);
    for (struct mcp_peer *p = g->mcp->peers; p; p = p->next)
        p->line->closed(p);
}
