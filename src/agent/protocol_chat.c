/* protocol_chat: chat completions, OpenAI's older API, and everybody's who is compatible with it: more or less.
 *
 * What servers differ in, and is taken as it comes: calls without an index, or all with the index 0; arguments as an
 * object; content in parts; no end but "[DONE]".
 *
 * raw is {"reasoning_content":"…", "extra":{"<call's id>":…}}: DeepSeek and Kimi refuse a conversation whose calls come
 * back without the reasoning that led to them, and Gemini one whose calls have lost their "extra_content".
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
    buf_add_text(ret, "/chat/completions");
}

static void headers(const struct model *m, void (*add)(void *ctx, const char *line), void *ctx)
{
    if (!m->key)
        return;
    cleanup_free char *line = xasprintf("Authorization: Bearer %s", m->key);
    add(ctx, line);
    explicit_bzero(line, strlen(line));
}

static json_t *text_part(const char *text)
{
    return json_pack("{s:s, s:s}", "type", "text", "text", text);
}

static void user(json_t *to, const char *text, const json_t *pictures)
{
    json_t *parts = json_array(), *picture;
    size_t i;

    json_array_append_new(parts, text_part(text));
    json_array_foreach(pictures, i, picture)
    {
        json_array_append_new(parts, json_pack("{s:s, s:{s:o}}", "type", "image_url", "image_url",
                                               "url", tell_data_url(picture)));
    }
    tell_push(to, "user", "content", parts);
}

/* As they were where they are JSON: servers parse them, and fail on anything else. */
static json_t *argument_text(const char *text)
{
    json_t *object = tell_arguments(text);
    cleanup_free char *clean = json_dumps(object, JSON_COMPACT);

    json_decref(object);
    return json_string(clean);
}

static void said(json_t *to, const struct model *m, const char *text, const json_t *calls,
                 const json_t *raw)
{
    json_t *message = json_pack("{s:s, s:s?}", "role", "assistant", "content", *text ? text : NULL);
    const json_t *extra = json_object_get(raw, "extra");
    json_t *list = json_array(), *call;
    size_t i;
    (void)m;

    json_array_foreach(calls, i, call)
    {
        const char *id = member_text(call, "id");
        json_t *sent = json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function",
                                 "function", "name", member_text(call, "name"), "arguments",
                                 argument_text(member_text(call, "arguments")));
        if (json_object_get(extra, id))
            json_object_set(sent, "extra_content", json_object_get(extra, id));
        json_array_append_new(list, sent);
    }
    if (calls)
        json_object_set(message, "tool_calls", list);
    json_decref(list);
    if (json_object_get(raw, "reasoning_content"))
        json_object_set(message, "reasoning_content", json_object_get(raw, "reasoning_content"));
    json_array_append_new(to, message);
}

/* A tool's message has no pictures, so a user's with all of them follows. */
static void results(json_t *to, const struct told_result *list, size_t n, const json_t *raw)
{
    json_t *pictures = json_array();
    (void)raw;

    for (size_t i = 0; i < n; i++) {
        json_array_append_new(to, json_pack("{s:s, s:s, s:s}", "role", "tool", "tool_call_id",
                                            list[i].id, "content", list[i].text));
        if (list[i].pictures)
            json_array_extend(pictures, list[i].pictures);
    }
    if (json_array_size(pictures) > 0)
        user(to, "The pictures that the code has drawn:", pictures);
    json_decref(pictures);
}

/* Servers that know nothing of parts know text. */
static void flatten(json_t *messages)
{
    json_t *message, *part;
    size_t i, k;

    json_array_foreach(messages, i, message)
    {
        cleanup_buf struct buf text = {0};
        json_t *parts = json_object_get(message, "content");
        bool plain = json_is_array(parts);
        json_array_foreach(parts, k, part)
        {
            plain &= json_object_get(part, "text") != NULL;
            buf_add_fmt(&text, "%s%s", k ? "\n\n" : "", member_text(part, "text"));
        }
        if (plain)
            json_object_set_new(message, "content", json_string(buf_text(&text)));
    }
}

static json_t *body(const struct model *m, const struct request *r)
{
    static const struct teller teller = {.user = user, .said = said, .results = results};
    json_t *messages = tell(m, r->talk, &teller);
    json_t *b = json_pack("{s:s, s:o}", "model", m->name, "messages", messages);
    bool openai = strncmp(m->base, "https://api.openai.com/", 23) == 0;

    flatten(messages);
    json_array_insert_new(messages, 0,
                          json_pack("{s:s, s:s}", "role", "system", "content", r->system));
    if (m->tools)
        json_object_set_new(b, "tools",
                            json_pack("[{s:s, s:{s:s, s:s, s:o}}]", "type", "function", "function",
                                      "name", TOOL_NAME, "description", tool_description,
                                      "parameters", tool_parameters()));
    if (m->max_tokens)
        json_object_set_new(b, openai ? "max_completion_tokens" : "max_tokens",
                            json_integer(m->max_tokens));
    if (r->stream) {
        json_object_set_new(b, "stream", json_true());
        json_object_set_new(b, "stream_options", json_pack("{s:b}", "include_usage", 1));
    }
    return b;
}

/* ---- the reply ---- */

static json_t *raw_object(struct reply *r)
{
    if (!r->raw)
        r->raw = json_pack("{s:{}}", "extra");
    return r->raw;
}

static int take_content(struct reply *r, const json_t *content, struct err *e)
{
    size_t i;
    json_t *part;

    json_array_foreach(content, i, part)
    {
        if (take_text(r, json_object_get(part, "text"), e) < 0)
            return -1;
    }
    return take_text(r, content, e);
}

