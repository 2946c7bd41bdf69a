/* protocol_messages: Anthropic's Messages.
 *
 * A message is a list of blocks, which come one after the other: start, deltas, stop. Blocks of thinking are signed,
 * and go back as they were and where they were: raw is the array of all blocks, where there are such.
 */
#include <string.h>

#include "agent/blocks.h"
#include "agent/protocol_inside.h"
#include "agent/talk.h"
#include "agent/tell.h"

#define MAX_TOKENS 16384 /* it wants one; every model that there is takes this */

/* ---- the request ---- */

static void path(const struct model *m, bool stream, struct buf *ret)
{
    (void)m;
    (void)stream;
    buf_add_text(ret, "/messages");
}

static void headers(const struct model *m, void (*add)(void *ctx, const char *line), void *ctx)
{
    add(ctx, "anthropic-version: 2023-06-01");
    if (!m->key)
        return;
    cleanup_free char *line = xasprintf("x-api-key: %s", m->key);
    add(ctx, line);
    explicit_bzero(line, strlen(line));
}

/* Text, if there is any: a block without is refused. Then pictures. */
static json_t *content_of(const char *text, const json_t *pictures)
{
    json_t *content = json_array(), *picture;
    size_t i;

    if (!blocks_blank(text, strlen(text)))
        json_array_append_new(content, json_pack("{s:s, s:s}", "type", "text", "text", text));
    json_array_foreach(pictures, i, picture)
    {
        json_array_append_new(content, json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "image",
                                                 "source", "type", "base64", "media_type",
                                                 member_text(picture, "type"), "data",
                                                 member_text(picture, "data")));
    }
    return content;
}

static void user(json_t *to, const char *text, const json_t *pictures)
{
    tell_push(to, "user", "content", content_of(text, pictures));
}

static void said(json_t *to, const struct model *m, const char *text, const json_t *calls,
                 const json_t *raw)
{
    json_t *content, *call;
    size_t i;
    char id[TELL_ID];
    (void)m;

    if (json_is_array(raw)) {
        tell_push(to, "assistant", "content", json_copy((json_t *)raw));
        return;
    }
    content = content_of(text, NULL);
    json_array_foreach(calls, i, call)
    {
        json_array_append_new(content, json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id",
                                                 tell_id(member_text(call, "id"), id), "name",
                                                 member_text(call, "name"), "input",
                                                 tell_arguments(member_text(call, "arguments"))));
    }
    tell_push(to, "assistant", "content", content);
}

static void results(json_t *to, const struct told_result *list, size_t n, const json_t *raw)
{
    json_t *content = json_array();
    char id[TELL_ID];

    for (size_t i = 0; i < n; i++) {
        json_t *result = json_pack("{s:s, s:s, s:o}", "type", "tool_result", "tool_use_id",
                                   raw ? list[i].id : tell_id(list[i].id, id), "content",
                                   content_of(list[i].text, list[i].pictures));
        if (list[i].failed)
            json_object_set_new(result, "is_error", json_true());
        json_array_append_new(content, result);
    }
    tell_push(to, "user", "content", content);
}

static json_t *breakpoint(void)
{
    return json_pack("{s:s}", "type", "ephemeral");
}

/* Each question repeats the conversation: what was said up to here is read from a cache the next time. */
static void cache_up_to_here(json_t *messages)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    json_t *content = json_object_get(last, "content");
    json_t *part = json_array_get(content, json_array_size(content) - 1);

    if (part && strcmp(member_text(last, "role"), "user") == 0)
        json_object_set_new(part, "cache_control", breakpoint());
}

static json_t *body(const struct model *m, const struct request *r)
{
    static const struct teller teller = {.user = user, .said = said, .results = results};
    json_t *messages = tell(m, r->talk, &teller);
    json_t *b =
        json_pack("{s:s, s:i, s:[{s:s, s:s, s:o}], s:o}", "model", m->name, "max_tokens",
                  (int)(m->max_tokens ? m->max_tokens : MAX_TOKENS), "system", "type", "text",
                  "text", r->system, "cache_control", breakpoint(), "messages", messages);

    cache_up_to_here(messages);
    if (m->tools) {
        json_t *tool = json_pack("{s:s, s:s, s:o}", "name", TOOL_NAME, "description",
                                 tool_description, "input_schema", tool_parameters());
        if (r->stream) /* else the code comes only when it is whole */
            json_object_set_new(tool, "eager_input_streaming", json_true());
        json_object_set_new(b, "tools", json_pack("[o]", tool));
    }
    if (r->stream)
        json_object_set_new(b, "stream", json_true());
    return b;
}

