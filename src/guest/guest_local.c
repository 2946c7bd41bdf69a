/* guest_local: a guest in a box of our own keeper's. */
#include "guest/guest.h"

#include <errno.h>
#include <string.h>

#include "wire/proto.h"

#define LIST_MS 30000

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    struct guest *g = ctx;

    (void)s;
    g->opened = !e;
    g->failed = e != NULL;
    if (e)
        g->err = *e;
}

static void on_text(void *ctx, struct session *s, enum output_kind kind, const char *text,
                    size_t len)
{
    struct guest *g = ctx;

    (void)s;
    if (g->view && g->view->text)
        g->view->text(g->view->ctx, kind, text, len);
}

static void on_display(void *ctx, struct session *s, const struct output *o)
{
    struct guest *g = ctx;

    (void)s;
    if (g->view && g->view->display)
        g->view->display(g->view->ctx, o);
}

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    struct guest *g = ctx;
    struct err ignored;

    assert_that(!g->cell);
    if (g->undoing) {
        cell_undone(g->undoing, c);
        cell_free(c);
        c = g->undoing;
        g->undoing = NULL;
    } else if (g->undo && c->n > 0 && c->status != CELL_OK && !c->session_ended &&
               session_rollback(s, c->n - 1, &ignored) == 0) {
        g->undoing = c; /* and this is called again */
        return;
    }
    g->cell = c;
}

static const struct session_events events = {
    .opened = on_opened,
    .text = on_text,
    .display = on_display,
    .done = on_done,
};

static int wait_until_open(struct guest *g, struct err *e)
{
    if (g->owner->wish.checkpoints >= 0)
        session_keep(g->session, (unsigned)g->owner->wish.checkpoints);
    while (!g->opened && !g->failed) {
        int turn = owner_turn(g->owner, -1, e);
        if (turn < 0 || turn & (TURN_SIGINT | TURN_STOP | TURN_CLOSED))
            return turn;
    }
    if (!g->failed)
        return 0;
    *e = g->err;
    return err_wrap(e, "no box could be made");
}

static int local_open(struct guest *g, struct err *e)
{
    g->session = session_open(g->owner->vessel, 0, &g->limits, &events, g);
    return wait_until_open(g, e);
}

static int local_fork(struct guest *g, struct guest *from, uint32_t n, struct err *e)
{
    const struct session_departure at = {.n = n, .present = n == session_state_n(from->session)};

    g->session = session_branch(from->session, &at, &g->limits, &events, g);
    int turn = wait_until_open(g, e);
    if (turn < 0 && g->failed && strcmp(g->err.text, LENT_NOT_KEPT) == 0)
        e->code = ENOENT;
    return turn;
}

static void local_close(struct guest *g)
{
    session_close(g->session);
    g->session = NULL;
}

static int local_start(struct guest *g, const char *code, size_t len, uint64_t timeout_ms,
                       struct err *e)
{
    return g->undo ? session_run_undoable(g->session, code, len, timeout_ms, e)
                   : session_run(g->session, code, len, timeout_ms, e);
}

static void local_interrupt(struct guest *g)
{
    session_interrupt(g->session);
}

static bool local_ended(const struct guest *g)
{
    return session_ended(g->session);
}

static int local_put(struct guest *g, const char *name, int fd, struct err *e)
{
    return session_put(g->session, name, fd, e);
}

/* init passes the file itself: nothing is fetched. */
static int local_get(struct guest *g, const char *path, int scratch, uint64_t max, int *ret_fd,
                     struct err *e)
{
    (void)scratch;
    (void)max;
    return session_get(g->session, path, ret_fd, e);
}

static int local_check(struct guest *g, const char *code, size_t len, int *ret_state,
                       char **ret_indent, struct err *e)
{
    return session_check(g->session, code, len, ret_state, ret_indent, e);
}

/* A list that init tells, of states or of files. */
struct listing {
    point_listed *point;
    file_listed *entry;
    void *ctx;
    bool answered;
    struct err e;
};

static void on_point(void *ctx, const struct session_point *p)
{
    struct listing *l = ctx;

    l->point(l->ctx, p);
}

static void on_entry(void *ctx, const char *path, uint64_t size, uint64_t mtime_ns)
{
    struct listing *l = ctx;

    l->entry(l->ctx, path, size, mtime_ns);
}

static void on_listed(void *ctx, const struct file_answer *a)
{
    struct listing *l = ctx;

    l->answered = true;
    if (a->e)
        l->e = *a->e;
}

static int wait_for_list(struct guest *g, struct listing *l, struct file_request *r, struct err *e)
{
    if (!r)
        return -1;
    owner_wait(g->owner, &l->answered, LIST_MS);
    if (!l->answered) {
        session_file_cancel(r);
        return err_set(e, ETIMEDOUT, "the box does not answer");
    }
    *e = l->e;
    return l->e.text[0] ? -1 : 0;
}

static int local_points(struct guest *g, point_listed *point, void *ctx, struct err *e)
{
    struct listing l = {.point = point, .ctx = ctx};

    return wait_for_list(g, &l, session_ask_points(g->session, on_point, on_listed, &l, e), e);
}

static int local_list(struct guest *g, file_listed *entry, void *ctx, struct err *e)
{
    struct listing l = {.entry = entry, .ctx = ctx};

    return wait_for_list(g, &l, session_ask_list(g->session, on_entry, on_listed, &l, e), e);
}

static int rolled_back(const struct cell *c, struct err *e)
{
    if (c->restored)
        return 0;
    if (!c->error.name || strcmp(c->error.name, NO_POINT) != 0)
        return err_set(e, 0, "the session could not be brought back, and has ended");
    err_set(e, 0, "%s", c->error.value);
    e->code = ENOENT;
    return -1;
}

static int local_rollback(struct guest *g, uint32_t n, struct err *e)
{
    if (session_rollback(g->session, n, e) < 0)
        return -1;
    while (!g->cell) {
        int turn = owner_turn(g->owner, -1, e);
        if (turn < 0 || turn & (TURN_STOP | TURN_CLOSED))
            return turn;
    }
    struct cell *c = guest_take(g);
    int result = rolled_back(c, e);
    cell_free(c);
    return result;
}

/* Asked in a box of its own, so that its cells are not this one's. */
static int local_describe(struct guest *g, char **ret, struct err *e)
{
    struct guest other;
    json_t *found = NULL;
    int turn = guest_open(&other, g->owner, &g->limits, NULL, e);

    if (turn != 0)
        return turn;
    turn = guest_environment(&other, true, &found, e);
    guest_close(&other);
    if (turn < 0)
        return e->code == EINTR ? TURN_SIGINT : -1;
    *ret = xstrdup(json_string_value(json_object_get(found, "description")));
    json_decref(found);
    return 0;
}

const struct guest_ways guest_local = {
    .open = local_open,
    .fork = local_fork,
    .close = local_close,
    .start = local_start,
    .interrupt = local_interrupt,
    .ended = local_ended,
    .put = local_put,
    .get = local_get,
    .list = local_list,
    .describe = local_describe,
    .check = local_check,
    .points = local_points,
    .rollback = local_rollback,
};
