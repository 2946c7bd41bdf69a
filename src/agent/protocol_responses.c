/* protocol_responses: OpenAI's Responses.
 *
 * Nothing is kept there (store: false), so what the model thought comes to us encrypted, as items of its output, and
 * goes back with the items that came of it: raw is the array of them, in their order, where there are such.
 */
#include <string.h>

#include "agent/protocol_inside.h"
#include "agent/talk.h"
#include "agent/tell.h"

/* ---- the request ---- */

static void path(const struct model *m, bool stream, struct buf *ret)
{
    (void)m;
    (void)stream;
    buf_add_text(ret, "/responses");
}

static void add_pictures(json_t *content, const json_t *pictures)
{
    json_t *picture;
    size_t i;

    json_array_foreach(pictures, i, picture)
    {
        json_array_append_new(content, json_pack("{s:s, s:o}", "type", "input_image", "image_url",
                                                 tell_data_url(picture)));
    }
}

static json_t *content_of(const char *type, const char *text)
{
    return json_pack("[{s:s, s:s}]", "type", type, "text", text);
}

static void user(json_t *to, const char *text, const json_t *pictures)
{
    json_t *content = content_of("input_text", text);

    add_pictures(content, pictures);
    json_array_append_new(
        to, json_pack("{s:s, s:s, s:o}", "type", "message", "role", "user", "content", content));
}

static void said(json_t *to, const struct model *m, const char *text, const json_t *calls,
                 const json_t *raw)
{
    json_t *call;
    size_t i;
    char id[TELL_ID];
    (void)m;

    if (json_is_array(raw)) {
        json_array_extend(to, (json_t *)raw);
        return;
    }
    if (*text)
        json_array_append_new(to,
                              json_pack("{s:s, s:s, s:o}", "type", "message", "role", "assistant",
                                        "content", content_of("output_text", text)));
    json_array_foreach(calls, i, call)
    {
        json_array_append_new(to, json_pack("{s:s, s:s, s:s, s:s}", "type", "function_call",
                                            "call_id", tell_id(member_text(call, "id"), id), "name",
                                            member_text(call, "name"), "arguments",
                                            member_text(call, "arguments")));
    }
}

static void results(json_t *to, const struct told_result *list, size_t n, const json_t *raw)
{
    char id[TELL_ID];

    for (size_t i = 0; i < n; i++) {
        json_t *output = json_string(list[i].text);
        if (list[i].pictures) {
            json_decref(output);
            output = content_of("input_text", list[i].text);
            add_pictures(output, list[i].pictures);
        }
        json_array_append_new(to, json_pack("{s:s, s:s, s:o}", "type", "function_call_output",
                                            "call_id", raw ? list[i].id : tell_id(list[i].id, id),
                                            "output", output));
    }
}