/* ---- blocks ---- */

static bool is_kind(const json_t *j, const char *kind)
{
    return strcmp(member_text(j, "type"), kind) == 0;
}

static void drop_part(struct reply *r)
{
    json_decref(r->part);
    r->part = NULL;
    r->part_text.len = 0;
}

/* It comes at once, or in pieces. */
static int take_signature(struct reply *r, const json_t *piece, struct err *e)
{
    json_t *pieces = json_object_get(r->part, "signature");

    if (!json_is_string(piece))
        return 0;
    if (!pieces)
        json_object_set_new(r->part, "signature", pieces = json_array());
    json_array_append_new(pieces, json_string(json_string_value(piece)));
    return reply_count_raw(r, json_weight(piece), e);
}

static json_t *whole_signature(const struct reply *r)
{
    cleanup_buf struct buf text = {0};
    json_t *piece;
    size_t i;

    json_array_foreach(json_object_get(r->part, "signature"), i, piece)
    {
        buf_add_text(&text, json_string_value(piece));
    }
    return json_string(buf_text(&text));
}

static int begin_block(struct reply *r, unsigned number, const json_t *block, struct err *e)
{
    const json_t *input = json_object_get(block, "input");

    if (r->part)
        return not_understood(e); /* one is not over */
    r->part = json_pack("{s:s}", "type", member_text(block, "type"));
    r->part_number = number;
    if (is_kind(block, "text")) {
        if (begin_text(r, e) < 0)
            return -1;
        r->part_from = r->text.len;
        return take_text(r, json_object_get(block, "text"), e);
    }
    if (is_kind(block, "tool_use")) {
        if (reply_add_call(r, number, member_text(block, "id"), member_text(block, "name"), e) < 0)
            return -1;
        return json_object_size(input) > 0 ? take_arguments(r, number, input, e) : 0;
    }
    if (!is_kind(block, "thinking") && !is_kind(block, "redacted_thinking"))
        return 0;
    json_object_set_new(r->part, "data", json_string(member_text(block, "data")));
    buf_add_text(&r->part_text, member_text(block, "thinking"));
    if (reply_count_raw(r, strlen(member_text(block, "data")) + r->part_text.len, e) < 0)
        return -1;
    return take_signature(r, json_object_get(block, "signature"), e);
}

static int take_delta(struct reply *r, unsigned number, const json_t *delta, struct err *e)
{
    const json_t *thinking = json_object_get(delta, "thinking");

    if (!r->part || number != r->part_number)
        return not_understood(e);
    if (is_kind(delta, "text_delta"))
        return take_text(r, json_object_get(delta, "text"), e);
    if (is_kind(delta, "input_json_delta") && is_kind(r->part, "tool_use"))
        return take_arguments(r, number, json_object_get(delta, "partial_json"), e);
    if (is_kind(delta, "signature_delta"))
        return take_signature(r, json_object_get(delta, "signature"), e);
    if (!is_kind(delta, "thinking_delta") || !json_is_string(thinking))
        return 0;
    if (reply_count_raw(r, json_string_length(thinking), e) < 0)
        return -1;
    buf_add(&r->part_text, json_string_value(thinking), json_string_length(thinking));
    return 0;
}

/* The block that is over, as it goes back. NULL: it does not. */
static json_t *whole_block(struct reply *r)
{
    struct reply_call *c = reply_find_call(r, r->part_number);
    size_t len = r->text.len - r->part_from;
    const char *text = buf_text(&r->text) + r->part_from;

    if (is_kind(r->part, "text") && !blocks_blank(text, len))
        return json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(text, len));
    if (is_kind(r->part, "tool_use") && c)
        return json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id", c->id, "name", c->name,
                         "input", tell_arguments(buf_text(&c->arguments)));
    if (is_kind(r->part, "thinking"))
        return json_pack("{s:s, s:o, s:o}", "type", "thinking", "thinking",
                         json_stringn(buf_text(&r->part_text), r->part_text.len), "signature",
                         whole_signature(r));
    if (is_kind(r->part, "redacted_thinking"))
        return json_pack("{s:s, s:s}", "type", "redacted_thinking", "data",
                         member_text(r->part, "data"));
    return NULL;
}

