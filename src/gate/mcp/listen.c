/* listen: who wants to hear of changes, and telling them.
 *
 * In the modern protocol that is a call that stays open ("subscriptions/listen"): what it asked for is acknowledged
 * first, and each message names the subscription, which is the call's id. In the older one a peer subscribes to
 * resources one by one, and hears of lists unasked. What nobody reads is dropped by the transports: a client that
 * missed something looks again.
 */
#include <stdlib.h>
#include <string.h>

#include "gate/mcp/protocol.h"
#include "gate/mcp/server.h"

#define LISTENERS_OF_TOKEN 64
#define URIS_MAX 256
#define URI_LONGEST 16384
#define SUBSCRIBED_MAX (256u << 10) /* bytes of a peer's, which nobody counts */

struct listener {
    struct listener *next;
    struct mcp_call *call;
    json_t *uris; /* members of an object */
    bool tools, prompts, resources;
};

static const struct {
    const char *what, *wish, *method;
    size_t offset;
} lists[] = {
    {"tools", "toolsListChanged", "notifications/tools/list_changed",
     offsetof(struct listener, tools)},
    {"prompts", "promptsListChanged", "notifications/prompts/list_changed",
     offsetof(struct listener, prompts)},
    {"resources", "resourcesListChanged", "notifications/resources/list_changed",
     offsetof(struct listener, resources)},
};
#define N_LISTS (sizeof(lists) / sizeof(*lists))

static bool *flag(struct listener *l, unsigned i)
{
    return (bool *)((char *)l + lists[i].offset);
}

static json_t *subscription_meta(const struct mcp_call *c)
{
    return json_pack("{s:O}", META_SUBSCRIPTION, c->id);
}

/* ---- beginning and end ---- */