/* The models that do not think refuse to be asked for it. */
static bool may_reason(const char *name)
{
    static const char *const others[] = {"gpt-3", "gpt-4", "gpt-5-chat", "chatgpt-"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

static json_t *body(const struct model *m, const struct request *r)
{
    static const struct teller teller = {.user = user, .said = said, .results = results};
    json_t *b = json_pack("{s:s, s:s, s:o, s:b}", "model", m->name, "instructions", r->system,
                          "input", tell(m, r->talk, &teller), "store", 0);

    if (may_reason(m->name))
        json_object_set_new(b, "include", json_pack("[s]", "reasoning.encrypted_content"));
    if (m->tools)
        json_object_set_new(b, "tools",
                            json_pack("[{s:s, s:s, s:s, s:o, s:b}]", "type", "function", "name",
                                      TOOL_NAME, "description", tool_description, "parameters",
                                      tool_parameters(), "strict", 0));
    if (m->max_tokens)
        json_object_set_new(b, "max_output_tokens", json_integer(m->max_tokens));
    if (r->stream)
        json_object_set_new(b, "stream", json_true());
    return b;
}

/* ---- items ---- */

static bool is_kind(const json_t *item, const char *kind)
{
    return strcmp(member_text(item, "type"), kind) == 0;
}

/* Keep it to be sent back. Thoughts that are not encrypted are known to nobody but the server that forgot them. */
static int keep_item(struct reply *r, json_t *item, struct err *e)
{
    if (is_kind(item, "message") || is_kind(item, "function_call"))
        return keep_raw(r, json_incref(item), e);
    const json_t *sealed = json_object_get(item, "encrypted_content");
    if (!is_kind(item, "reasoning") || !json_is_string(sealed))
        return 0;
    json_t *summary = json_object_get(item, "summary");
    return keep_raw(r,
                    json_pack("{s:s, s:s, s:o, s:O}", "type", "reasoning", "id",
                              member_text(item, "id"), "summary",
                              json_is_array(summary) ? json_incref(summary) : json_array(),
                              "encrypted_content", sealed),
                    e);
}

static int begin_item(struct reply *r, unsigned number, const json_t *item, struct err *e)
{
    const char *id = member_text(item, "call_id");

    if (is_kind(item, "message"))
        return begin_text(r, e);
    if (!is_kind(item, "function_call") || reply_find_call(r, number))
        return 0;
    if (!*id) /* no result could be given for it */
        return not_understood(e);
    return reply_add_call(r, number, id, member_text(item, "name"), e);
}

/* Arguments that did not come in pieces. */
static int take_whole_arguments(struct reply *r, unsigned number, const json_t *j, struct err *e)
{
    const struct reply_call *c = reply_find_call(r, number);

    if (!c || c->arguments.len > 0)
        return 0;
    return take_arguments(r, number, json_object_get(j, "arguments"), e);
}

static int take_message(struct reply *r, const json_t *item, struct err *e)
{
    size_t i;
    json_t *part;

    json_array_foreach(json_object_get(item, "content"), i, part)
    {
        const json_t *refusal = json_object_get(part, "refusal");
        r->refused |= json_string_length(refusal) > 0;
        if (take_text(r, json_object_get(part, "text"), e) < 0 || take_text(r, refusal, e) < 0)
            return -1;
    }
    return 0;
}

static int take_output(struct reply *r, const json_t *output, struct err *e)
{
    size_t i;
    json_t *item;

    json_array_foreach(output, i, item)
    {
        if (begin_item(r, (unsigned)i, item, e) < 0 ||
            take_whole_arguments(r, (unsigned)i, item, e) < 0)
            return -1;
        if (is_kind(item, "message") && take_message(r, item, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- the end ---- */

/* Are there items that cannot be made again from text and calls? */
static bool has_own(const json_t *raw)
{
    size_t i;
    json_t *item;

    json_array_foreach(raw, i, item)
    {
        if (is_kind(item, "reasoning") || json_object_get(item, "phase"))
            return true;
    }
    return false;
}

static int take_end(struct reply *r, const json_t *response, struct err *e)
{
    const json_t *usage = json_object_get(response, "usage");
    const char *status = member_text(response, "status");
    const char *why = member_text(json_object_get(response, "incomplete_details"), "reason");

    if (strcmp(status, "failed") == 0 || strcmp(status, "cancelled") == 0)
        return server_failed(response, e);
    if (r->text.len == 0 && r->n_calls == 0 &&
        take_output(r, json_object_get(response, "output"), e) < 0)
        return -1;
    if (strcmp(status, "incomplete") == 0) {
        r->refused |= strcmp(why, "content_filter") == 0;
        r->cut |= strcmp(why, "content_filter") != 0;
    }
    if (r->cut || !has_own(r->raw)) { /* thoughts without what came of them are refused */
        json_decref(r->raw);
        r->raw = NULL;
    }
    r->tokens_in = member_tokens(usage, "input_tokens");
    r->tokens_out = member_tokens(usage, "output_tokens");
    r->over = true;
    return 0;
}

static int whole(struct reply *r, const json_t *b, struct err *e)
{
    const json_t *output = json_object_get(b, "output");
    size_t i;
    json_t *item;

    if (!json_is_array(output))
        return protocol_error(b) ? server_failed(b, e) : not_understood(e);
    json_array_foreach(output, i, item)
    {
        if (keep_item(r, item, e) < 0)
            return -1;
    }
    return take_end(r, b, e);
}

/* ---- events ---- */

static int take_event(struct reply *r, const char *type, const json_t *j, struct err *e)
{
    json_t *item = json_object_get(j, "item");
    unsigned number = 0;

    if (strcmp(type, "response.output_text.delta") == 0)
        return take_text(r, json_object_get(j, "delta"), e);
    if (strcmp(type, "response.refusal.delta") == 0) {
        r->refused = true;
        return take_text(r, json_object_get(j, "delta"), e);
    }
    if (strcmp(type, "response.completed") == 0 || strcmp(type, "response.incomplete") == 0)
        return take_end(r, json_object_get(j, "response"), e);
    if (strcmp(type, "response.failed") == 0 || strcmp(type, "response.cancelled") == 0)
        return server_failed(json_object_get(j, "response"), e);
    if (strcmp(type, "error") == 0)
        return server_failed(j, e);
    if (!member_number(j, "output_index", &number))
        return 0;
    if (strcmp(type, "response.output_item.added") == 0)
        return begin_item(r, number, item, e);
    if (strcmp(type, "response.function_call_arguments.delta") == 0)
        return take_arguments(r, number, json_object_get(j, "delta"), e);
    if (strcmp(type, "response.function_call_arguments.done") == 0)
        return take_whole_arguments(r, number, j, e);
    if (strcmp(type, "response.output_item.done") != 0)
        return 0;
    if (is_kind(item, "function_call") &&
        (begin_item(r, number, item, e) < 0 || take_whole_arguments(r, number, item, e) < 0))
        return -1;
    return keep_item(r, item, e);
}

static int event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
    if (len == strlen("[DONE]") && memcmp(data, "[DONE]", len) == 0)
        return 0;
    json_t *j = load_event(r, data, len, e);
    if (!j)
        return -1;
    const char *type = member_text(j, "type");
    int result = take_event(r, *type ? type : name, j, e);
    json_decref(j);
    return result;
}

static void headers(const struct model *m, void (*add)(void *ctx, const char *line), void *ctx)
{
    protocol_chat.headers(m, add, ctx);
}

const struct protocol protocol_responses = {.name = "responses",
                                            .version = "/v1",
                                            .path = path,
                                            .headers = headers,
                                            .body = body,
                                            .event = event,
                                            .whole = whole};
