/* remote_points: the states of a session on a server that are kept, going back to one, and leaving from one as
 * another session. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "guest/remote.h"
#include "session/cell_from_json.h"
#include "session/point_json.h"

#define POINTS_MAX 1000   /* no server keeps so many */
#define VALUES_MAX 100000 /* in its answer */

static int tell_points(const json_t *list, point_listed *point, void *ctx, struct err *e)
{
    const json_t *j;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > POINTS_MAX)
        return err_set(e, 0, "the server's answer cannot be understood");
    json_array_foreach(list, i, j)
    {
        cleanup_free char *lost = NULL;
        struct session_point p;
        if (point_from_json(j, &p, &lost, e) < 0)
            return err_wrap(e, "the server's answer cannot be understood");
        point(ctx, &p);
    }
    return 0;
}

int remote_points(struct guest *g, point_listed *point, void *ctx, struct err *e)
{
    struct remote *r = g->remote;
    cleanup_call struct call *call = remote_call(r, "GET", "/checkpoints", NULL);
    int turn = remote_wait(g, call, e);

    if (turn != 0)
        return turn < 0 ? -1 : err_set(e, EINTR, "interrupted");
    r->touched_ms = clock_now_ms();
    if (call->status != 200) {
        r->ended = r->ended || remote_is_gone(call);
        return remote_call_failed(call, e);
    }
    if (json_count_values(call->body.data, call->body.len) > VALUES_MAX)
        return err_set(e, EFBIG, "the server's answer is too long");
    json_t *j = json_loadb(call->body.data, call->body.len, 0, NULL);
    int result = tell_points(json_object_get(j, "checkpoints"), point, ctx, e);
    json_decref(j);
    return result;
}

int remote_rollback(struct guest *g, uint32_t n, struct err *e)
{
    struct remote *r = g->remote;
    char *body = remote_dump(json_pack("{s:I}", "to", (json_int_t)n));
    cleanup_call struct call *call = remote_call(r, "POST", "/rollback", body);
    int turn = remote_wait(g, call, e);

    if (turn != 0)
        return turn;
    r->touched_ms = clock_now_ms();
    if (call->status == 200)
        return 0;
    r->ended = r->ended || remote_is_gone(call);
    remote_call_failed(call, e);
    e->code = call->status == 409 ? ENOENT : 0;
    return -1;
}

/* ---- branches ---- */

static int take_branch(struct guest *g, const struct call *call, struct err *e)
{
    json_t *j = json_loadb(call->body.data ? call->body.data : "", call->body.len, 0, NULL);
    int result = remote_take_session_json(g, json_array_get(json_object_get(j, "sessions"), 0), e);

    json_decref(j);
    return result;
}

int remote_fork(struct guest *g, struct guest *from, uint32_t n, struct err *e)
{
    struct remote *r = remote_new(g), *left = from->remote;
    char *body = remote_dump(json_pack("{s:I}", "at", (json_int_t)n));
    cleanup_call struct call *call = remote_call(left, "POST", "/fork", body);
    int turn = remote_wait(g, call, e);

    if (turn != 0)
        return turn;
    left->touched_ms = clock_now_ms();
    if (call->status != 201) {
        left->ended = left->ended || remote_is_gone(call);
        remote_call_failed(call, e);
        e->code = call->status == 409 ? ENOENT : 0;
        return -1;
    }
    if (take_branch(g, call, e) < 0)
        return -1;
    remote_attend(r);
    return 0;
}
