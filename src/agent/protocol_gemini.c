/* protocol_gemini: Google's generateContent.
 *
 * A message is a list of parts; text comes in many, a call in one. Some parts are signed (thoughtSignature), and must
 * go back as they were and where they were: raw is the array of all parts, where there are such.
 */
#include <ctype.h>
#include <string.h>

#include "agent/protocol_inside.h"
#include "agent/talk.h"
#include "agent/tell.h"
#include "session/sanitise.h"

#define SIGNATURE "thoughtSignature"

/* ---- the request ---- */

static void add_escaped(struct buf *b, const char *text)
{
    for (; *text; text++) {
        if (isalnum((unsigned char)*text) || strchr("-._~/", *text))
            buf_add(b, text, 1);
        else
            buf_add_fmt(b, "%%%02X", (unsigned char)*text);
    }
}

/* Tuned models have names with a folder of their own. */
static void path(const struct model *m, bool stream, struct buf *ret)
{
    buf_add_text(ret, strchr(m->name, '/') ? "/" : "/models/");
    add_escaped(ret, m->name);
    buf_add_text(ret, stream ? ":streamGenerateContent?alt=sse" : ":generateContent");
}

static void headers(const struct model *m, void (*add)(void *ctx, const char *line), void *ctx)
{
    if (!m->key)
        return;
    cleanup_free char *line = xasprintf("x-goog-api-key: %s", m->key);
    add(ctx, line);
    explicit_bzero(line, strlen(line));
}

static void add_pictures(json_t *parts, const json_t *pictures)
{
    json_t *picture;
    size_t i;

    json_array_foreach(pictures, i, picture)
    {
        json_array_append_new(parts, json_pack("{s:{s:s, s:s}}", "inlineData", "mimeType",
                                               member_text(picture, "type"), "data",
                                               member_text(picture, "data")));
    }
}

static void user(json_t *to, const char *text, const json_t *pictures)
{
    json_t *parts = json_pack("[{s:s}]", "text", text);

    add_pictures(parts, pictures);
    tell_push(to, "user", "parts", parts);
}

/* From the third generation on a call without a signature is refused, also one that another model has made; this
 * is what its documentation says to put there then. */
static bool wants_signature(const char *name)
{
    return !strstr(name, "gemini-1") && !strstr(name, "gemini-2");
}

static void said(json_t *to, const struct model *m, const char *text, const json_t *calls,
                 const json_t *raw)
{
    json_t *parts = json_array(), *call;
    size_t i;

    if (json_is_array(raw))
        json_array_extend(parts, (json_t *)raw);
    else if (*text)
        json_array_append_new(parts, json_pack("{s:s}", "text", text));
    json_array_foreach(raw ? NULL : calls, i, call)
    {
        json_t *part =
            json_pack("{s:{s:s, s:o}}", "functionCall", "name", member_text(call, "name"), "args",
                      tell_arguments(member_text(call, "arguments")));
        if (i == 0 && wants_signature(m->name))
            json_object_set_new(part, SIGNATURE, json_string("skip_thought_signature_validator"));
        json_array_append_new(parts, part);
    }
    tell_push(to, "model", "parts", parts);
}

/* The call with this number among the parts as they were; NULL: there is none. */
static const json_t *nth_call(const json_t *raw, size_t n)
{
    size_t i;
    json_t *part;

    json_array_foreach(raw, i, part)
    {
        const json_t *call = json_object_get(part, "functionCall");
        if (call && n-- == 0)
            return call;
    }
    return NULL;
}

static void results(json_t *to, const struct told_result *list, size_t n, const json_t *raw)
{
    json_t *parts = json_array();

    for (size_t i = 0; i < n; i++) {
        const json_t *call = nth_call(raw, i);
        json_t *response =
            json_pack("{s:s, s:{s:s}}", "name", call ? member_text(call, "name") : list[i].name,
                      "response", list[i].failed ? "error" : "output", list[i].text);
        if (json_object_get(call, "id"))
            json_object_set(response, "id", json_object_get(call, "id"));
        json_array_append_new(parts, json_pack("{s:o}", "functionResponse", response));
    }
    for (size_t i = 0; i < n; i++)
        add_pictures(parts, list[i].pictures);
    tell_push(to, "user", "parts", parts);
}

static json_t *body(const struct model *m, const struct request *r)
{
    static const struct teller teller = {.user = user, .said = said, .results = results};
    json_t *b = json_pack("{s:{s:[{s:s}]}, s:o}", "systemInstruction", "parts", "text", r->system,
                          "contents", tell(m, r->talk, &teller));

    if (m->tools)
        json_object_set_new(b, "tools",
                            json_pack("[{s:[{s:s, s:s, s:o}]}]", "functionDeclarations", "name",
                                      TOOL_NAME, "description", tool_description, "parameters",
                                      tool_parameters()));
    if (m->max_tokens)
        json_object_set_new(b, "generationConfig",
                            json_pack("{s:I}", "maxOutputTokens", (json_int_t)m->max_tokens));
    return b;
}

