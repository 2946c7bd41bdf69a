/* calls_server: calls about the server itself. */
#include <string.h>

#include "gate/calls.h"

extern const char openapi_json[];
extern const size_t openapi_json_len;

void call_root(struct request *r)
{
    reply_json(r, 200,
               json_pack("{s:s,s:s,s:s}", "name", "retort", "version", RETORT_VERSION, "openapi",
                         "/openapi.json"));
}

void call_health(struct request *r)
{
    if (r->gate->draining)
        reply_json(r, 503, json_pack("{s:s}", "status", "draining"));
    else
        reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
}

void call_metrics(struct request *r)
{
    struct buf text = {0};

    metrics_text(r->gate, r->holder, &text);
    reply_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

void call_openapi(struct request *r)
{
    struct buf text = {0};

    buf_add(&text, openapi_json, openapi_json_len);
    reply_text(r, 200, "application/json", &text);
}
