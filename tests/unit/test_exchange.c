/* One question to a model and its whole reply, with a server that does all that servers do. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/exchange.h"
#include "answers.h"
#include "base/buf.h"
#include "base/clock.h"

#define KEY "sk-test-0123456789abcdef"

/* ---- a protocol of the test's own: "data: text …", "data: end", "data: error …" ---- */

static void ask_path(const struct model *m, bool stream, struct buf *ret)
{
    (void)m;
    buf_add_text(ret, stream ? "/ask?stream" : "/ask");
}

static void ask_headers(const struct model *m, void (*add)(void *ctx, const char *line), void *ctx)
{
    cleanup_free char *line = xasprintf("X-Key: %s", m->key);

    add(ctx, line);
}

static json_t *ask_body(const struct model *m, const struct request *r)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "system", r->system, "tools", m->tools, "sees",
                     m->sees, "stream", r->stream);
}

static int ask_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
    (void)name;
    if (strncmp(data, "text ", 5) == 0)
        return reply_add_text(r, data + 5, len - 5, e);
    if (strcmp(data, "end") == 0)
        r->over = true;
    else
        return err_set(e, 0, "it says: %s", data);
    return 0;
}

static int ask_whole(struct reply *r, const json_t *body, struct err *e)
{
    const char *text = json_string_value(json_object_get(body, "text"));

    r->over = text != NULL;
    return text ? reply_add_text(r, text, strlen(text), e) : err_set(e, 0, "it says nothing");
}

static const struct protocol ask = {.name = "ask",
                                    .path = ask_path,
                                    .headers = ask_headers,
                                    .body = ask_body,
                                    .event = ask_event,
                                    .whole = ask_whole};

/* ---- who asks ---- */

struct asking {
    struct answers server;
    struct owner owner;
    struct client *client;
    struct model model;
    struct request request;
    struct exchange_view view;
    struct reply reply;
    struct err e;
    json_t *talk;
    int64_t deadline_ms, took_ms;
    char shown[256], why[512];
    unsigned again, seconds, ticks;
};

static void on_text(void *ctx, const char *text, size_t len)
{
    struct asking *a = ctx;
    size_t at = strlen(a->shown);

    snprintf(a->shown + at, sizeof(a->shown) - at, "%.*s|", (int)len, text);
}

static void on_again(void *ctx, const char *why, unsigned seconds)
{
    struct asking *a = ctx;

    snprintf(a->why, sizeof(a->why), "%s", why);
    a->again++;
    a->seconds = seconds;
    a->shown[0] = '\0';
    if (!a->model.tools)
        a->request.system = "write it in your text";
}

static void on_tick(void *ctx)
{
    ((struct asking *)ctx)->ticks++;
}

static void asking_start(struct asking *a, const struct answer *list, unsigned n)
{
    struct address where = {.base = (char[]){"http://127.0.0.1:1"}, .loopback = true};
    static const struct wish wish;

    *a = (struct asking){0};
    /* An owner whose boxes are on a server that nobody calls. */
    assert_int_equal(owner_connect(&a->owner, &where, &wish, &a->e), 0);
    answers_start(&a->server, list, n);
    a->model = (struct model){.protocol = &ask,
                              .provider = xstrdup("anthropic"),
                              .name = xstrdup("claude"),
                              .base = xstrdup(a->server.url),
                              .key = xstrdup(KEY),
                              .tools = true,
                              .sees = true,
                              .streams = true};
    a->talk = json_pack("[{s:s, s:s}]", "role", "user", "text", "why?");
    a->request = (struct request){.system = "use the tool", .talk = a->talk};
    a->view = (struct exchange_view){
        .reply = {.text = on_text, .ctx = a}, .again = on_again, .tick = on_tick, .ctx = a};
    a->client = model_client(&a->model, &a->e);
    assert_non_null(a->client);
}

static int ask_it(struct asking *a)
{
    int64_t began_ms = clock_now_ms();
    int r = exchange(&a->owner, a->client, &a->model, &a->request, &a->view, a->deadline_ms,
                     &a->reply, &a->e);

    a->took_ms = clock_now_ms() - began_ms;
    if (r < 0) {
        assert_null(strstr(a->e.text, KEY));
        assert_null(strstr(a->e.text, "0123456789"));
    }
    return r;
}

