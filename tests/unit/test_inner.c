/* Calls that the gate makes of its own API: what is told, when, and what is left. No box: how cells and files go over
 * them is seen from outside (tests/api). */
#include "store_place.h"

#include <stdlib.h>
#include <string.h>

#include "gate/inner.h"

static struct gate g;
static struct config config;
static struct holder *holder, *other;

struct heard {
    unsigned times, status;
    char code[64];
    json_t *body;
    struct inner *cancel; /* when this is heard */
};

static int setup(void **state)
{
    const struct quota quota = {LIMIT_NONE, LIMIT_NONE, LIMIT_NONE};
    char text[TOKEN_TEXT_MAX];
    struct token token;
    struct err e;

    if (place_setup(state) < 0)
        return -1;
    struct place *p = *state;
    config_default(&config);
    g = (struct gate){.config = &config, .store = p->st, .armed_ms = INT64_MAX};
    for (unsigned i = 0; i < 2; i++) {
        store_token_new(p->st, i ? "two" : "one", &quota, false, text, &e);
        find(p->st, text, &token);
        *(i ? &other : &holder) = holder_get(&g, &token);
    }
    return 0;
}

static int teardown(void **state)
{
    inner_close(&g);
    assert_int_equal(g.n_requests, 0);
    assert_int_equal(g.held, 0);
    assert_int_equal(holder->held, 0);
    assert_null(g.inners);
    for (struct holder *h; (h = g.holders);) {
        g.holders = h->next;
        free(h);
    }
    config_done(&config);
    return place_teardown(state);
}

static void on_answered(void *ctx, const struct inner_answer *a)
{
    struct heard *h = ctx;
    const json_t *code = json_object_get(json_object_get(a->body, "error"), "code");

    h->times++;
    h->status = a->status;
    json_decref(h->body);
    h->body = json_incref(a->body);
    snprintf(h->code, sizeof(h->code), "%s", code ? json_string_value(code) : "");
    if (h->cancel)
        inner_cancel(h->cancel);
}

static const struct inner_events events = {.answered = on_answered};

static void turn(void)
{
    for (unsigned i = 0; i < 4; i++)
        inner_turn(&g);
}

/* Ask and hear. */
static void ask(struct heard *h, const char *method, const char *path, json_t *body)
{
    inner_call(&g, holder, method, path, body, &events, h);
    assert_int_equal(h->times, 0);
    turn();
    assert_int_equal(h->times, 1);
    json_decref(h->body);
    h->body = NULL;
}

static void an_answer_comes_from_the_loop_and_once(void **state)
{
    struct heard h = {0};
    (void)state;

    inner_call(&g, holder, "GET", "/v1/sessions?limit=3", NULL, &events, &h);
    assert_int_equal(h.times, 0);
    assert_int_equal(g.n_requests, 1);
    turn();
    assert_int_equal(h.times, 1);
    assert_int_equal(h.status, 200);
    assert_int_equal(json_array_size(json_object_get(h.body, "data")), 0);
    assert_true(json_is_null(json_object_get(h.body, "next")));
    json_decref(h.body);
    turn();
    assert_int_equal(h.times, 1);
}

static void errors_are_those_of_the_api(void **state)
{
    struct heard h[6] = {0};
    (void)state;

    ask(&h[0], "GET", "/v1/sessions/none", NULL);
    assert_int_equal(h[0].status, 404);
    assert_string_equal(h[0].code, "not_found");
    ask(&h[1], "POST", "/v1/sessions/none/cells", json_pack("{s:s}", "code", "1"));
    assert_int_equal(h[1].status, 404);
    ask(&h[2], "POST", "/v1/sessions", json_pack("{s:s}", "limit", "1"));
    assert_int_equal(h[2].status, 400);
    ask(&h[3], "GET", "/v1/nothing", NULL);
    assert_int_equal(h[3].status, 404);
    ask(&h[4], "GET", "/v1/sessions/", NULL);
    assert_int_equal(h[4].status, 404);
    ask(&h[5], "GET", "/v1/sessions?limit=0", NULL);
    assert_int_equal(h[5].status, 400);
}

static void another_tokens_session_is_not_there(void **state)
{
    struct place *p = *state;
    struct heard h[2] = {0};

    add_session(p->st, "theirs", other->token.id);
    add_session(p->st, "mine", holder->token.id);
    ask(&h[0], "GET", "/v1/sessions/theirs", NULL);
    assert_int_equal(h[0].status, 404);
    ask(&h[1], "GET", "/v1/sessions/mine", NULL);
    assert_int_equal(h[1].status, 200);
}

static void a_query_is_decoded(void **state)
{
    struct heard h[2] = {0};
    (void)state;

    ask(&h[0], "GET", "/v1/sessions?limit=%35&status=%65nded&after=a%26b%3Dc", NULL);
    assert_int_equal(h[0].status, 200);
    ask(&h[1], "GET", "/v1/sessions?status=no+such", NULL);
    assert_int_equal(h[1].status, 400);
}

