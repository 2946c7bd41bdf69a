/* guest_local: a guest in a box of our own keeper's. */
#include "cli/guest.h"

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

    (void)s;
    assert_that(!g->cell);
    g->cell = c;
}

static const struct session_events events = {
    .opened = on_opened,
    .text = on_text,
    .display = on_display,
    .done = on_done,
};

static int local_open(struct guest *g, struct err *e)
{
    g->session = session_open(g->owner->vessel, 0, &g->limits, &events, g);
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

static void local_close(struct guest *g)
{
    session_close(g->session);
    g->session = NULL;
}

static int local_start(struct guest *g, const char *code, size_t len, uint64_t timeout_ms,
                       struct err *e)
{
    return session_run(g->session, code, len, timeout_ms, e);
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

const struct guest_ways guest_local = {
    .open = local_open,
    .close = local_close,
    .start = local_start,
    .interrupt = local_interrupt,
    .ended = local_ended,
    .put = local_put,
    .get = local_get,
    .check = local_check,
};
