/* calls_points: the states of a session that are kept, and going back to one. */
#include <stdlib.h>

#include "gate/calls.h"
#include "session/point_json.h"

/* ---- which there are ---- */

struct points {
    struct transfer t;
    json_t *list;
};

static void points_free(struct transfer *t)
{
    struct points *p = (struct points *)t;

    if (t->asked)
        session_file_cancel(t->asked);
    json_decref(p->list);
    free(p);
}

static void on_point(void *ctx, const struct session_point *p)
{
    struct points *all = ctx;

    json_array_append_new(all->list, point_json(p));
}

static void on_listed(void *ctx, const struct file_answer *a)
{
    struct points *p = ctx;
    struct request *r = p->t.request;
    json_t *answer = json_pack("{s:O}", "checkpoints", p->list);

    p->t.asked = NULL;
    transfer_over(&p->t);
    if (a->e) {
        json_decref(answer);
        reply_file_failed(r, a->e, false);
    } else {
        reply_json(r, 200, answer);
    }
}

void call_checkpoints(struct request *r)
{
    struct live *l = live_asked(r);
    struct err e;

    if (!l)
        return;
    struct points *p = transfer_new(l, r, sizeof(*p), points_free);
    p->list = json_array();
    p->t.asked = session_ask_points(l->session, on_point, on_listed, p, &e);
    if (p->t.asked)
        return;
    transfer_over(&p->t);
    reply_file_failed(r, &e, false);
}

/* ---- going back ---- */

void call_rollback(struct request *r)
{
    static const char *const members[] = {"to", NULL};
    json_t *body = ask_object(r, members);

    if (!body)
        return;
    const json_t *to = json_object_get(body, "to");
    json_int_t n = json_integer_value(to);
    struct live *l = live_asked(r);
    if (l && (!json_is_integer(to) || n < 0 || n >= UINT32_MAX))
        reply_error(r, 400, "bad_request", "\"to\" is the number of a cell");
    else if (l && holder_begins_cell(r) == 0)
        job_add(l, r, &(struct job_order){.kind = JOB_ROLLBACK, .to = (uint32_t)n});
    json_decref(body);
}