static void contents_are_refused_and_let_go(void **state)
{
    struct heard h[2] = {0};
    struct buf contents = {0};
    (void)state;

    buf_room(&contents, 3u << 20);
    contents.len = 3u << 20;
    inner_put(&g, holder, "/v1/sessions/none/files/a", &contents, &events, &h[0]);
    assert_null(contents.data);
    assert_true(holder->held >= 3u << 20);
    turn();
    assert_int_equal(h[0].times, 1);
    assert_int_equal(h[0].status, 404);
    assert_int_equal(holder->held, 0);
    json_decref(h[0].body);
    inner_get(&g, holder, "/v1/sessions/none/files/a", 0, 10, &events, &h[1]);
    turn();
    assert_int_equal(h[1].status, 404);
    json_decref(h[1].body);
}

static void what_is_too_much_is_refused(void **state)
{
    struct heard h[2] = {0};
    cleanup_free char *long_text = xcalloc(1, (70u << 10) + 1);
    (void)state;

    memset(long_text, 'x', 70u << 10);
    ask(&h[0], "POST", "/v1/sessions", json_pack("{s:{s:s}}", "metadata", "a", long_text));
    assert_int_equal(h[0].status, 413);
    holder->held += config.max_buffers; /* others of its own have it all */
    ask(&h[1], "POST", "/v1/sessions/x/cells", json_pack("{s:s}", "code", long_text));
    holder->held -= config.max_buffers;
    assert_int_equal(h[1].status, 503);
    assert_string_equal(h[1].code, "busy");
}

static void a_server_that_stops_refuses(void **state)
{
    struct heard h = {0};
    (void)state;

    g.draining = true;
    ask(&h, "GET", "/v1/sessions", NULL);
    assert_int_equal(h.status, 503);
    assert_string_equal(h.code, "draining");
}

static void one_that_is_cancelled_says_nothing(void **state)
{
    struct heard h = {0};
    struct inner *i = inner_call(&g, holder, "GET", "/v1/sessions", NULL, &events, &h);
    (void)state;

    assert_int_equal(g.n_requests, 1);
    assert_int_equal(inner_untold(i)->status, 200);
    inner_cancel(i);
    turn();
    assert_int_equal(h.times, 0);
    assert_int_equal(g.n_requests, 0);
}

/* The one that is told ends another that is due in the same turn. */
static void one_cancels_another(void **state)
{
    struct heard first = {0}, second = {0};
    (void)state;

    inner_call(&g, holder, "GET", "/v1/sessions", NULL, &events, &first);
    first.cancel = inner_call(&g, holder, "GET", "/v1/sessions", NULL, &events, &second);
    turn();
    assert_int_equal(first.times, 1);
    assert_int_equal(second.times, 0);
    json_decref(first.body);
}

static void nobody_has_to_listen(void **state)
{
    static const struct inner_events deaf = {0};
    (void)state;

    inner_call(&g, holder, "GET", "/v1/sessions", NULL, &deaf, NULL);
    inner_call(&g, holder, "DELETE", "/v1/sessions/none", NULL, &deaf, NULL);
    turn();
    assert_int_equal(g.n_requests, 0);
}

/* A run that waits for its turn: whoever works for it hears that nobody wants it, also where the server ends. */
static void what_waits_is_given_up(void **state)
{
    struct heard h = {0};
    (void)state;

    config.max_runs = 0;
    for (unsigned close = 0; close < 2; close++) {
        struct inner *i =
            inner_call(&g, holder, "POST", "/v1/run", json_pack("{s:s}", "code", "1"), &events, &h);
        turn();
        assert_null(inner_untold(i));
        assert_int_equal(g.n_waiting, 1);
        assert_int_equal(holder->sessions, 1);
        if (close)
            inner_close(&g);
        else
            inner_cancel(i);
        assert_int_equal(g.n_waiting, 0);
        assert_int_equal(holder->sessions, 0);
        turn();
        assert_int_equal(g.n_requests, 0);
    }
    assert_int_equal(h.times, 0);
}

/* Refused by the server's end, it is answered. */
static void what_waits_is_refused(void **state)
{
    struct heard h = {0};
    (void)state;

    config.max_runs = 0;
    inner_call(&g, holder, "POST", "/v1/run", json_pack("{s:s}", "code", "1"), &events, &h);
    runs_refuse(&g);
    assert_int_equal(h.times, 0);
    turn();
    assert_int_equal(h.times, 1);
    assert_string_equal(h.code, "draining");
    json_decref(h.body);
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        test(an_answer_comes_from_the_loop_and_once),
        test(errors_are_those_of_the_api),
        test(another_tokens_session_is_not_there),
        test(a_query_is_decoded),
        test(contents_are_refused_and_let_go),
        test(what_is_too_much_is_refused),
        test(a_server_that_stops_refuses),
        test(one_that_is_cancelled_says_nothing),
        test(one_cancels_another),
        test(nobody_has_to_listen),
        test(what_waits_is_given_up),
        test(what_waits_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
