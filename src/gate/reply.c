/* reply: answers. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gate/inner.h"
#include "gate/inside.h"
#include "session/cell_json.h"
#include "session/utf8.h"

void response_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (MHD_add_response_header(response, name, value) != MHD_YES)
        bug("cannot add the header %s", name);
}

void response_begin(struct MHD_Response *response, const char *type)
{
    if (!response)
        bug("out of memory (an answer)");
    response_header(response, "X-Content-Type-Options", "nosniff");
    response_header(response, "X-Frame-Options", "DENY");
    response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (type)
        response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
}

struct MHD_Response *response_buffer(struct request *r, struct buf *body, const char *type)
{
    request_answer_holds(r, &r->answer_held, body->cap);
    size_t len = body->len;
    char *data = buf_steal(body);
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(len, data ? data : xcalloc(1, 1), free);

    response_begin(response, type);
    return response;
}

void reply_text(struct request *r, unsigned status, const char *type, struct buf *body)
{
    request_reply(r, status, response_buffer(r, body, type));
}

void reply_empty(struct request *r, unsigned status)
{
    struct buf none = {0};

    if (r->inner)
        inner_reply(r, status, NULL);
    else
        request_reply(r, status, response_buffer(r, &none, NULL));
}

void reply_preflight(struct request *r, const char *methods)
{
    struct buf none = {0};
    struct MHD_Response *response = response_buffer(r, &none, NULL);

    response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, methods);
    response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS,
                    "Authorization, X-API-Key, Content-Type, Range, MCP-Protocol-Version, "
                    "Mcp-Session-Id, Mcp-Method, Mcp-Name, Mcp-Param-Session, Last-Event-ID");
    response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "600");
    request_reply(r, 204, response);
}

static int to_buf(const char *data, size_t len, void *ctx)
{
    buf_add(ctx, data, len);
    return 0;
}

void json_add(struct buf *b, const json_t *j)
{
    if (json_dump_callback(j, to_buf, b, CELL_JSON_FLAGS) < 0)
        bug("cannot write JSON");
}

static struct MHD_Response *json_response(struct request *r, json_t *body)
{
    struct buf text = {0};

    json_add(&text, body);
    buf_add(&text, "\n", 1);
    json_decref(body);
    return response_buffer(r, &text, "application/json");
}

void reply_json(struct request *r, unsigned status, json_t *body)
{
    if (r->inner)
        inner_reply(r, status, body);
    else
        request_reply(r, status, json_response(r, body));
}

void reply_json_at(struct request *r, unsigned status, const char *location, json_t *body)
{
    if (r->inner) {
        inner_reply(r, status, body);
        return;
    }
    struct MHD_Response *response = json_response(r, body);
    response_header(response, MHD_HTTP_HEADER_LOCATION, location);
    request_reply(r, status, response);
}

/* `seconds`: until it may be asked again; 0 where that is not said. */
__attribute__((format(printf, 5, 0))) static void fail(struct request *r, unsigned status,
                                                       unsigned seconds, const char *code,
                                                       const char *fmt, va_list ap)
{
    char text[1024], after[16];

    vsnprintf(text, sizeof(text), fmt, ap);
    json_t *error = json_pack("{s:{s:s,s:o}}", "error", "code", code, "message", text_json(text));
    if (r->inner) {
        inner_reply(r, status, error);
        return;
    }
    struct MHD_Response *response = json_response(r, error);
    snprintf(after, sizeof(after), "%u", seconds);
    if (status == 401)
        response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"retort\"");
    if (seconds > 0)
        response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, after);
    request_reply(r, status, response);
}

void reply_error(struct request *r, unsigned status, const char *code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fail(r, status, 0, code, fmt, ap);
    va_end(ap);
}

void reply_later(struct request *r, unsigned status, unsigned seconds, const char *code,
                 const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fail(r, status, seconds, code, fmt, ap);
    va_end(ap);
}

void reply_store_failed(struct request *r, const struct err *e)
{
    log_line("store error=\"%s\"", e->text);
    reply_later(r, 503, 5, "store_failed",
                "the server's records cannot be read or written; its log says why");
}

/* ---- values ---- */

json_t *time_json(int64_t ms)
{
    char text[CLOCK_TEXT];

    return json_string(clock_text(ms, text));
}

json_t *text_json(const char *text)
{
    return cell_text_json(text, strlen(text));
}

char *json_text(const json_t *j)
{
    char *text = json_dumps(j, CELL_JSON_FLAGS | JSON_ENCODE_ANY);

    if (!text)
        bug("cannot write JSON");
    return text;
}

json_t *page_json(json_t *data, json_t *next)
{
    return json_pack("{s:o,s:o}", "data", data, "next", next ? next : json_null());
}