static void asking_stop(struct asking *a)
{
    reply_done(&a->reply);
    client_free(a->client);
    model_done(&a->model);
    json_decref(a->talk);
    owner_stop(&a->owner);
    answers_stop(&a->server);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void assert_reply(struct asking *a, const char *text)
{
    int r = ask_it(a);

    if (r != 0)
        fail_msg("%d: %s", r, a->e.text);
    assert_string_equal(buf_text(&a->reply.text), text);
}

#define N(list) (sizeof(list) / sizeof((list)[0]))
#define HELLO ANSWER_EVENTS "data: text hello\n\ndata: end\n\n"

/* ---- the way that it should go ---- */

static void a_stream(void **state)
{
    static const struct answer list[] = {
        {ANSWER_EVENTS "data: text hel\n\n: ping\n\ndata: text lo\n\ndata: end\n\n"}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    assert_reply(&a, "hello");
    assert_string_equal(a.shown, "hel|lo|");
    assert_int_equal(a.again, 0);
    assert_has(a.server.request[0], "POST /ask?stream HTTP/1.1\r\n");
    assert_has(a.server.request[0], "\r\nX-Key: " KEY "\r\n");
    assert_has(a.server.request[0], "\r\nAccept: text/event-stream, application/json\r\n");
    assert_has(a.server.request[0], "\"stream\":true");
    assert_null(strcasestr(a.server.request[0], "Authorization:"));
    asking_stop(&a);
}

/* Servers that never heard of "Expect" would be waited for. */
static void a_long_question(void **state)
{
    static const struct answer list[] = {{HELLO}};
    struct asking a;
    cleanup_free char *text = xcalloc(1, (2u << 20) + 1);
    (void)state;

    memset(text, 'x', 2u << 20);
    asking_start(&a, list, N(list));
    a.request.system = text;
    assert_reply(&a, "hello");
    assert_null(strcasestr(a.server.request[0], "\r\nExpect:"));
    asking_stop(&a);
}

static void one_body(void **state)
{
    static const struct answer list[] = {{ANSWER_JSON "{\"text\":\"hello\"}"}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    a.model.streams = false;
    assert_reply(&a, "hello");
    assert_has(a.server.request[0], "POST /ask HTTP/1.1\r\n");
    assert_has(a.server.request[0], "\r\nAccept: application/json\r\n");
    assert_has(a.server.request[0], "\"stream\":false");
    asking_stop(&a);
}

static void one_body_for_a_stream(void **state)
{
    static const struct answer typed[] = {{ANSWER_JSON "{\"text\":\"hello\"}"}};
    static const struct answer untyped[] = {
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"text\":\"hello\"}"}};
    struct asking a;
    (void)state;

    asking_start(&a, typed, N(typed));
    assert_reply(&a, "hello");
    asking_stop(&a);
    asking_start(&a, untyped, N(untyped));
    assert_reply(&a, "hello");
    asking_stop(&a);
}

static void an_end_that_is_not_the_connections(void **state)
{
    static const struct answer held[] = {{HELLO, .holds = true}};
    static const struct answer no_empty_line[] = {{ANSWER_EVENTS "data: text hello\n\ndata: end"}};
    struct asking a;
    (void)state;

    asking_start(&a, held, N(held));
    assert_reply(&a, "hello");
    assert_in_range(a.took_ms, 1000, 15000);
    asking_stop(&a);
    asking_start(&a, no_empty_line, N(no_empty_line));
    assert_reply(&a, "hello");
    asking_stop(&a);
}

/* ---- too much ---- */

/* An answer of `n` times a piece, between two others. */
static void assert_too_much(const char *before, const char *piece, size_t n, const char *behind,
                            const char *why)
{
    cleanup_buf struct buf text = {0};
    struct asking a;

    buf_add_text(&text, before);
    for (size_t i = 0; i < n; i++)
        buf_add_text(&text, piece);
    buf_add_text(&text, behind);
    const struct answer list[] = {{buf_text(&text)}};
    asking_start(&a, list, N(list));
    assert_int_equal(ask_it(&a), -1);
    assert_has(a.e.text, why);
    assert_int_equal(a.again, 0); /* it would be as much again */
    asking_stop(&a);
}

static void too_much(void **state)
{
    char line[4096];
    (void)state;

    memset(line, ':', sizeof(line));
    line[sizeof(line) - 2] = '\n';
    line[sizeof(line) - 1] = '\0';
    assert_too_much(ANSWER_EVENTS, line, (129u << 20) / sizeof(line),
                    "data: text hello\n\ndata: end\n\n", "the stream has more than");
    assert_too_much(ANSWER_JSON "{\"text\":\"hello\",\"x\":[0", ",0", 200000, "]}",
                    "more than 100000 values");
}

/* ---- trying again ---- */

static void a_stream_that_breaks_off(void **state)
{
    static const struct answer list[] = {{ANSWER_EVENTS "data: text hel\n\n"}, {HELLO}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    assert_reply(&a, "hello");
    assert_string_equal(a.shown, "hello|");
    assert_int_equal(a.again, 1);
    assert_int_equal(a.seconds, 1);
    assert_in_range(a.took_ms, 1000, 30000);
    asking_stop(&a);
}

static void an_error_in_the_stream(void **state)
{
    static const struct answer list[] = {
        {ANSWER_EVENTS "data: text hel\n\ndata: error \033]0;overloaded\007 " KEY "\n\n"}, {HELLO}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    assert_reply(&a, "hello");
    assert_has(a.why, "anthropic: it says: error ?]0;overloaded? ****");
    assert_null(strstr(a.why, KEY));
    asking_stop(&a);
}

static void busy_until_all_tries_are_used_up(void **state)
{
#define BUSY                                                                                       \
    {                                                                                              \
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Type: "                       \
        "application/json\r\nConnection: close\r\n\r\n{\"error\":{\"message\":\"slow down\"}}"     \
    }
    static const struct answer list[] = {BUSY, BUSY, BUSY, BUSY, BUSY, {HELLO}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    assert_int_equal(ask_it(&a), -1);
    assert_string_equal(a.e.text, "asked 5 times: anthropic cannot now: slow down (HTTP 429)");
    assert_int_equal(a.again, EXCHANGE_TRIES - 1);
    assert_in_range(a.took_ms, 4000, 60000);
    asking_stop(&a);
    assert_int_equal(a.server.served, EXCHANGE_TRIES);
}

static void longer_than_anybody_waits(void **state)
{
    static const struct answer header[] = {
        {"HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nConnection: close\r\n\r\n"}};
    static const struct answer body[] = {{ANSWER_STATUS(
        "429 Quota") "{\"error\":{\"message\":\"no\",\"details\":[{\"retryDelay\":\"61.5s\"}]}}"}};
    struct asking a;
    (void)state;

    asking_start(&a, header, N(header));
    assert_int_equal(ask_it(&a), -1);
    assert_has(a.e.text, "asked again in 3600 s");
    asking_stop(&a);
    asking_start(&a, body, N(body));
    assert_int_equal(ask_it(&a), -1);
    assert_has(a.e.text, "asked again in 62 s");
    asking_stop(&a);
}

static void nobody_there(void **state)
{
    struct asking a;
    (void)state;

    asking_start(&a, NULL, 0);
    client_free(a.client);
    free(a.model.base);
    a.model.base = xstrdup("http://127.0.0.1:1");
    a.client = model_client(&a.model, &a.e);
    assert_int_equal(ask_it(&a), -1);
    assert_has(a.e.text, "there is no server at http://127.0.0.1:1 (");
    assert_has(a.e.text, "is a model's server running there?");
    assert_int_equal(a.again, 1);
    asking_stop(&a);
}

/* ---- what is not tried again ---- */

static void assert_hopeless(const char *answer, size_t more, const char *text)
{
    const struct answer list[] = {{answer, .more = more}, {HELLO}};
    struct asking a;

    asking_start(&a, list, N(list));
    assert_int_equal(ask_it(&a), -1);
    assert_has(a.e.text, text);
    assert_int_equal(a.again, 0);
    asking_stop(&a);
    assert_int_equal(a.server.served, 1);
}

static void refusals(void **state)
{
    (void)state;
    assert_hopeless(
        ANSWER_STATUS("401 No") "{\"error\":{\"message\":\"bad key " KEY "\\u001b[31m\"}}", 0,
        "anthropic refuses us: bad key ************************?[31m (HTTP 401; its key "
        "comes from --key-file, model.conf or ANTHROPIC_API_KEY)");
    assert_hopeless(ANSWER_STATUS("403 No") "{\"error\":\"sk-test-01******cdef\"}", 0,
                    "anthropic refuses us: **********");
    assert_hopeless(ANSWER_STATUS("400 No") "{\"error\":{\"message\":\"API key not valid\"}}", 0,
                    "ANTHROPIC_API_KEY");
    assert_hopeless(ANSWER_STATUS("404 No") "{\"error\":{\"message\":\"tool-1 not found\"}}", 0,
                    "anthropic does not have \"claude\": tool-1 not found (HTTP 404; --model");
    assert_hopeless(ANSWER_STATUS("400 No") "{\"error\":{\"message\":\"too long\"}}", 0,
                    "anthropic does not take what it was asked: too long (HTTP 400)");
    assert_hopeless(ANSWER_STATUS("429 No") "{\"error\":{\"message\":\"pay\",\"code\":"
                                            "\"insufficient_quota\"}}",
                    0, "pay (HTTP 429)");
    assert_hopeless("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: "
                    "close\r\n\r\n<html>Welcome</html>",
                    0, "is a page, and no model");
    assert_hopeless(ANSWER_JSON "{\"text\":\"", 17u << 20, "more than 16777216 bytes");
}

static void nobody_is_sent_elsewhere(void **state)
{
    static const struct answer trap[] = {{HELLO}};
    struct answers other;
    char answer[256];
    (void)state;

    answers_start(&other, trap, N(trap));
    snprintf(answer, sizeof(answer),
             "HTTP/1.1 307 Moved\r\nLocation: %s/ask\r\nConnection: close\r\n\r\n", other.url);
    assert_hopeless(answer, 0, "anthropic sends us elsewhere (HTTP 307)");
    answers_stop(&other);
    assert_int_equal(other.served, 0);
}

/* ---- what a server cannot have ---- */

static void no_tools(void **state)
{
    static const struct answer list[] = {
        {ANSWER_STATUS("400 No") "{\"error\":{\"message\":\"gemma:2b does not support tools\"}}"},
        {HELLO}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    assert_reply(&a, "hello");
    assert_false(a.model.tools);
    assert_true(a.model.sees && a.model.streams);
    assert_int_equal(a.seconds, 0);
    assert_has(a.why, "the model has no tools");
    assert_has(a.server.request[0], "\"system\":\"use the tool\"");
    assert_has(a.server.request[1], "\"system\":\"write it in your text\",\"tools\":false");
    asking_stop(&a);
}

static void add_picture(struct asking *a)
{
    json_array_append_new(a->talk,
                          json_pack("{s:s, s:[{s:s, s:[{s:s}]}]}", "role", "results", "results",
                                    "id", "1", "pictures", "type", "image/png"));
}

static void no_pictures(void **state)
{
    static const struct answer list[] = {
        {ANSWER_STATUS(
            "500 No") "{\"error\":{\"message\":\"image input is not supported - hint: …\"}}"},
        {HELLO}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    add_picture(&a);
    assert_reply(&a, "hello");
    assert_false(a.model.sees);
    assert_true(a.model.tools);
    asking_stop(&a);
}

static void one_lack_after_the_other(void **state)
{
    static const struct answer list[] = {
        {ANSWER_STATUS(
            "404 No") "{\"error\":{\"message\":\"No endpoints that support image input\"}}"},
        {ANSWER_STATUS("500 No") "{\"error\":{\"message\":\"tools param requires --jinja flag\"}}"},
        {ANSWER_STATUS("400 No") "{\"error\":{\"message\":\"Unknown argument: stream_options\"}}"},
        {ANSWER_JSON "{\"text\":\"hello\"}"}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    add_picture(&a);
    assert_reply(&a, "hello");
    assert_false(a.model.sees || a.model.tools || a.model.streams);
    assert_int_equal(a.again, 3);
    asking_stop(&a);
}

/* What only sounds like it. */
static void no_lack(void **state)
{
    static const struct answer list[] = {
        {ANSWER_STATUS("502 Bad") "{\"error\":{\"message\":\"upstream tools down\"}}"}, {HELLO}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    assert_reply(&a, "hello");
    assert_true(a.model.sees && a.model.tools && a.model.streams);
    asking_stop(&a);
    assert_hopeless(
        ANSWER_STATUS("400 No") "{\"error\":{\"message\":\"this functionality is off\"}}", 0,
        "functionality");
    assert_hopeless(ANSWER_STATUS("400 No") "{\"error\":{\"message\":\"bad upstream\"}}", 0,
                    "bad upstream");
    assert_hopeless(ANSWER_STATUS("400 No") "{\"error\":{\"message\":\"no image was sent\"}}", 0,
                    "no image was sent");
}

/* ---- stopping ---- */

static void *interrupt_soon(void *ctx)
{
    (void)ctx;
    usleep(200000);
    kill(getpid(), SIGINT);
    return NULL;
}

static void ctrl_c(void **state)
{
    static const struct answer list[] = {{.after_ms = 20000}};
    struct asking a;
    pthread_t thread;
    (void)state;

    asking_start(&a, list, N(list));
    pthread_create(&thread, NULL, interrupt_soon, NULL);
    assert_true(ask_it(&a) & TURN_SIGINT);
    assert_in_range(a.took_ms, 100, 15000);
    pthread_join(thread, NULL);
    asking_stop(&a);
}

static void ctrl_c_between_tries(void **state)
{
    static const struct answer list[] = {
        {"HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nConnection: close\r\n\r\n"}};
    struct asking a;
    pthread_t thread;
    (void)state;

    asking_start(&a, list, N(list));
    pthread_create(&thread, NULL, interrupt_soon, NULL);
    assert_true(ask_it(&a) & TURN_SIGINT);
    assert_in_range(a.took_ms, 100, 15000);
    pthread_join(thread, NULL);
    asking_stop(&a);
}

static void a_deadline(void **state)
{
    static const struct answer silent[] = {{.after_ms = 20000}};
    static const struct answer busy[] = {
        {"HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nConnection: close\r\n\r\n"}};
    struct asking a;
    (void)state;

    asking_start(&a, silent, N(silent));
    a.deadline_ms = clock_now_ms() + 300;
    assert_int_equal(ask_it(&a), -1);
    assert_int_equal(a.e.code, ETIMEDOUT);
    assert_in_range(a.took_ms, 250, 15000);
    asking_stop(&a);
    asking_start(&a, busy, N(busy));
    a.deadline_ms = clock_now_ms() + 20000;
    assert_int_equal(ask_it(&a), -1);
    assert_int_equal(a.e.code, ETIMEDOUT);
    assert_in_range(a.took_ms, 0, 15000); /* it is known beforehand that there is no time for it */
    asking_stop(&a);
}

static void ticks(void **state)
{
    static const struct answer list[] = {{HELLO, .after_ms = 500}};
    struct asking a;
    (void)state;

    asking_start(&a, list, N(list));
    a.owner.tick_ms = 50;
    assert_reply(&a, "hello");
    assert_in_range(a.ticks, 1, 13); /* ten, unless others have the processor */
    asking_stop(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream),
        cmocka_unit_test(a_long_question),
        cmocka_unit_test(one_body),
        cmocka_unit_test(one_body_for_a_stream),
        cmocka_unit_test(an_end_that_is_not_the_connections),
        cmocka_unit_test(too_much),
        cmocka_unit_test(a_stream_that_breaks_off),
        cmocka_unit_test(an_error_in_the_stream),
        cmocka_unit_test(busy_until_all_tries_are_used_up),
        cmocka_unit_test(longer_than_anybody_waits),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(refusals),
        cmocka_unit_test(nobody_is_sent_elsewhere),
        cmocka_unit_test(no_tools),
        cmocka_unit_test(no_pictures),
        cmocka_unit_test(one_lack_after_the_other),
        cmocka_unit_test(no_lack),
        cmocka_unit_test(ctrl_c),
        cmocka_unit_test(ctrl_c_between_tries),
        cmocka_unit_test(a_deadline),
        cmocka_unit_test(ticks),
    };

    alarm(100); /* an owner takes the signals that would end us else */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
