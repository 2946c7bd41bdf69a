/* rpc: messages of JSON-RPC 2.0, as MCP has them: parameters by name, ids that are a text or a whole number.
 *
 * What comes here is hostile. It is counted before it is parsed: a value of two letters takes a hundred bytes in
 * memory, and what is nested is walked by recursion, here and in whoever looks at it later.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/mcp/protocol.h"
#include "session/cell_from_json.h"

#define VALUES_MAX 20000
#define DEPTH_MAX 64
#define METHOD_LONGEST 128

int mcp_fault_set(struct mcp_fault *f, int code, const char *fmt, ...)
{
    va_list ap;

    f->code = code;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    return -1;
}

/* How deep it is nested; what is no JSON may have any depth. */
static size_t depth_of(const char *text, size_t len)
{
    size_t depth = 0, most = 0;
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '{' || text[i] == '['))
            depth++;
        else if (!quoted && depth > 0 && (text[i] == '}' || text[i] == ']'))
            depth--;
        most = depth > most ? depth : most;
    }
    return most;
}

json_t *rpc_parse(const char *text, size_t len, struct mcp_fault *f)
{
    json_error_t at;

    if (len > RPC_MESSAGE_MAX || json_count_values(text, len) > VALUES_MAX ||
        depth_of(text, len) > DEPTH_MAX) {
        mcp_fault_set(f, MCP_INVALID_REQUEST,
                      "a message has at most %u bytes, %d values and %d levels", RPC_MESSAGE_MAX,
                      VALUES_MAX, DEPTH_MAX);
        return NULL;
    }
    /* A name that is there twice could mean one thing to us and another to who looked at it before. */
    json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &at);
    if (!j)
        mcp_fault_set(f, MCP_PARSE_ERROR, "this is not JSON: %s (line %d, column %d)", at.text,
                      at.line, at.column);
    return j;
}

bool rpc_is_id(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= RPC_ID_LONGEST);
}

static int read_response(json_t *message, struct rpc *ret, struct mcp_fault *f)
{
    ret->kind = RPC_RESPONSE;
    ret->result = json_object_get(message, "result");
    ret->error = json_object_get(message, "error");
    if (!ret->result == !ret->error)
        return mcp_fault_set(f, MCP_INVALID_REQUEST,
                             "a message has a \"method\", a \"result\" or an \"error\"");
    if (ret->error && !json_is_object(ret->error))
        return mcp_fault_set(f, MCP_INVALID_REQUEST, "an \"error\" must be an object");
    /* That of an error may be null: then nobody can say whose it is, and it is passed over. */
    if (!ret->id && !ret->error)
        return mcp_fault_set(f, MCP_INVALID_REQUEST, "a \"result\" must have an \"id\"");
    return 0;
}

int rpc_read(json_t *message, struct rpc *ret, struct mcp_fault *f)
{
    json_t *id = json_object_get(message, "id");
    const json_t *method = json_object_get(message, "method");
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));

    *ret = (struct rpc){.id = rpc_is_id(id) ? id : NULL, .method = json_string_value(method)};
    if (!json_is_object(message) || !version || strcmp(version, "2.0") != 0)
        return mcp_fault_set(f, MCP_INVALID_REQUEST,
                             "a message must be an object with \"jsonrpc\": \"2.0\"");
    if (!method)
        return read_response(message, ret, f);
    ret->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
    ret->params = json_object_get(message, "params");
    if (id && !ret->id)
        return mcp_fault_set(f, MCP_INVALID_REQUEST,
                             "an \"id\" must be a whole number, or a text of at most %d bytes",
                             RPC_ID_LONGEST);
    if (!ret->method || json_string_length(method) > METHOD_LONGEST)
        return mcp_fault_set(f, MCP_INVALID_REQUEST,
                             "a \"method\" must be a text of at most %d bytes", METHOD_LONGEST);
    if (ret->params && !json_is_object(ret->params))
        return mcp_fault_set(f, MCP_INVALID_REQUEST, "\"params\" must be an object");
    return 0;
}

/* ---- ours ---- */

static json_t *built(json_t *message)
{
    if (!message)
        bug("cannot build a message");
    return message;
}

json_t *rpc_result(json_t *id, json_t *result)
{
    return built(json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

/* Where nobody knows the id there is none: null would be no id of MCP's. */
json_t *rpc_error(json_t *id, int code, json_t *data, const char *text)
{
    return built(json_pack("{s:s,s:O*,s:{s:i,s:o,s:o*}}", "jsonrpc", "2.0", "id", id, "error",
                           "code", code, "message", text_json(text), "data", data));
}

json_t *rpc_fault(json_t *id, struct mcp_fault *f)
{
    return rpc_error(id, f->code, f->data, f->text);
}

json_t *rpc_notification(const char *method, json_t *params)
{
    return built(json_pack("{s:s,s:s,s:o*}", "jsonrpc", "2.0", "method", method, "params", params));
}

json_t *rpc_request(json_int_t id, const char *method, json_t *params)
{
    return built(json_pack("{s:s,s:I,s:s,s:o*}", "jsonrpc", "2.0", "id", id, "method", method,
                           "params", params));
}
