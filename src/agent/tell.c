/* tell: see tell.h. */
#include "agent/tell.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/blocks.h"
#include "agent/protocol.h"
#include "agent/protocol_inside.h"
#include "agent/reply.h"
#include "agent/talk.h"
#include "base/buf.h"

struct telling {
    const struct model *model;
    const struct teller *teller;
    json_t *to;
    size_t left_out; /* how many of the pictures to come are not sent, since newer ones are */
};

/* ---- for protocols ---- */

json_t *tell_data_url(const json_t *picture)
{
    cleanup_free char *url =
        xasprintf("data:%s;base64,%s", member_text(picture, "type"), member_text(picture, "data"));

    return json_string(url);
}

json_t *tell_arguments(const char *text)
{
    json_t *object = json_loads(text, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(object))
        return object;
    json_decref(object);
    return json_pack("{s:s}", "code", text);
}

void tell_push(json_t *to, const char *role, const char *member, json_t *parts)
{
    json_t *last = json_array_get(to, json_array_size(to) - 1);

    if (last && strcmp(member_text(last, "role"), role) == 0) {
        json_array_extend(json_object_get(last, member), parts);
        json_decref(parts);
        return;
    }
    json_array_append_new(to, json_pack("{s:s, s:o}", "role", role, member, parts));
}

const char *tell_id(const char *id, char *ret)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t n = strspn(id, good);
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    if (n > 0 && n <= 64 && id[n] == '\0')
        return id;
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 1099511628211u;
    snprintf(ret, TELL_ID, "call_%016" PRIx64, hash);
    return ret;
}

/* ---- results ---- */

static size_t count_pictures(const json_t *talk)
{
    size_t n = 0, i, k;
    json_t *message, *result;

    json_array_foreach(talk, i, message)
    {
        json_array_foreach(json_object_get(message, "results"), k, result)
        {
            n += json_array_size(json_object_get(result, "pictures"));
        }
    }
    return n;
}

/* Those that are sent. The others are a line of text. */
static json_t *choose_pictures(struct telling *t, const json_t *result, struct buf *text)
{
    json_t *chosen = json_array(), *picture;
    size_t i, missing = 0;

    json_array_foreach(json_object_get(result, "pictures"), i, picture)
    {
        bool sent = t->model->sees && t->left_out == 0;
        t->left_out -= t->left_out > 0;
        missing += !sent;
        if (sent)
            json_array_append(chosen, picture);
    }
    if (missing > 0)
        buf_add_fmt(text, "%s[%zu picture%s not shown%s]", text->len ? "\n" : "", missing,
                    missing == 1 ? "" : "s",
                    t->model->sees ? " any more" : ": you cannot see them");
    if (json_array_size(chosen) > 0)
        return chosen;
    json_decref(chosen);
    return NULL;
}

static const json_t *find_result(const json_t *results, const char *id)
{
    size_t i;
    json_t *result;

    json_array_foreach(results, i, result)
    {
        if (strcmp(member_text(result, "id"), id) == 0)
            return result;
    }
    return NULL;
}

static struct told_result told(struct telling *t, const json_t *call, const json_t *results)
{
    const json_t *result = find_result(results, member_text(call, "id"));
    struct buf text = {0};

    buf_add_text(&text, result ? member_text(result, "text") : "[it was not run]");
    json_t *pictures = choose_pictures(t, result, &text);
    return (struct told_result){.id = member_text(call, "id"),
                                .name = member_text(call, "name"),
                                .text = buf_steal(&text),
                                .failed =
                                    !result || json_is_true(json_object_get(result, "failed")),
                                .pictures = pictures};
}

static void done_with(struct told_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(results[i].text);
        json_decref(results[i].pictures);
    }
}

/* ---- a model without tools ---- */

static bool has_block(const char *text, const char *code)
{
    struct block b;
    size_t at = 0;

    while (block_next(text, strlen(text), &at, &b)) {
        cleanup_free char *found = block_code(&b);
        if (b.python && strcmp(found, code) == 0)
            return true;
    }
    return false;
}

