/* calls_sessions: making, listing and ending sessions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/calls.h"

#define METADATA_MAX (16u << 10)

/* ---- making one ---- */

static void on_standing(struct live *l)
{
    struct request *r = l->creator;
    struct err why;
    char location[sizeof("/v1/sessions/") + SESSION_ID_MAX];

    l->creator = NULL;
    live_touch(l);
    if (live_record(l, &why) < 0) {
        reply_store_failed(r, &why);
        live_end(l, "crashed");
        return;
    }
    snprintf(location, sizeof(location), "/v1/sessions/%s", l->id);
    request_unwork(r);
    reply_json_at(r, 201, location, live_json(l));
}

static void on_opened(struct live *l, const struct err *e)
{
    struct request *r = l->creator;

    if (!e) {
        given_put(l, on_standing);
        return;
    }
    l->creator = NULL;
    log_line("session error=\"%s\"", e->text);
    reply_later(r, 503, 5, "no_box", "no box could be made: %s", e->text);
    live_end(l, "crashed");
}

static void on_creator_gone(void *work)
{
    struct live *l = work;

    l->creator = NULL;
    live_end(l, "deleted");
}

int ask_environment(struct request *r, const json_t *name, unsigned *ret)
{
    *ret = 0;
    if (!name || json_is_null(name))
        return 0;
    for (unsigned i = 0; json_is_string(name) && r->gate->environments[i]; i++)
        if (strcmp(r->gate->environments[i], json_string_value(name)) == 0) {
            *ret = i;
            return 0;
        }
    reply_error(r, 400, "bad_request", "there is no such environment on this server");
    return -1;
}

static int ask_idle_timeout(struct request *r, const json_t *value, double *ret)
{
    struct err e;

    *ret = r->gate->config->idle_timeout_s;
    if (!value || json_is_null(value))
        return 0;
    if (json_is_string(value) && config_parse_seconds(json_string_value(value), ret, &e) < 0) {
        reply_error(r, 400, "bad_request", "\"idle_timeout\": %s", e.text);
        return -1;
    }
    if (json_is_number(value))
        *ret = json_number_value(value);
    if ((!json_is_string(value) && !json_is_number(value)) || !(*ret > 0) ||
        (isfinite(*ret) && *ret > 1e9)) {
        reply_error(r, 400, "bad_request",
                    "\"idle_timeout\" must be a number of seconds above 0, or \"none\"");
        return -1;
    }
    return 0;
}

static int ask_checkpoints(struct request *r, const json_t *value, unsigned *ret)
{
    json_int_t n = json_integer_value(value);

    *ret = r->gate->config->checkpoints;
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_integer(value) || n < 0 || n > CHECKPOINTS_MAX) {
        reply_error(r, 400, "bad_request", "\"checkpoints\" is how many states are kept, 0 to %u",
                    CHECKPOINTS_MAX);
        return -1;
    }
    *ret = (unsigned)n;
    return 0;
}

static int ask_metadata(struct request *r, json_t *value, json_t **ret)
{
    if (!value || json_is_null(value)) {
        *ret = json_object();
        return 0;
    }
    if (!json_is_object(value)) {
        reply_error(r, 400, "bad_request", "\"metadata\" must be an object");
        return -1;
    }
    cleanup_free char *text = json_text(value);
    if (strlen(text) > METADATA_MAX) {
        reply_error(r, 400, "bad_request", "\"metadata\" may have at most %u bytes", METADATA_MAX);
        return -1;
    }
    *ret = json_incref(value);
    return 0;
}

int ask_room(struct request *r, const struct limits *l)
{
    if (holder_admits(r, l->memory) < 0)
        return -1;
    if (r->gate->n_lives >= r->gate->config->max_sessions) {
        reply_later(r, 503, 5, "too_many_sessions", "the server has all the sessions it takes (%u)",
                    r->gate->n_lives);
        return -1;
    }
    return 0;
}

static void make_session(struct request *r, json_t *body)
{
    struct limits limits;
    unsigned environment, checkpoints;
    double idle_timeout_s;
    json_t *metadata;

    if (ask_limits(r, json_object_get(body, "limits"), &limits) < 0 ||
        ask_environment(r, json_object_get(body, "environment"), &environment) < 0 ||
        ask_idle_timeout(r, json_object_get(body, "idle_timeout"), &idle_timeout_s) < 0 ||
        ask_checkpoints(r, json_object_get(body, "checkpoints"), &checkpoints) < 0 ||
        ask_room(r, &limits) < 0 ||
        ask_metadata(r, json_object_get(body, "metadata"), &metadata) < 0)
        return;
    struct live *l = live_new(r->gate, r->holder, &limits, environment, NULL);
    l->idle_timeout_s = idle_timeout_s;
    l->checkpoints = checkpoints;
    l->metadata = metadata;
    l->creator = r;
    l->opened = on_opened;
    request_work(r, on_creator_gone, l);
    live_open(l);
}