static void unlist(struct listener *l)
{
    for (struct listener **at = &l->call->gate->mcp->listeners; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    json_decref(l->uris);
    free(l);
}

static void on_abandoned(void *work)
{
    unlist(work);
}

void listen_end(struct gate *g, const struct holder *h)
{
    struct listener *next;

    for (struct listener *l = g->mcp->listeners; l; l = next) {
        struct mcp_call *c = l->call;
        next = l->next;
        if (h && c->holder != h)
            continue;
        unlist(l);
        mcp_result(c, json_pack("{s:o}", "_meta", subscription_meta(c)));
    }
}

static unsigned listeners_of(const struct gate *g, const struct holder *h)
{
    unsigned n = 0;

    for (const struct listener *l = g->mcp->listeners; l; l = l->next)
        n += l->call->holder == h;
    return n;
}

/* ---- what is wanted ---- */

static bool is_uri(const json_t *j)
{
    return json_is_string(j) && json_string_length(j) > 0 && json_string_length(j) <= URI_LONGEST;
}

/* NULL, or the list is not one of URIs. An absent one is empty. */
static json_t *read_uris(const json_t *list)
{
    json_t *ret = json_object(), *uri;
    size_t i;

    if (list && (!json_is_array(list) || json_array_size(list) > URIS_MAX)) {
        json_decref(ret);
        return NULL;
    }
    json_array_foreach(list, i, uri)
    {
        if (!is_uri(uri)) {
            json_decref(ret);
            return NULL;
        }
        json_object_set_new(ret, json_string_value(uri), json_true());
    }
    return ret;
}

/* Only what can happen here is honoured. */
static json_t *honour(struct listener *l, const json_t *wishes)
{
    json_t *ret = json_object();

    for (unsigned i = 0; i < N_LISTS; i++) {
        *flag(l, i) = json_is_true(json_object_get(wishes, lists[i].wish)) &&
                      mcp_can(lists[i].what, "listChanged");
        if (*flag(l, i))
            json_object_set_new(ret, lists[i].wish, json_true());
    }
    if (json_object_size(l->uris) > 0)
        json_object_set(ret, "resourceSubscriptions",
                        json_object_get(wishes, "resourceSubscriptions"));
    return ret;
}

void mcp_listen(struct mcp_call *c)
{
    const json_t *wishes = json_object_get(c->params, "notifications");
    json_t *uris = read_uris(json_object_get(wishes, "resourceSubscriptions"));

    if (!json_is_object(wishes) || !uris) {
        json_decref(uris);
        mcp_error(
            c, MCP_INVALID_PARAMS, NULL,
            "\"notifications\" must be an object; \"resourceSubscriptions\" in it is a list of "
            "at most %d URIs",
            URIS_MAX);
        return;
    }
    if (listeners_of(c->gate, c->holder) >= LISTENERS_OF_TOKEN || c->gate->draining) {
        json_decref(uris);
        mcp_error(c, MCP_BUSY, NULL, "at most %d streams of changes can be open",
                  LISTENERS_OF_TOKEN);
        return;
    }
    struct listener *l = xcalloc(1, sizeof(*l));
    *l = (struct listener){.next = c->gate->mcp->listeners, .call = c, .uris = uris};
    c->gate->mcp->listeners = l;
    mcp_work(c, on_abandoned, l);
    json_t *honoured = honour(l, wishes);
    mcp_notify(c, "notifications/subscriptions/acknowledged",
               json_pack("{s:o,s:o}", "_meta", subscription_meta(c), "notifications", honoured));
}

/* ---- the older protocol ---- */

static size_t subscribed(json_t *all)
{
    size_t bytes = 0;
    const char *uri;
    json_t *value;

    json_object_foreach(all, uri, value)
    {
        bytes += strlen(uri);
    }
    return bytes;
}

void mcp_subscribe(struct mcp_call *c)
{
    json_t *uri = json_object_get(c->params, "uri");
    json_t *all = c->peer->subscriptions;

    if (!is_uri(uri)) {
        mcp_error(c, MCP_INVALID_PARAMS, NULL, "\"uri\" must be the URI of a resource");
        return;
    }
    bool full = json_object_size(all) >= URIS_MAX ||
                subscribed(all) + json_string_length(uri) > SUBSCRIBED_MAX;
    if (full && !json_object_get(all, json_string_value(uri))) {
        mcp_error(c, MCP_BUSY, NULL,
                  "at most %d resources can be subscribed to, with URIs of %u bytes together",
                  URIS_MAX, SUBSCRIBED_MAX);
        return;
    }
    json_object_set_new(all, json_string_value(uri), json_true());
    mcp_result(c, json_object());
}

void mcp_unsubscribe(struct mcp_call *c)
{
    json_t *uri = json_object_get(c->params, "uri");

    if (!is_uri(uri)) {
        mcp_error(c, MCP_INVALID_PARAMS, NULL, "\"uri\" must be the URI of a resource");
        return;
    }
    json_object_del(c->peer->subscriptions, json_string_value(uri));
    mcp_result(c, json_object());
}

/* ---- telling ---- */

static void tell(struct listener *l, const char *method, json_t *params)
{
    json_object_set_new(params, "_meta", subscription_meta(l->call));
    mcp_notify(l->call, method, params);
}

void mcp_list_changed(struct gate *g, const struct holder *h, const char *what)
{
    unsigned i = 0;

    if (!g->mcp)
        return; /* sessions outlive it by a moment, when the server leaves */
    while (i < N_LISTS && strcmp(lists[i].what, what) != 0)
        i++;
    assert_that(i < N_LISTS);
    for (struct listener *l = g->mcp->listeners; l; l = l->next)
        if (l->call->holder == h && *flag(l, i))
            tell(l, lists[i].method, json_object());
    for (struct mcp_peer *p = g->mcp->peers; p; p = p->next)
        if (p->holder == h && p->version)
            p->line->send(p, rpc_notification(lists[i].method, NULL));
}

static void file_changed(struct gate *g, const struct holder *h, const char *uri)
{
    for (struct listener *l = g->mcp->listeners; l; l = l->next)
        if (l->call->holder == h && json_object_get(l->uris, uri))
            tell(l, "notifications/resources/updated", json_pack("{s:s}", "uri", uri));
    for (struct mcp_peer *p = g->mcp->peers; p; p = p->next)
        if (p->holder == h && p->version && json_object_get(p->subscriptions, uri))
            p->line->send(p, rpc_notification("notifications/resources/updated",
                                              json_pack("{s:s}", "uri", uri)));
}

void mcp_files_changed(struct gate *g, const struct holder *h, const char *session,
                       const json_t *files)
{
    bool others = false;
    json_t *file;
    size_t i;

    if (!g->mcp || !mcp_has(g, h))
        return;
    json_array_foreach(files, i, file)
    {
        const char *path = json_string_value(json_object_get(file, "path"));
        const char *change = json_string_value(json_object_get(file, "change"));
        cleanup_buf struct buf uri = {0};
        if (!path)
            continue;
        mcp_uri_add(&uri, session, path);
        file_changed(g, h, buf_text(&uri));
        others |= !change || strcmp(change, "changed") != 0;
    }
    if (others)
        mcp_list_changed(g, h, "resources");
}
