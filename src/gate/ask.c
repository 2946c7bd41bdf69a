/* ask: what a client asked for, read from JSON and queries with an answer for every mistake. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/inside.h"
#include "session/cell_from_json.h"

#define PAGE_DEFAULT 50
#define PAGE_MAX 500
#define VALUES_MAX 20000 /* what we are asked for has few */

static bool is_member(const char *name, const char *const *members)
{
    for (; *members; members++)
        if (strcmp(*members, name) == 0)
            return true;
    return false;
}

static int check_members(struct request *r, const json_t *object, const char *what,
                         const char *const *members)
{
    cleanup_buf struct buf known = {0};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        if (is_member(key, members))
            continue;
        for (unsigned i = 0; members[i]; i++)
            buf_add_fmt(&known, "%s\"%s\"", i ? ", " : "", members[i]);
        reply_error(r, 400, "bad_request", "there is no member \"%.100s\" in %s; there are %s", key,
                    what, known.len ? buf_text(&known) : "none");
        return -1;
    }
    return 0;
}

json_t *ask_object(struct request *r, const char *const *members)
{
    json_error_t at;

    if (r->body.len == 0)
        return json_object();
    if (json_count_values(r->body.data, r->body.len) > VALUES_MAX) {
        reply_error(r, 400, "bad_request", "the body has more than %d values", VALUES_MAX);
        return NULL;
    }
    json_t *j = json_loadb(r->body.data, r->body.len, JSON_REJECT_DUPLICATES, &at);
    if (!j) {
        reply_error(r, 400, "bad_json", "the body is not JSON: %s (line %d, column %d)", at.text,
                    at.line, at.column);
        return NULL;
    }
    if (!json_is_object(j)) {
        reply_error(r, 400, "bad_request", "the body must be a JSON object");
        json_decref(j);
        return NULL;
    }
    if (check_members(r, j, "this call", members) < 0) {
        json_decref(j);
        return NULL;
    }
    return j;
}

/* A limit as text, from a number or a text. */
static int limit_text(const json_t *value, char *ret, size_t size)
{
    int n = -1;

    if (json_is_string(value))
        n = snprintf(ret, size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        n = snprintf(ret, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        n = snprintf(ret, size, "%.6f", json_real_value(value));
    return n > 0 && (size_t)n < size ? 0 : -1;
}

static int ask_limit(struct request *r, const char *name, const json_t *value, struct limits *l)
{
    char text[64];
    struct err e;

    if (limit_text(value, text, sizeof(text)) < 0) {
        reply_error(r, 400, "bad_request",
                    "the limit \"%s\" must be a number, a text such as \"512m\", or \"none\"",
                    name);
        return -1;
    }
    if (limits_set(l, name, text, &e) < 0) {
        reply_error(r, 400, "bad_request", "%s", e.text);
        return -1;
    }
    return 0;
}

int ask_limits(struct request *r, const json_t *limits, struct limits *ret)
{
    const struct config *c = r->gate->config;
    const char *name;
    json_t *value;

    *ret = c->limits;
    if (!limits || json_is_null(limits))
        return 0;
    if (!json_is_object(limits)) {
        reply_error(r, 400, "bad_request", "\"limits\" must be an object");
        return -1;
    }
    json_object_foreach((json_t *)limits, name, value)
    {
        if (ask_limit(r, name, value, ret) < 0)
            return -1;
    }
    for (unsigned i = 0; (name = limits_name(i)); i++) {
        int none, max_none;
        double wants = limits_value(ret, i, &none);
        double max = limits_value(&c->max, i, &max_none);
        if (max_none || (!none && wants <= max))
            continue;
        reply_error(r, 400, "limit_too_high", "\"%s\" may be at most %.15g on this server", name,
                    max);
        return -1;
    }
    return 0;
}

json_t *limits_json(const struct limits *l)
{
    json_t *j = json_object();
    const char *name;

    for (unsigned i = 0; (name = limits_name(i)); i++) {
        int none;
        double value = limits_value(l, i, &none);
        json_t *v = none                    ? json_string("none")
                    : value == floor(value) ? json_integer((json_int_t)value)
                                            : json_real(value);
        json_object_set_new(j, name, v);
    }
    return j;
}

int ask_timeout(struct request *r, const json_t *timeout, uint64_t max_ms, uint64_t *ret)
{
    struct limits l = r->gate->config->limits;

    *ret = 0;
    if (!timeout || json_is_null(timeout))
        return 0;
    if (ask_limit(r, "timeout", timeout, &l) < 0)
        return -1;
    if (max_ms != LIMIT_NONE && l.timeout_ms > max_ms) {
        reply_error(r, 400, "limit_too_high", "\"timeout\" may be at most %.15g on this server",
                    (double)max_ms / 1000);
        return -1;
    }
    *ret = l.timeout_ms;
    return 0;
}

int ask_summary(struct request *r, const json_t *summary, unsigned *ret)
{
    char text[64];
    struct err e;

    *ret = r->gate->config->summary;
    if (!summary || json_is_null(summary))
        return 0;
    if (limit_text(summary, text, sizeof(text)) < 0) {
        reply_error(r, 400, "bad_request",
                    "\"summary\" is how many bytes it may have, such as 8192 or \"8k\"");
        return -1;
    }
    if (limits_parse_summary(text, ret, &e) < 0) {
        reply_error(r, 400, "bad_request", "\"summary\": %s", e.text);
        return -1;
    }
    return 0;
}

int ask_pictures(struct request *r, const json_t *pictures, unsigned *ret)
{
    json_int_t n = json_integer_value(pictures);

    *ret = 0;
    if (!pictures || json_is_null(pictures))
        return 0;
    if (!json_is_integer(pictures) || n < PICTURES_LEAST || n > PICTURES_MOST) {
        reply_error(r, 400, "bad_request",
                    "\"pictures\" is how many pixels their longer side may have, %d to %d",
                    PICTURES_LEAST, PICTURES_MOST);
        return -1;
    }
    *ret = (unsigned)n;
    return 0;
}

int ask_code(struct request *r, const json_t *body, const char **ret, size_t *ret_len)
{
    const json_t *code = json_object_get(body, "code");

    if (!json_is_string(code)) {
        reply_error(r, 400, "bad_request", "\"code\" must be there, and a text");
        return -1;
    }
    *ret = json_string_value(code);
    *ret_len = json_string_length(code);
    return 0;
}

int ask_page(struct request *r, unsigned *ret_limit)
{
    const char *text = request_query(r, "limit");
    char *end;

    *ret_limit = PAGE_DEFAULT;
    if (!text)
        return 0;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || *end || end == text || text[0] == '-' || n < 1 || n > PAGE_MAX) {
        reply_error(r, 400, "bad_request", "\"limit\" must be a number from 1 to %d", PAGE_MAX);
        return -1;
    }
    *ret_limit = (unsigned)n;
    return 0;
}
