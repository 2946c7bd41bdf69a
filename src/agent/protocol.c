/* protocol: see protocol.h and protocol_inside.h. */
#include "agent/protocol.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/protocol_inside.h"
#include "agent/talk.h"
#include "session/cell_from_json.h"
#include "session/sanitise.h"
#include "session/utf8.h"

const struct protocol *protocol_find(const char *name)
{
    static const struct protocol *const all[] = {&protocol_chat, &protocol_responses,
                                                 &protocol_messages, &protocol_gemini};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

/* ---- the tool ---- */

const char tool_description[] =
    "Runs Python code in the session, where variables, imports and files stay from one call to the "
    "next. What the code prints, the value of its last expression and the pictures it draws come "
    "back.";

json_t *tool_parameters(void)
{
    return json_pack("{s:s, s:{s:{s:s, s:s}}, s:[s]}", "type", "object", "properties", "code",
                     "type", "string", "description", "The Python code to run", "required", "code");
}

/* ---- errors ---- */

static const char *text_or_null(const json_t *j)
{
    const char *text = json_string_value(j);

    return text && *text ? text : NULL;
}

const char *protocol_error(const json_t *body)
{
    static const char *const members[] = {"message", "detail", "msg"};
    const json_t *j = json_is_array(body) ? json_array_get(body, 0) : body;

    if (json_object_get(j, "error"))
        j = json_object_get(j, "error");
    if (json_is_string(j))
        return text_or_null(j);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const json_t *m = json_object_get(j, members[i]);
        if (json_is_array(m)) /* as FastAPI complains of a request: {"detail":[{"msg":…}]} */
            m = json_object_get(json_array_get(m, 0), "msg");
        if (text_or_null(m))
            return text_or_null(m);
    }
    return NULL;
}

int server_failed(const json_t *body, struct err *e)
{
    const char *said = protocol_error(body);
    char clean[300];

    if (!said)
        return err_set(e, 0, "the model's server says that it failed");
    return err_set(e, 0, "the model's server says: %s", sanitise_name(said, clean, sizeof(clean)));
}

int not_understood(struct err *e)
{
    return err_set(e, 0, "the model's server sent what cannot be understood");
}

/* ---- members ---- */

const char *member_text(const json_t *j, const char *member)
{
    const char *text = json_string_value(json_object_get(j, member));

    return text ? text : "";
}

bool member_number(const json_t *j, const char *member, unsigned *ret)
{
    const json_t *n = json_object_get(j, member);

    if (!json_is_integer(n) || json_integer_value(n) < 0 ||
        json_integer_value(n) > PROTOCOL_NUMBER_MAX)
        return false;
    *ret = (unsigned)json_integer_value(n);
    return true;
}

uint64_t member_tokens(const json_t *j, const char *member)
{
    unsigned n = 0;

    member_number(j, member, &n);
    return n;
}

int take_text(struct reply *r, const json_t *text, struct err *e)
{
    return reply_add_text(r, json_string_value(text), json_string_length(text), e);
}

int begin_text(struct reply *r, struct err *e)
{
    if (r->text.len == 0 || r->text.data[r->text.len - 1] == '\n')
        return 0;
    return reply_add_text(r, "\n\n", 2, e);
}

int take_arguments(struct reply *r, unsigned number, const json_t *arguments, struct err *e)
{
    if (json_is_string(arguments))
        return reply_add_arguments(r, number, json_string_value(arguments),
                                   json_string_length(arguments), e);
    if (!json_is_object(arguments))
        return 0;
    cleanup_free char *text = json_dumps(arguments, JSON_COMPACT);
    return text ? reply_add_arguments(r, number, text, strlen(text), e) : not_understood(e);
}

size_t json_weight(const json_t *j)
{
    size_t bytes = 64 + json_string_length(j), i;
    const char *key;
    json_t *value;

    json_array_foreach(j, i, value)
    {
        bytes += json_weight(value);
    }
    json_object_foreach((json_t *)j, key, value)
    {
        bytes += 64 + strlen(key) + json_weight(value);
    }
    return bytes;
}

int keep_raw(struct reply *r, json_t *part, struct err *e)
{
    if (!part)
        return not_understood(e);
    if (reply_count_raw(r, json_weight(part), e) < 0) {
        json_decref(part);
        return -1;
    }
    if (!r->raw)
        r->raw = json_array();
    json_array_append_new(r->raw, part);
    return 0;
}

/* ---- JSON ---- */

/* The escape "\uXXXX" at the beginning of the text as a unit of UTF-16, or 0. */
static unsigned escaped_unit(const char *text, size_t len)
{
    unsigned unit = 0;

    if (len < 6 || text[0] != '\\' || text[1] != 'u')
        return 0;
    for (size_t i = 2; i < 6; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isxdigit(c))
            return 0;
        unit = unit << 4 | (unsigned)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return unit;
}

static bool is_high(unsigned unit)
{
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(unsigned unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

/* The escape at `at`, and what stands for it where it is half a pair. Returns how far that goes. */
static size_t mend_escape(struct reply *r, const char *text, size_t len, size_t at, struct buf *out)
{
    unsigned unit = escaped_unit(text + at, len - at);
    size_t width = unit ? 6 : at + 1 < len ? 2 : 1;

    if (is_high(unit) && is_low(escaped_unit(text + at + 6, len - at - 6))) {
        buf_add(out, text + at, 12);
        return at + 12;
    }
    if (is_high(unit) && at + 6 < len && text[at + 6] == '"') {
        r->half = unit;
    } else if (is_low(unit) && at > 0 && text[at - 1] == '"' && r->half) {
        buf_add_fmt(out, "\\u%04x\\u%04x", r->half, unit);
        r->half = 0;
    } else if (is_high(unit) || is_low(unit)) {
        buf_add_text(out, "\\ufffd");
    } else {
        buf_add(out, text + at, width);
    }
    return at + width;
}

static void mend(struct reply *r, const char *text, size_t len, struct buf *out)
{
    for (size_t at = 0; at < len;) {
        const char *escape = memchr(text + at, '\\', len - at);
        size_t plain = escape ? (size_t)(escape - text) - at : len - at;
        buf_add(out, text + at, plain);
        at += plain;
        if (at < len)
            at = mend_escape(r, text, len, at, out);
    }
}

json_t *load_event(struct reply *r, const char *data, size_t len, struct err *e)
{
    cleanup_buf struct buf valid = {0}, mended = {0};
    json_t *j;

    if (utf8_valid(data, len) < len) {
        utf8_repair(&valid, data, len);
        data = valid.data;
        len = valid.len;
    }
    if (memmem(data, len, "\\u", 2)) {
        mend(r, data, len, &mended);
        data = mended.data;
        len = mended.len;
    }
    if (json_count_values(data, len) > PROTOCOL_VALUES_MAX ||
        !(j = json_loadb(data, len, JSON_ALLOW_NUL, NULL))) {
        not_understood(e);
        return NULL;
    }
    return j;
}
