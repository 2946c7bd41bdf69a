/* guest: see guest.h. */
#include "cli/guest.h"

#include <errno.h>
#include <string.h>

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

int guest_open(struct guest *g, struct owner *o, const struct limits *limits,
               const struct guest_view *view, struct err *e)
{
    *g = (struct guest){.owner = o, .view = view};
    g->session = session_open(o->vessel, 0, limits, &events, g);
    while (!g->opened && !g->failed) {
        int turn = owner_turn(o, -1, e);
        if (turn < 0 || turn & (TURN_SIGINT | TURN_STOP | TURN_CLOSED)) {
            guest_close(g);
            return turn;
        }
    }
    if (g->failed) {
        *e = g->err;
        guest_close(g);
        return err_wrap(e, "no box could be made");
    }
    return 0;
}

void guest_close(struct guest *g)
{
    if (g->session)
        session_close(g->session);
    if (g->cell)
        cell_free(g->cell);
    g->session = NULL;
    g->cell = NULL;
}

int guest_start(struct guest *g, const char *code, size_t len, uint64_t timeout_ms, struct err *e)
{
    assert_that(!g->cell);
    return session_run(g->session, code, len, timeout_ms, e);
}

struct cell *guest_take(struct guest *g)
{
    struct cell *c = g->cell;
    g->cell = NULL;
    return c;
}

int guest_ask(struct guest *g, const char *code, struct cell **ret, struct err *e)
{
    if (guest_start(g, code, strlen(code), 0, e) < 0)
        return -1;
    while (!g->cell) {
        int turn = owner_turn(g->owner, -1, e);
        if (turn < 0)
            return -1;
        if (turn & (TURN_SIGINT | TURN_STOP))
            return err_set(e, EINTR, "stopped");
    }
    *ret = guest_take(g);
    return 0;
}
