/* tool_states: rollback, fork, end_session. */
#include <stdlib.h>
#include <string.h>

#include "gate/mcp/tools.h"

static json_t *said(struct buf *text)
{
    return json_pack("[o]", content_text(text->data, text->len));
}

/* Which states are kept, as the numbers of their cells. */
static json_t *numbers(const struct inner_answer *a)
{
    json_t *list = json_array();
    const json_t *point;
    size_t i;

    json_array_foreach(json_object_get(a->body, "checkpoints"), i, point)
    {
        json_array_append(list, json_object_get(point, "n"));
    }
    return list;
}

/* 2.0 is 2 to a schema, but not to the call. */
static json_int_t asked_integer(const struct work *w, const char *name)
{
    return (json_int_t)json_number_value(json_object_get(w->arguments, name));
}

/* ---- rollback ---- */

static void on_points(struct work *w, const struct inner_answer *a)
{
    json_int_t to = asked_integer(w, "to");
    cleanup_buf struct buf text = {0};
    json_t *structured = json_pack("{s:s,s:I}", "session", w->session, "to", to);

    buf_add_fmt(&text, "Variables and files are as they were after cell %lld.", (long long)to);
    if (a->status == 200)
        json_object_set_new(structured, "checkpoints", numbers(a));
    work_result(w, said(&text), structured, false);
}

/* Where it is not kept, the answer names those that are. */
static void on_rolled_back(struct work *w, const struct inner_answer *a)
{
    if (a->status == 200)
        work_ask(w, "GET", "/checkpoints", NULL, on_points);
    else
        work_refused(w, a);
}

void tool_rollback(struct mcp_call *c, const json_t *arguments)
{
    struct work *w = work_new(c, arguments, sizeof(*w), NULL);

    work_ask(w, "POST", "/rollback", json_pack("{s:I}", "to", asked_integer(w, "to")),
             on_rolled_back);
}

/* ---- fork ---- */

static void on_choice(struct work *w, const struct inner_answer *a)
{
    json_t *list = numbers(a), *n;
    cleanup_buf struct buf text = {0};
    size_t i;

    json_array_foreach(list, i, n)
    {
        buf_add_fmt(&text, "%s%lld", i ? ", " : "", (long long)json_integer_value(n));
    }
    json_decref(list);
    work_failed(w, "the state after cell %lld is not kept; %s%s", (long long)asked_integer(w, "at"),
                text.len ? "there are: " : "none is", buf_text(&text));
}

static void on_forked(struct work *w, const struct inner_answer *a)
{
    cleanup_buf struct buf text = {0};
    const json_t *session;
    size_t i;

    if (a->status == 409) {
        work_ask(w, "GET", "/checkpoints", NULL, on_choice);
        return;
    }
    if (a->status != 201) {
        work_refused(w, a);
        return;
    }
    json_t *ids = json_array();
    json_array_foreach(json_object_get(a->body, "sessions"), i, session)
    {
        json_t *id = json_object_get(session, "id");
        json_array_append(ids, id);
        buf_add_fmt(&text, "session: %s\n", json_string_value(id));
    }
    work_result(w, said(&text), json_pack("{s:s,s:o}", "session", w->session, "sessions", ids),
                false);
}

static void set_integer(json_t *body, const struct work *w, const char *name)
{
    if (json_is_number(json_object_get(w->arguments, name)))
        json_object_set_new(body, name, json_integer(asked_integer(w, name)));
}

void tool_fork(struct mcp_call *c, const json_t *arguments)
{
    struct work *w = work_new(c, arguments, sizeof(*w), NULL);
    json_t *body = json_object();

    set_integer(body, w, "count");
    set_integer(body, w, "at");
    work_ask(w, "POST", "/fork", body, on_forked);
}

/* ---- end_session ---- */

struct ending {
    struct work w;
    json_t *fresh; /* what a session is made with that takes its place; or NULL */
    char *ended;
};

static void ending_free(struct work *w)
{
    struct ending *e = (struct ending *)w;

    json_decref(e->fresh);
    free(e->ended);
}

static void on_fresh(struct work *w, const struct inner_answer *a)
{
    struct ending *e = (struct ending *)w;
    const char *id = json_string_value(json_object_get(a->body, "id"));
    cleanup_buf struct buf text = {0};

    if (a->status != 201 || !id) {
        work_failed(w, "the session has ended, but no new one could be made: %s",
                    answer_message(a));
        return;
    }
    buf_add_fmt(&text, "session: %s\n\nIt takes the place of %.100s, which has ended.", id,
                e->ended);
    json_t *structured = json_pack("{s:s,s:s}", "session", id, "ended", e->ended);
    work_result(w, said(&text), structured, false);
}

static void is_over(struct work *w)
{
    struct ending *e = (struct ending *)w;
    cleanup_buf struct buf text = {0};

    if (e->fresh) {
        e->ended = w->session;
        w->session = NULL;
        json_t *body = e->fresh;
        e->fresh = NULL;
        work_make_session(w, body, on_fresh);
        return;
    }
    buf_add_text(&text, "The session has ended.");
    work_result(w, said(&text), json_pack("{s:s,s:b}", "session", w->session, "ended", 1), false);
}

static void on_deleted(struct work *w, const struct inner_answer *a)
{
    if (a->status == 204)
        is_over(w);
    else
        work_refused(w, a);
}

static json_t *made_like(const json_t *session)
{
    static const char *const members[] = {"limits", "idle_timeout", "environment", "metadata",
                                          "checkpoints"};
    json_t *body = json_object();

    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        json_t *value = json_object_get(session, members[i]);
        if (value)
            json_object_set(body, members[i], value);
    }
    return body;
}

/* One that has ended already stays in the journal: only who asks for that by the API has it forgotten. */
static void on_looked(struct work *w, const struct inner_answer *a)
{
    struct ending *e = (struct ending *)w;
    const char *status = json_string_value(json_object_get(a->body, "status"));

    if (a->status != 200 || !status) {
        work_refused(w, a);
        return;
    }
    if (json_is_true(json_object_get(w->arguments, "reset")))
        e->fresh = made_like(a->body);
    if (strcmp(status, "ended") == 0)
        is_over(w);
    else
        work_ask(w, "DELETE", "", NULL, on_deleted);
}

void tool_end_session(struct mcp_call *c, const json_t *arguments)
{
    struct ending *e = work_new(c, arguments, sizeof(*e), ending_free);

    work_ask(&e->w, "GET", "", NULL, on_looked);
}
