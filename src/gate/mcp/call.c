/* call: a request that is being worked on, from its making to its answer. See mcp.h for its life.
 *
 * Whatever ends a call ends it here: an answer, an error, a client that does not want it any more. Only then its
 * transport frees it, so that nobody else needs to know what a call is made of.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/mcp/protocol.h"

void mcp_call_fill(struct mcp_call *c, const struct rpc *m)
{
    c->id = json_incref(m->id);
    c->params = m->params ? json_incref(m->params) : json_object();
    c->method = "";
    const json_t *meta = json_object_get(c->params, "_meta");
    json_t *token = json_object_get(meta, "progressToken");
    c->meta = json_is_object(meta) ? meta : NULL;
    if (rpc_is_id(token)) /* it goes back with each message: a long one is none */
        c->progress_token = json_incref(token);
}

static void end(struct mcp_call *c)
{
    rounds_forget(c);
    if (c->peer)
        peer_remove_call(c);
    json_decref(c->id);
    json_decref(c->params);
    json_decref(c->progress_token);
    json_decref(c->answers);
    json_decref(c->kept);
    c->outlet->free(c);
}

static void answer(struct mcp_call *c, json_t *message)
{
    c->outlet->answer(c, message);
    end(c);
}

void mcp_work(struct mcp_call *c, void (*abandon)(void *work), void *work)
{
    c->abandon = abandon;
    c->work = work;
}

void mcp_call_abandon(struct mcp_call *c)
{
    void (*tell)(void *) = c->abandon;
    void *work = c->work;

    mcp_work(c, NULL, NULL);
    if (tell)
        tell(work);
    end(c);
}

/* ---- answers ---- */

static void set_missing(json_t *object, const char *key, json_t *value)
{
    if (!json_object_get(object, key))
        json_object_set(object, key, value);
    json_decref(value);
}

/* What every result of the modern protocol has. */
static void modernise(const struct mcp_call *c, json_t *result)
{
    set_missing(result, "resultType", json_string("complete"));
    set_missing(result, "_meta", json_object());
    set_missing(json_object_get(result, "_meta"), META_SERVER, mcp_server_info());
    if (!c->how || c->how->ttl_ms < 0 ||
        strcmp(json_string_value(json_object_get(result, "resultType")), "complete") != 0)
        return;
    set_missing(result, "ttlMs", json_integer(c->how->ttl_ms));
    /* What may be kept for long is the same for everybody. */
    set_missing(result, "cacheScope", json_string(c->how->ttl_ms > 0 ? "public" : "private"));
}

void mcp_result(struct mcp_call *c, json_t *result)
{
    if (mcp_extras && mcp_extras->add)
        mcp_extras->add(c, result);
    if (c->era == MCP_MODERN)
        modernise(c, result);
    answer(c, rpc_result(c->id, result));
}

void mcp_error(struct mcp_call *c, int code, json_t *data, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    answer(c, rpc_error(c->id, code, data, text));
}

void mcp_call_fault(struct mcp_call *c, struct mcp_fault *f)
{
    answer(c, rpc_fault(c->id, f));
}

/* ---- before the answer ---- */

void mcp_notify(struct mcp_call *c, const char *method, json_t *params)
{
    c->outlet->notify(c, rpc_notification(method, params));
}

void mcp_progress(struct mcp_call *c, double progress, const char *message)
{
    if (!c->progress_token)
        return;
    mcp_notify(c, "notifications/progress",
               json_pack("{s:O,s:f,s:o*}", "progressToken", c->progress_token, "progress", progress,
                         "message", message ? text_json(message) : NULL));
}

/* ---- the log ---- */

/* As syslog has them, the least first. */
int mcp_level(const char *name)
{
    static const char *const names[] = {"debug", "info",     "notice", "warning",
                                        "error", "critical", "alert",  "emergency"};

    for (int i = 0; name && i < (int)(sizeof(names) / sizeof(*names)); i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* The modern protocol has a word for it in each request; the older one a setting, and all of it without. */
void mcp_log(struct mcp_call *c, const char *level, json_t *data)
{
    int least = 0;

    if (c->era == MCP_MODERN)
        least = mcp_level(json_string_value(json_object_get(c->meta, META_LOG_LEVEL)));
    else if (c->peer)
        least = c->peer->level;
    if (least < 0 || mcp_level(level) < least) {
        json_decref(data);
        return;
    }
    mcp_notify(c, "notifications/message",
               json_pack("{s:s,s:s,s:o}", "level", level, "logger", "retort", "data", data));
}
