/* revive: an interpreter that dies, or falls silent, while no cell runs.
 *
 * The newest state that is kept takes its place, as after a cell that killed it: a cell of our own stands for
 * that, with the number 0, of which nobody hears. What its owner orders meanwhile waits for it.
 *
 *     IDLE ──died──▶ SETTLING ──RESTORED──▶ IDLE, and what was ordered begins
 *                       └──none waits──▶ ENDED: told by `ended`, or with the cell that was ordered
 *
 * Once between two cells: what dies again without one would go on for ever.
 */
#include <stdlib.h>
#include <string.h>

#include "session/inside.h"

bool revive_can(const struct session *s)
{
    return s->checkpoints > 0 && !s->revived && !s->vessel->gone && s->sources[FROM_FILES].fd >= 0;
}

bool revive_under_way(const struct session *s)
{
    return s->cell && s->course.reviving;
}

/* ---- what is ordered meanwhile ---- */

void revive_hold(struct session *s, const struct order *o)
{
    struct order *kept = xcalloc(1, sizeof(*kept));

    *kept = *o;
    kept->code = xcalloc(1, o->len + 1);
    if (o->len > 0)
        memcpy(kept->code, o->code, o->len);
    s->later = kept;
}

static void order_free(struct order *o)
{
    if (o)
        free(o->code);
    free(o);
}

void revive_forget(struct session *s)
{
    order_free(s->later);
    s->later = NULL;
}

static void begin_later(struct session *s)
{
    struct order *o = s->later;
    struct err ignored; /* it was looked at when it was given */

    if (!o || s->closed)
        return;
    s->later = NULL;
    session_begin(s, o, &ignored);
    if (o->stop)
        session_interrupt(s);
    order_free(o);
}

/* Nothing can run it. */
static void refuse_later(struct session *s, const struct cell *why)
{
    struct order *o = s->later;
    struct cell *c = cell_new(o->kind == ORDER_RUN ? ++s->n_cells : 0, o->code, o->len);

    s->later = NULL;
    order_free(o);
    c->status = CELL_CRASHED;
    c->session_ended = true;
    cell_set_fault(c, why->error.name, why->error.value);
    if (s->events.done)
        s->events.done(s->ctx, s, c);
    else
        cell_free(c);
}

/* ---- its end ---- */

/* With the next cell's output, where what background threads wrote is told too. */
static void warn(struct session *s, const struct cell *c)
{
    cleanup_buf struct buf text = {0};

    buf_add_fmt(&text, "retort: %s while no cell ran; the session goes on ", c->error.value);
    if (s->course.restored_to)
        buf_add_fmt(&text, "with the state after cell %u\n", s->course.restored_to);
    else
        buf_add_text(&text, "as it began\n");
    output_text(&s->out, OUTPUT_STDERR, text.data, text.len);
}

void revive_finish(struct session *s, struct cell *c)
{
    bool ended = s->broken;

    s->course.reviving = false;
    if (!ended) {
        warn(s, c);
        begin_later(s);
    } else if (!s->closed && s->later) {
        refuse_later(s, c);
    } else if (!s->closed && s->events.ended) {
        s->events.ended(s->ctx, s);
    }
    cell_free(c);
}
