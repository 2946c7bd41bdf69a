/* refusal: see refusal.h. */
#include "agent/refusal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/find.h"
#include "agent/protocol.h"
#include "session/sanitise.h"

#define WORDS_READ 4096 /* of what a server says */
#define KEY_SECRET 4    /* a shorter key is a placeholder, and could be any word */
#define KEY_PIECE 8     /* so much of a key in a row is taken for the key */
#define DAY_S 86400

/* ---- its words ---- */

static size_t in_common(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* A server that does not know a key may repeat it, or a part of it. */
static void hide_key(const char *key, char *text)
{
    size_t len = key ? strlen(key) : 0, least = len < KEY_PIECE ? len : KEY_PIECE;

    if (len < KEY_SECRET)
        return;
    while (*text) {
        size_t longest = 0;
        for (size_t i = 0; i < len; i++) {
            size_t n = in_common(text, key + i);
            longest = n > longest ? n : longest;
        }
        if (longest >= least)
            memset(text, '*', longest);
        text += longest >= least ? longest : 1;
    }
}

char *refusal_clean(const struct model *m, const char *said, char *ret, size_t size)
{
    char text[WORDS_READ];

    snprintf(text, sizeof(text), "%s", said);
    hide_key(m->key, text);
    return sanitise_name(text, ret, size);
}

/* Google says it in the body: {"error":{"details":[{"retryDelay":"34.07s"}]}}. */
static unsigned delay_in(const json_t *body)
{
    const json_t *details = json_object_get(json_object_get(body, "error"), "details"), *one;
    size_t i;

    json_array_foreach(details, i, one)
    {
        const char *said = json_string_value(json_object_get(one, "retryDelay"));
        double seconds = said ? strtod(said, NULL) : 0;
        if (seconds > 0 && seconds < DAY_S)
            return (unsigned)ceil(seconds);
    }
    return 0;
}

static bool is_worth_a_try(unsigned status, const json_t *body)
{
    const json_t *error = json_object_get(body, "error");
    const char *code = json_string_value(json_object_get(error, "code"));

    if (code && strcmp(code, "insufficient_quota") == 0)
        return false; /* 429 as well, and no time will help */
    return status == 408 || status == 409 || status == 425 || status == 429 ||
           (status >= 500 && status != 501 && status != 505);
}

static const char *said_by(const json_t *body, struct call *call)
{
    const char *said = protocol_error(body);

    if (!said && strcmp(call->type, "text/plain") == 0)
        said = buf_text(&call->body);
    return said && *said ? said : "it says no more";
}

void refusal_read(struct refusal *ret, const struct model *m, struct call *call)
{
    json_t *body = json_loadb(call->body.data ? call->body.data : "", call->body.len, 0, NULL);

    *ret = (struct refusal){
        .status = call->status,
        .worth_a_try = is_worth_a_try(call->status, body),
        .wait_s = call->retry_after_s ? call->retry_after_s : delay_in(body),
    };
    refusal_clean(m, said_by(body, call), ret->words, sizeof(ret->words));
    json_decref(body);
}

void refusal_explain(const struct refusal *r, const struct model *m, struct err *e)
{
    char hint[200];

    model_key_hint(m, hint, sizeof(hint));
    if (r->status == 401 || r->status == 403 ||
        (r->status == 400 && strcasestr(r->words, "api key")))
        err_set(e, 0, "%s refuses us: %s (HTTP %u; %s)", m->provider, r->words, r->status, hint);
    else if (r->status == 404)
        err_set(e, 0,
                "%s does not have \"%s\": %s (HTTP 404; --model names another one, and "
                "--base-url says where)",
                m->provider, m->name, r->words);
    else if (r->status >= 300 && r->status < 400)
        err_set(e, 0,
                "%s sends us elsewhere (HTTP %u), which is not followed: is the address %s right?",
                m->provider, r->status, m->base);
    else if (r->worth_a_try)
        err_set(e, 0, "%s cannot now: %s (HTTP %u)", m->provider, r->words, r->status);
    else
        err_set(e, 0, "%s does not take what it was asked: %s (HTTP %u)", m->provider, r->words,
                r->status);
}

/* ---- what it cannot have ---- */

static bool has_pictures(const json_t *talk)
{
    const json_t *message, *result;
    size_t i, j;

    json_array_foreach(talk, i, message)
    {
        json_array_foreach(json_object_get(message, "results"), j, result)
        {
            if (json_array_size(json_object_get(result, "pictures")) > 0)
                return true;
        }
    }
    return false;
}

/* "upstream" is no stream, and "functionality" no function. */
static bool names(const char *text, const char *word)
{
    for (const char *at = text; (at = strcasestr(at, word)); at++)
        if ((at == text || !isalpha((unsigned char)at[-1])) &&
            strncasecmp(at + strlen(word), "al", 2) != 0)
            return true;
    return false;
}

static bool names_any(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (names(text, *words))
            return true;
    return false;
}

/* Does this refusal mean what the server cannot do, rather than what it did not manage? */
static bool is_inability(unsigned status, const char *words)
{
    switch (status) {
    case 400:
    case 404:
    case 422:
    case 501:
        return !names(words, "not found") &&
               !names(words, "does not exist"); /* the model, that is */
    case 500:
        return names(words, "support") || names(words, "unsupported") || names(words, "requires");
    default:
        return false;
    }
}

bool refusal_is_lack(const struct refusal *r, struct model *m, const json_t *talk, struct err *e)
{
    static const char *const pictures[] = {"image", "vision", "multimodal", "multi-modal", NULL};
    static const char *const tools[] = {"tool", "function", NULL};
    static const char *const streams[] = {"stream", NULL};

    if (!is_inability(r->status, r->words))
        return false;
    if (m->sees && has_pictures(talk) && names_any(r->words, pictures)) {
        m->sees = false;
        err_set(e, 0, "the model cannot see: it is asked without pictures (%s)", r->words);
    } else if (m->tools && names_any(r->words, tools)) {
        m->tools = false;
        err_set(e, 0, "the model has no tools: its code is taken from its text (%s)", r->words);
    } else if (m->streams && names_any(r->words, streams)) {
        m->streams = false;
        err_set(e, 0, "the server does not stream: its replies come in one piece (%s)", r->words);
    } else {
        return false;
    }
    return true;
}
