/* question: see question.h. Runs as the asker does: with the model's key, and the token of who asked. */
#include "asker/question.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/exchange.h"
#include "agent/talk.h"
#include "agent/telling.h"
#include "base/fd.h"
#include "guest/guest.h"
#include "guest/owner.h"
#include "session/cell_json.h"

struct question {
    const struct asker_options *asker;
    json_t *order;
    int events_fd;
    bool closed; /* nobody hears us any more */
    struct model model;
    struct address address;
    struct owner owner;
    struct guest guest;
    struct client *client;
    struct telling telling;
};

/* ---- events ---- */

static void tell(void *ctx, const char *event, json_t *data)
{
    struct question *q = ctx;
    char *text = json_dumps(data, CELL_JSON_FLAGS);
    struct buf b = {0};

    assert_that(text);
    buf_add_fmt(&b, "event: %s\ndata: ", event);
    buf_add_text(&b, text);
    buf_add_text(&b, "\n\n");
    free(text);
    json_decref(data);
    if (fd_write_all(q->events_fd, b.data, b.len) < 0)
        q->closed = q->owner.out.closed = true;
    buf_done(&b);
}

/* A client that has gone away is noticed by nobody else while a model thinks. */
static void on_tick(void *ctx)
{
    const struct telling *t = ctx;
    struct question *q = t->ctx;
    struct pollfd p = {.fd = q->events_fd};

    if (poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP))
        q->closed = q->owner.out.closed = true;
}

static void tell_failure(struct question *q, unsigned status, const char *code, const char *why)
{
    tell(q, ASKER_FAILED,
         json_pack("{s:i,s:s,s:s}", "status", (int)status, "code", code, "message", why));
}

/* ---- the order ---- */

static json_t *read_order(int fd)
{
    cleanup_buf struct buf text = {0};
    ssize_t n;

    (void)fcntl(fd, F_SETFL, 0);
    while (text.len <= ASKER_ORDER_MAX && (n = read(fd, buf_room(&text, 4096), 4096)) > 0)
        text.len += (size_t)n;
    json_t *j = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
    if (text.data)
        explicit_bzero(text.data, text.len);
    return j;
}

static double number_of(const json_t *order, const char *member, double otherwise)
{
    const json_t *j = json_object_get(order, member);

    return json_is_number(j) ? json_number_value(j) : otherwise;
}

static void read_bounds(const struct question *q, struct agent_bounds *ret)
{
    const struct asker_options *o = q->asker;
    double time_s = number_of(q->order, "max_time", o->time_s);

    agent_bounds_default(ret);
    ret->attempts = (unsigned)number_of(q->order, "attempts", ret->attempts);
    ret->cells = (unsigned)number_of(q->order, "max_cells", o->cells);
    ret->tokens = (uint64_t)number_of(q->order, "max_tokens", o->tokens);
    ret->wall_ms = isfinite(time_s) ? (uint64_t)(time_s * 1000) : 0;
}

/* Those that were asked for; the gate has looked at them, and looks again when the session is made. */
static void read_limits(struct question *q, struct wish *wish, struct limits *ret)
{
    const json_t *limits = json_object_get(q->order, "limits");
    struct err ignored;

    limits_default(ret);
    for (unsigned i = 0; limits_name(i); i++) {
        const json_t *j = json_object_get(limits, limits_name(i));
        char text[64];
        if (json_is_number(j))
            snprintf(text, sizeof(text), "%.15g", json_number_value(j));
        else
            snprintf(text, sizeof(text), "%s", json_is_string(j) ? json_string_value(j) : "");
        if (text[0] && limits_set(ret, limits_name(i), text, &ignored) == 0)
            wish->limits |= 1u << i;
    }
}

/* ---- answering ---- */

static json_t *earlier(const struct question *q)
{
    const json_t *one;
    json_t *talk = json_array();
    size_t i;

    json_array_foreach(json_object_get(q->order, "history"), i, one)
    {
        const json_t *question = json_object_get(one, "question"),
                     *answer = json_object_get(one, "answer");
        json_array_append_new(talk,
                              talk_user(json_string_value(question), json_string_length(question)));
        json_array_append_new(talk, json_pack("{s:s,s:O}", "role", "model", "text", answer));
    }
    return talk;
}

/* 0 where it was answered or somebody left. */
static int answer(struct question *q, struct agent *a, struct err *e)
{
    json_t *talk = earlier(q);
    struct agent_answer found;

    int r = agent_resume(a, talk, e);
    json_decref(talk);
    if (r < 0)
        return -1;
    r = agent_answer(a, json_string_value(json_object_get(q->order, "question")), &found, e);
    if (r == 0)
        tell(q, "answer", answer_json(&found));
    agent_answer_done(&found);
    return r < 0 ? -1 : 0;
}

static int ask(struct question *q, struct err *e)
{
    const json_t *clean = json_object_get(q->order, "clean_retries");
    struct agent_options o = {.owner = &q->owner,
                              .guest = &q->guest,
                              .client = q->client,
                              .model = &q->model,
                              .view = &q->telling.view,
                              .clean_retries = !json_is_false(clean),
                              .summary = (unsigned)number_of(q->order, "summary", SUMMARY_DEFAULT)};

    read_bounds(q, &o.bounds);
    /* Without it the model is told less. */
    if (guest_describe(&q->guest, &o.environment, e) > 0)
        return 0;
    struct agent *a = agent_new(&o);
    int r = answer(q, a, e);
    agent_free(a);
    return r;
}

static int open_guest(struct question *q, const struct limits *limits, struct err *e)
{
    int r = guest_open(&q->guest, &q->owner, limits, NULL, e);

    if (r == 0)
        tell(q, "session", json_pack("{s:s}", "id", guest_id(&q->guest)));
    return r;
}

/* Where the server cannot be reached the client hears of it; else what is wrong is the model's way. */
static int run(struct question *q, struct err *e)
{
    struct wish wish = {.checkpoints = -1,
                        .environment = json_string_value(json_object_get(q->order, "environment")),
                        .session = json_string_value(json_object_get(q->order, "session")),
                        .keep = true};
    struct limits limits;

    read_limits(q, &wish, &limits);
    if (owner_connect(&q->owner, &q->address, &wish, e) < 0)
        return -1;
    q->client = model_client(&q->model, e);
    int r = q->client ? open_guest(q, &limits, e) : -1;
    if (r == 0)
        r = ask(q, e);
    guest_close(&q->guest);
    if (q->client)
        client_free(q->client);
    owner_stop(&q->owner);
    return r;
}

int question_main(const struct asker_options *o, const struct model *m, int order_fd, int events_fd)
{
    static struct question q;
    struct err e = {0};

    q = (struct question){
        .asker = o, .order = read_order(order_fd), .events_fd = events_fd, .model = *m};
    telling_init(&q.telling, tell, &q, SUMMARY_DEFAULT);
    q.telling.view.tick = on_tick;
    cleanup_free char *url = xasprintf("http://%s", o->address);
    q.address =
        (struct address){.base = url,
                         .token = (char *)json_string_value(json_object_get(q.order, "token")),
                         .loopback = true};
    if (!q.order || !q.address.token)
        tell_failure(&q, 500, "model_failed", "the order cannot be understood");
    else if (run(&q, &e) < 0 && !q.closed)
        tell_failure(&q, 502, "model_failed", e.text);
    return 0;
}