static int end_block(struct reply *r, unsigned number, struct err *e)
{
    if (!r->part || number != r->part_number)
        return not_understood(e);
    json_t *block = whole_block(r);
    drop_part(r);
    return block ? keep_raw(r, block, e) : 0;
}

/* ---- the end ---- */

static bool has_thoughts(const json_t *raw)
{
    size_t i;
    json_t *block;

    json_array_foreach(raw, i, block)
    {
        if (is_kind(block, "thinking") || is_kind(block, "redacted_thinking"))
            return true;
    }
    return false;
}

static void end(struct reply *r)
{
    r->over = true;
    drop_part(r);
    if (r->cut || !has_thoughts(r->raw)) {
        json_decref(r->raw);
        r->raw = NULL;
    }
}

static void take_reason(struct reply *r, const char *reason)
{
    r->cut |=
        strcmp(reason, "max_tokens") == 0 || strcmp(reason, "model_context_window_exceeded") == 0;
    r->refused |= strcmp(reason, "refusal") == 0;
}

/* Counts grow from event to event, and some are in one only. */
static void take_usage(struct reply *r, const json_t *usage)
{
    uint64_t in = member_tokens(usage, "input_tokens") +
                  member_tokens(usage, "cache_creation_input_tokens") +
                  member_tokens(usage, "cache_read_input_tokens");
    uint64_t out = member_tokens(usage, "output_tokens");

    r->tokens_in = in > r->tokens_in ? in : r->tokens_in;
    r->tokens_out = out > r->tokens_out ? out : r->tokens_out;
}

static int whole(struct reply *r, const json_t *b, struct err *e)
{
    const json_t *content = json_object_get(b, "content");
    size_t i;
    json_t *block;

    if (!json_is_array(content))
        return protocol_error(b) ? server_failed(b, e) : not_understood(e);
    json_array_foreach(content, i, block)
    {
        if (begin_block(r, (unsigned)i, block, e) < 0 || end_block(r, (unsigned)i, e) < 0)
            return -1;
    }
    take_reason(r, member_text(b, "stop_reason"));
    take_usage(r, json_object_get(b, "usage"));
    end(r);
    return 0;
}

/* ---- events ---- */

static int take_event(struct reply *r, const char *type, const json_t *j, struct err *e)
{
    unsigned number;
    bool numbered = member_number(j, "index", &number);

    if (strcmp(type, "message_start") == 0)
        take_usage(r, json_object_get(json_object_get(j, "message"), "usage"));
    if (strcmp(type, "message_delta") == 0) {
        take_reason(r, member_text(json_object_get(j, "delta"), "stop_reason"));
        take_usage(r, json_object_get(j, "usage"));
    }
    if (strcmp(type, "message_stop") == 0)
        end(r);
    if (strcmp(type, "error") == 0)
        return server_failed(j, e);
    if (strncmp(type, "content_block_", strlen("content_block_")) != 0)
        return 0;
    if (!numbered)
        return not_understood(e);
    if (strcmp(type, "content_block_start") == 0)
        return begin_block(r, number, json_object_get(j, "content_block"), e);
    if (strcmp(type, "content_block_delta") == 0)
        return take_delta(r, number, json_object_get(j, "delta"), e);
    if (strcmp(type, "content_block_stop") == 0)
        return end_block(r, number, e);
    return 0;
}

static int event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
    json_t *j = load_event(r, data, len, e);
    if (!j)
        return -1;
    const char *type = member_text(j, "type");
    int result = take_event(r, *type ? type : name, j, e);
    json_decref(j);
    return result;
}

const struct protocol protocol_messages = {.name = "messages",
                                           .version = "/v1",
                                           .path = path,
                                           .headers = headers,
                                           .body = body,
                                           .event = event,
                                           .whole = whole};