/* It is not shown; see raw above. */
static int take_reasoning(struct reply *r, const json_t *text, struct err *e)
{
    if (!json_is_string(text))
        return 0;
    if (reply_count_raw(r, json_string_length(text), e) < 0)
        return -1;
    json_object_set_new(raw_object(r), "reasoning_content", json_string(""));
    buf_add(&r->part_text, json_string_value(text), json_string_length(text));
    return 0;
}

static int take_extra(struct reply *r, const struct reply_call *c, const json_t *extra,
                      struct err *e)
{
    if (!json_is_object(extra))
        return 0;
    if (reply_count_raw(r, json_weight(extra), e) < 0)
        return -1;
    json_object_set_new(json_object_get(raw_object(r), "extra"), c->id, json_deep_copy(extra));
    return 0;
}

static struct reply_call *find_by_id(struct reply *r, const char *id)
{
    for (unsigned i = 0; i < r->n_calls; i++)
        if (strcmp(r->calls[i].id, id) == 0)
            return &r->calls[i];
    return NULL;
}

/* The call that this is a piece of; NULL: a new one, which gets that number. */
static struct reply_call *find_call(struct reply *r, const json_t *piece, const char *id,
                                    const char *name, unsigned *ret_number)
{
    struct reply_call *c;

    if (member_number(piece, "index", ret_number)) {
        c = reply_find_call(r, *ret_number);
        return c && *id && *name && strcmp(c->id, id) != 0 ? NULL : c;
    }
    *ret_number = PROTOCOL_NUMBER_MAX + 1 + r->n_calls;
    if (*id)
        return find_by_id(r, id);
    return *name || r->n_calls == 0 ? NULL : &r->calls[r->n_calls - 1];
}

static int take_call(struct reply *r, const json_t *piece, struct err *e)
{
    const json_t *function = json_object_get(piece, "function");
    const char *id = member_text(piece, "id"), *name = member_text(function, "name");
    unsigned number;
    struct reply_call *c = find_call(r, piece, id, name, &number);

    if (!c) {
        if (reply_add_call(r, number, id, name, e) < 0)
            return -1;
        c = &r->calls[r->n_calls - 1];
    }
    if (take_extra(r, c, json_object_get(piece, "extra_content"), e) < 0)
        return -1;
    return take_arguments(r, c->number, json_object_get(function, "arguments"), e);
}

/* A message, or more of it. */
static int take_message(struct reply *r, const json_t *message, struct err *e)
{
    size_t i;
    json_t *call;
    const json_t *refusal = json_object_get(message, "refusal");

    if (take_reasoning(r, json_object_get(message, "reasoning_content"), e) < 0 ||
        take_content(r, json_object_get(message, "content"), e) < 0)
        return -1;
    json_array_foreach(json_object_get(message, "tool_calls"), i, call)
    {
        if (take_call(r, call, e) < 0)
            return -1;
    }
    r->refused |= json_string_length(refusal) > 0;
    return take_text(r, refusal, e);
}

static void end(struct reply *r)
{
    r->over = true;
    if (r->n_calls == 0) { /* only calls want it back */
        json_decref(r->raw);
        r->raw = NULL;
    }
    if (json_object_get(r->raw, "reasoning_content"))
        json_object_set_new(
            r->raw, "reasoning_content",
            json_stringn(r->part_text.len ? r->part_text.data : "", r->part_text.len));
}

static void take_reason(struct reply *r, const char *reason)
{
    if (!*reason)
        return;
    r->cut |= strcmp(reason, "length") == 0;
    r->refused |= strcmp(reason, "content_filter") == 0;
    end(r);
}

static void take_usage(struct reply *r, const json_t *usage)
{
    if (!json_is_object(usage))
        return;
    r->tokens_in = member_tokens(usage, "prompt_tokens");
    r->tokens_out = member_tokens(usage, "completion_tokens");
}

static int take_choice(struct reply *r, const json_t *j, const char *member, struct err *e)
{
    const json_t *choice = json_array_get(json_object_get(j, "choices"), 0);
    const json_t *error = json_object_get(j, "error");
    unsigned index = 0;

    if ((error && !json_is_null(error)) || strcmp(member_text(j, "object"), "error") == 0)
        return server_failed(j, e);
    take_usage(r, json_object_get(j, "usage"));
    member_number(choice, "index", &index);
    if (index != 0)
        return 0;
    if (take_message(r, json_object_get(choice, member), e) < 0)
        return -1;
    take_reason(r, member_text(choice, "finish_reason"));
    return 0;
}

static int event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
    (void)name;
    if (len == strlen("[DONE]") && memcmp(data, "[DONE]", len) == 0) {
        end(r);
        return 0;
    }
    json_t *j = load_event(r, data, len, e);
    if (!j)
        return -1;
    int result = take_choice(r, j, "delta", e);
    json_decref(j);
    return result;
}

static int whole(struct reply *r, const json_t *b, struct err *e)
{
    const json_t *choice = json_array_get(json_object_get(b, "choices"), 0);

    if (take_choice(r, b, "message", e) < 0)
        return -1;
    if (!json_is_object(json_object_get(choice, "message")))
        return not_understood(e);
    end(r);
    return 0;
}

const struct protocol protocol_chat = {.name = "chat",
                                       .version = "/v1",
                                       .path = path,
                                       .headers = headers,
                                       .body = body,
                                       .event = event,
                                       .whole = whole};