void call_session_new(struct request *r)
{
    static const char *const members[] = {"limits",   "idle_timeout", "environment",
                                          "metadata", "checkpoints",  NULL};
    json_t *body = ask_object(r, members);

    if (!body)
        return;
    make_session(r, body);
    json_decref(body);
}

/* ---- looking ---- */

void call_session(struct request *r)
{
    struct live *l = live_find(r);
    struct session_row row;
    struct err e = {0};

    if (l) {
        reply_json(r, 200, live_json(l));
        return;
    }
    int found = store_session_get(r->gate->store, r->holder->token.id, r->params[0], &row, &e);
    if (found < 0) {
        reply_store_failed(r, &e);
    } else if (found == 0) {
        reply_error(r, 404, "not_found", "there is no such session");
    } else {
        reply_json(r, 200, row_json(&row));
        session_row_done(&row);
    }
}

/* Newest first. The cursor is the last one's number among the token's own, so that it means the same when
 * that session has ended meanwhile. */
static void list_live(struct request *r, unsigned limit)
{
    const char *after = request_query(r, "after");
    uint64_t before = UINT64_MAX;
    char *end = NULL;
    json_t *data = json_array(), *next = NULL;
    uint64_t last = 0;

    if (after)
        before = strtoull(after, &end, 10);
    if (after && (end == after || *end)) {
        json_decref(data);
        reply_error(r, 400, "bad_request", "\"after\" must be the \"next\" of an earlier answer");
        return;
    }
    for (const struct live *l = r->gate->lives; l; l = l->next) {
        if (l->holder != r->holder || l->once || !l->open || l->number >= before)
            continue;
        if (json_array_size(data) == limit) {
            next = json_sprintf("%llu", (unsigned long long)last);
            break;
        }
        json_array_append_new(data, live_json(l));
        last = l->number;
    }
    reply_json(r, 200, page_json(data, next));
}

struct ended_list {
    json_t *data;
    unsigned limit;
    json_t *next;
};

static void add_ended(void *ctx, const struct session_row *row)
{
    struct ended_list *list = ctx;
    size_t n = json_array_size(list->data);

    if (n == list->limit) {
        const json_t *last = json_array_get(list->data, n - 1);
        list->next = json_incref(json_object_get(last, "id"));
    } else {
        json_array_append_new(list->data, row_json(row));
    }
}

static void list_ended(struct request *r, unsigned limit)
{
    struct ended_list list = {.data = json_array(), .limit = limit};
    struct err e;

    if (store_sessions_ended(r->gate->store, r->holder->token.id, request_query(r, "after"),
                             limit + 1, add_ended, &list, &e) < 0) {
        json_decref(list.data);
        json_decref(list.next);
        reply_store_failed(r, &e);
        return;
    }
    reply_json(r, 200, page_json(list.data, list.next));
}

void call_sessions(struct request *r)
{
    const char *status = request_query(r, "status");
    unsigned limit;

    if (ask_page(r, &limit) < 0)
        return;
    if (!status || strcmp(status, "live") == 0)
        list_live(r, limit);
    else if (strcmp(status, "ended") == 0)
        list_ended(r, limit);
    else
        reply_error(r, 400, "bad_request", "\"status\" is \"live\" (the default) or \"ended\"");
}

/* ---- ending ---- */

static void on_deleter_gone(void *work)
{
    struct live *l = work;

    l->deleter = NULL;
}

static void forget(struct request *r)
{
    struct session_row row;
    struct err e = {0};
    int found = store_session_get(r->gate->store, r->holder->token.id, r->params[0], &row, &e);

    if (found > 0) {
        session_row_done(&row);
        found = store_session_forget(r->gate->store, r->params[0], &e) < 0 ? -1 : 1;
        gate_expire_soon(r->gate);
    }
    if (found < 0)
        reply_store_failed(r, &e);
    else if (found == 0)
        reply_error(r, 404, "not_found", "there is no such session");
    else
        reply_empty(r, 204);
}

void call_session_delete(struct request *r)
{
    struct live *l = live_find(r);

    if (!l) {
        forget(r); /* it has ended: now its journal goes too */
        return;
    }
    if (l->deleter) {
        reply_error(r, 409, "session_ending", "this session is being ended");
        return;
    }
    l->deleter = r;
    request_work(r, on_deleter_gone, l);
    live_end(l, "deleted");
}

void call_interrupt(struct request *r)
{
    static const char *const none[] = {NULL};
    json_t *body = ask_object(r, none);

    if (!body)
        return;
    json_decref(body);
    struct live *l = live_asked(r);
    if (!l)
        return;
    if (l->running && l->running->trial)
        trial_stop(l->running->trial);
    else if (l->running)
        session_interrupt(l->session);
    live_touch(l);
    reply_json(r, 200, live_json(l));
}