/* The code of a call that was made with tools, as it would have been written without. */
static void add_call_as_block(struct buf *text, const char *said, const json_t *call)
{
    const char *arguments = member_text(call, "arguments");
    struct err e;
    cleanup_free char *code = call_code(arguments, strlen(arguments), &e);

    if (!code || has_block(said, code))
        return;
    size_t fence = 3;
    for (const char *at = code; (at = strchr(at, '`')); at += strspn(at, "`"))
        if (strspn(at, "`") >= fence)
            fence = strspn(at, "`") + 1;
    buf_add_text(text, text->len ? "\n\n" : "");
    for (size_t i = 0; i < fence; i++)
        buf_add_text(text, "`");
    buf_add_fmt(text, "python\n%s%s", code, code[strlen(code) - 1] == '\n' ? "" : "\n");
    for (size_t i = 0; i < fence; i++)
        buf_add_text(text, "`");
}

static void tell_results_as_text(struct telling *t, const struct told_result *results, size_t n)
{
    cleanup_buf struct buf text = {0};
    json_t *pictures = json_array();

    for (size_t i = 0; i < n; i++) {
        if (n > 1)
            buf_add_fmt(&text, "%sResult of block %zu:\n", i ? "\n\n" : "", i + 1);
        else
            buf_add_text(&text, "Result:\n");
        buf_add_text(&text, results[i].text);
        if (results[i].pictures)
            json_array_extend(pictures, results[i].pictures);
    }
    t->teller->user(t->to, buf_text(&text), json_array_size(pictures) ? pictures : NULL);
    json_decref(pictures);
}

static void tell_model_as_text(struct telling *t, const json_t *message, const json_t *calls)
{
    const char *said = member_text(message, "text");
    cleanup_buf struct buf text = {0};
    size_t i;
    json_t *call;

    buf_add_text(&text, said);
    json_array_foreach(calls, i, call)
    {
        add_call_as_block(&text, said, call);
    }
    if (!blocks_blank(text.data, text.len))
        t->teller->said(t->to, t->model, buf_text(&text), NULL, NULL);
}

/* ---- messages ---- */

/* What this protocol kept of it, if it was this protocol. */
static const json_t *own_raw(const struct telling *t, const json_t *message)
{
    const json_t *raw = json_object_get(message, "raw");

    if (!t->model->tools || strcmp(member_text(raw, "protocol"), t->model->protocol->name) != 0)
        return NULL;
    return json_object_get(raw, "content");
}

/* With the results of its calls. */
static void tell_model(struct telling *t, const json_t *message, const json_t *results)
{
    const json_t *calls = json_object_get(message, "calls"), *raw = own_raw(t, message);
    size_t n = json_array_size(calls);
    const char *text = member_text(message, "text");

    if (!t->model->tools)
        tell_model_as_text(t, message, calls);
    else if (n > 0 || raw || !blocks_blank(text, strlen(text)))
        t->teller->said(t->to, t->model, text, n > 0 ? calls : NULL, raw);
    if (n == 0)
        return;
    struct told_result *list = xcalloc(n, sizeof(*list));
    for (size_t i = 0; i < n; i++)
        list[i] = told(t, json_array_get(calls, i), results);
    if (t->model->tools)
        t->teller->results(t->to, list, n, raw);
    else
        tell_results_as_text(t, list, n);
    done_with(list, n);
    free(list);
}

json_t *tell(const struct model *m, const json_t *talk, const struct teller *teller)
{
    struct telling t = {.model = m, .teller = teller, .to = json_array()};
    size_t i, pictures = count_pictures(talk);
    json_t *message;

    t.left_out = pictures > TELL_PICTURES ? pictures - TELL_PICTURES : 0;
    json_array_foreach(talk, i, message)
    {
        const char *role = member_text(message, "role");
        if (strcmp(role, "user") == 0)
            teller->user(t.to, member_text(message, "text"), NULL);
        else if (strcmp(role, "model") == 0)
            tell_model(&t, message, json_object_get(json_array_get(talk, i + 1), "results"));
    }
    return t.to;
}