/* ---- parts ---- */

/* Text comes in many parts; what is not signed goes back as one. */
static int end_text(struct reply *r, struct err *e)
{
    if (!r->part)
        return 0;
    json_decref(r->part);
    r->part = NULL;
    if (r->text.len == r->part_from)
        return 0;
    return keep_raw(
        r,
        json_pack("{s:o}", "text",
                  json_stringn(r->text.data + r->part_from, r->text.len - r->part_from)),
        e);
}

static int take_plain_text(struct reply *r, const json_t *text, struct err *e)
{
    if (!r->part) {
        r->part = json_true();
        r->part_from = r->text.len;
    }
    return take_text(r, text, e);
}

static int take_call(struct reply *r, const json_t *call, struct err *e)
{
    const json_t *args = json_object_get(call, "args");
    unsigned number = r->n_calls;

    if (reply_add_call(r, number, member_text(call, "id"), member_text(call, "name"), e) < 0)
        return -1;
    return take_arguments(r, number, args, e);
}

static int take_part(struct reply *r, json_t *part, struct err *e)
{
    const json_t *text = json_object_get(part, "text");
    const json_t *call = json_object_get(part, "functionCall");
    bool thought = json_is_true(json_object_get(part, "thought"));
    bool is_signed = json_is_string(json_object_get(part, SIGNATURE));

    if (json_is_string(text) && !thought && !is_signed)
        return take_plain_text(r, text, e);
    if (!json_is_object(call) && !is_signed)
        return 0;
    if (end_text(r, e) < 0 || keep_raw(r, json_incref(part), e) < 0)
        return -1;
    if (json_is_object(call))
        return take_call(r, call, e);
    return thought ? 0 : take_text(r, text, e);
}

/* ---- the end ---- */

/* Are there parts that cannot be made again from text and calls? */
static bool has_own(const json_t *raw)
{
    size_t i;
    json_t *part;

    json_array_foreach(raw, i, part)
    {
        if (json_object_get(part, SIGNATURE) ||
            json_object_get(json_object_get(part, "functionCall"), "id"))
            return true;
    }
    return false;
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return false;
}

static int take_reason(struct reply *r, const char *reason, struct err *e)
{
    static const char *const refusals[] = {
        "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", NULL};
    static const char *const failures[] = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL",
                                           "TOO_MANY_TOOL_CALLS",     "MISSING_THOUGHT_SIGNATURE",
                                           "MALFORMED_RESPONSE",      NULL};
    char clean[64];

    if (!*reason || strcmp(reason, "FINISH_REASON_UNSPECIFIED") == 0)
        return 0;
    if (is_one_of(reason, failures))
        return err_set(e, 0, "the model made a mistake in its reply (%s)",
                       sanitise_name(reason, clean, sizeof(clean)));
    r->refused |= is_one_of(reason, refusals);
    r->cut |= strcmp(reason, "MAX_TOKENS") == 0;
    if (end_text(r, e) < 0)
        return -1;
    if (!has_own(r->raw)) {
        json_decref(r->raw);
        r->raw = NULL;
    }
    r->over = true;
    return 0;
}

static void take_usage(struct reply *r, const json_t *usage)
{
    if (!json_is_object(usage))
        return;
    r->tokens_in =
        member_tokens(usage, "promptTokenCount") + member_tokens(usage, "toolUsePromptTokenCount");
    r->tokens_out =
        member_tokens(usage, "candidatesTokenCount") + member_tokens(usage, "thoughtsTokenCount");
}

static int take(struct reply *r, const json_t *j, struct err *e)
{
    const json_t *candidate = json_array_get(json_object_get(j, "candidates"), 0);
    const json_t *content = json_object_get(candidate, "content");
    size_t i;
    json_t *part;

    if (json_object_get(j, "error"))
        return server_failed(j, e);
    take_usage(r, json_object_get(j, "usageMetadata"));
    if (*member_text(json_object_get(j, "promptFeedback"), "blockReason"))
        r->refused = r->over = true;
    json_array_foreach(json_object_get(content, "parts"), i, part)
    {
        if (take_part(r, part, e) < 0)
            return -1;
    }
    return take_reason(r, member_text(candidate, "finishReason"), e);
}

static int event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
    (void)name;
    if (len == strlen("[DONE]") && memcmp(data, "[DONE]", len) == 0)
        return 0;
    json_t *j = load_event(r, data, len, e);
    if (!j)
        return -1;
    int result = take(r, j, e);
    json_decref(j);
    return result;
}

static int whole(struct reply *r, const json_t *b, struct err *e)
{
    if (!json_is_object(b))
        return protocol_error(b) ? server_failed(b, e) : not_understood(e);
    return take(r, b, e);
}

const struct protocol protocol_gemini = {.name = "gemini",
                                         .version = "/v1beta",
                                         .path = path,
                                         .headers = headers,
                                         .body = body,
                                         .event = event,
                                         .whole = whole};
