/* guest: see guest.h. */
#include "guest/guest.h"

#include <errno.h>
#include <string.h>

#include "session/cell_json.h"

int guest_open(struct guest *g, struct owner *o, const struct limits *limits,
               const struct guest_view *view, struct err *e)
{
    *g = (struct guest){.ways = o->client ? &guest_remote : &guest_local,
                        .owner = o,
                        .view = view,
                        .limits = *limits,
                        .next = 1};
    int turn = g->ways->open(g, e);
    if (turn != 0)
        guest_close(g);
    return turn;
}

int guest_fork(struct guest *g, struct guest *from, uint32_t n, struct err *e)
{
    *g = (struct guest){.ways = from->ways,
                        .owner = from->owner,
                        .view = from->view,
                        .limits = from->limits,
                        .at = n,
                        .next = n + 1};
    int turn = g->ways->fork(g, from, n, e);
    if (turn != 0)
        guest_close(g);
    return turn;
}

void guest_leave(struct guest *g)
{
    if (g->ways && g->ways->leave)
        g->ways->leave(g);
}

void guest_close(struct guest *g)
{
    if (g->ways)
        g->ways->close(g);
    cell_free(g->cell);
    cell_free(g->undoing);
    g->ways = NULL;
    g->cell = g->undoing = NULL;
}

int guest_start(struct guest *g, const char *code, size_t len, uint64_t timeout_ms, struct err *e)
{
    assert_that(!g->cell);
    return g->ways->start(g, code, len, timeout_ms, e);
}

void guest_interrupt(struct guest *g)
{
    g->ways->interrupt(g);
}

bool guest_ended(const struct guest *g)
{
    return g->ways->ended(g);
}

int guest_put(struct guest *g, const char *name, int fd, struct err *e)
{
    return g->ways->put(g, name, fd, e);
}

int guest_get(struct guest *g, const char *path, int scratch, uint64_t max, int *ret_fd,
              struct err *e)
{
    return g->ways->get(g, path, scratch, max, ret_fd, e);
}

int guest_list(struct guest *g, file_listed *entry, void *ctx, struct err *e)
{
    return g->ways->list(g, entry, ctx, e);
}

int guest_check(struct guest *g, const char *code, size_t len, int *ret_state, char **ret_indent,
                struct err *e)
{
    return g->ways->check(g, code, len, ret_state, ret_indent, e);
}

int guest_points(struct guest *g, point_listed *point, void *ctx, struct err *e)
{
    return g->ways->points(g, point, ctx, e);
}

int guest_rollback(struct guest *g, uint32_t n, struct err *e)
{
    int turn = g->ways->rollback(g, n, e);

    if (turn == 0)
        g->at = n;
    return turn;
}

int guest_describe(struct guest *g, char **ret, struct err *e)
{
    return g->ways->describe(g, ret, e);
}

struct cell *guest_take(struct guest *g)
{
    struct cell *c = g->cell;

    g->cell = NULL;
    if (c->n > 0) /* else a server has not run it */
        g->next = c->n + 1;
    if (c->restored)
        g->at = c->restored_to;
    else if (c->n > 0)
        g->at = c->n;
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

int guest_environment(struct guest *g, bool brief, json_t **ret, struct err *e)
{
    struct cell *c;

    if (guest_ask(g, brief ? ENVIRONMENT_BRIEF_CODE : ENVIRONMENT_CODE, &c, e) < 0)
        return -1;
    json_t *found = cell_environment_json(c);
    if (!found)
        err_set(e, 0, "the environment does not say what is in it: %s%s%s",
                cell_status_name(c->status), c->error.value ? ": " : "",
                c->error.value ? c->error.value : "");
    cell_free(c);
    *ret = found;
    return found ? 0 : -1;
}
