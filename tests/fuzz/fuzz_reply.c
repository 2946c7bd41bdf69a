/* A model's server on any bytes: the first says which protocol it speaks and in which pieces they come, the rest is a
 * stream of events, and a whole body. What must hold: the pieces make no difference, the view hears the text that is
 * kept, and a reply can be told to every model again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/protocol.h"
#include "agent/reply.h"
#include "agent/talk.h"
#include "base/buf.h"
#include "base/err.h"
#include "guest/events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct protocol *const protocols[] = {&protocol_chat, &protocol_responses,
                                                   &protocol_messages, &protocol_gemini};

struct heard {
    const struct protocol *protocol;
    struct reply reply;
    struct buf text, code;
};

static void on_text(void *ctx, const char *text, size_t len)
{
    struct heard *h = ctx;

    buf_add(&h->text, text, len);
}

static void on_code(void *ctx, unsigned call, const char *text, size_t len)
{
    struct heard *h = ctx;

    assert_that(call < h->reply.n_calls && len > 0);
    buf_add(&h->code, text, len);
}

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
    struct heard *h = ctx;

    return h->protocol->event(&h->reply, name, data, len, e);
}

static int feed(struct heard *h, const struct reply_view *view, const char *data, size_t size,
                size_t piece)
{
    struct events ev;
    struct err e;
    int r = 0;

    reply_init(&h->reply, view);
    events_init(&ev, 4096, on_event, h);
    for (size_t at = 0; at < size && r == 0; at += piece)
        r = events_feed(&ev, data + at, size - at < piece ? size - at : piece, &e);
    events_done(&ev);
    return r;
}

static void tell_all(const struct heard *h)
{
    json_t *talk = json_array();
    struct model m = {.name = "m", .base = "http://localhost", .sees = true};

    json_array_append_new(talk, talk_user("Q", 1));
    json_array_append_new(talk, reply_message(&h->reply, h->protocol->name));
    json_t *results = talk_results();
    for (unsigned i = 0; i < h->reply.n_calls; i++)
        talk_add_result(results, h->reply.calls[i].id, "R", i % 2, NULL);
    json_array_append_new(talk, results);
    for (size_t i = 0; i < 8; i++) {
        struct request request = {.system = "S", .talk = talk, .stream = true};
        m.protocol = protocols[i % 4];
        m.tools = i < 4;
        json_t *body = m.protocol->body(&m, &request);
        char *text = json_dumps(body, JSON_COMPACT);
        assert_that(text);
        free(text);
        json_decref(body);
    }
    json_decref(talk);
}

static void finish(struct heard *h)
{
    struct err e;

    assert_that(h->text.len == h->reply.text.len);
    for (unsigned i = 0; i < h->reply.n_calls; i++)
        free(call_code(h->reply.calls[i].arguments.data, h->reply.calls[i].arguments.len, &e));
    if (reply_finish(&h->reply, &e) == 0) {
        reply_take_blocks(&h->reply);
        tell_all(h);
    }
}

static void done(struct heard *h)
{
    reply_done(&h->reply);
    buf_done(&h->text);
    buf_done(&h->code);
}

static void whole(const struct protocol *p, const char *data, size_t size)
{
    struct heard h = {.protocol = p};
    struct reply_view view = {.text = on_text, .code = on_code, .ctx = &h};
    json_t *body = json_loadb(data, size, JSON_ALLOW_NUL, NULL);
    struct err e;

    reply_init(&h.reply, &view);
    if (body && p->whole(&h.reply, body, &e) == 0)
        finish(&h);
    protocol_error(body);
    done(&h);
    json_decref(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const struct protocol *p = protocols[data[0] % 4];
    struct heard one = {.protocol = p}, other = {.protocol = p};
    struct reply_view first = {.text = on_text, .code = on_code, .ctx = &one};
    struct reply_view second = {.text = on_text, .code = on_code, .ctx = &other};

    int r = feed(&one, &first, (const char *)data + 1, size - 1, 1);
    int s = feed(&other, &second, (const char *)data + 1, size - 1, 1u + data[0] / 4);
    assert_that(r == s && one.text.len == other.text.len && one.code.len == other.code.len);
    assert_that(one.reply.n_calls == other.reply.n_calls && one.reply.over == other.reply.over);
    finish(&one);
    done(&one);
    done(&other);
    whole(p, (const char *)data + 1, size - 1);
    return 0;
}
