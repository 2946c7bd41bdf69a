/* undo: see undo.h. */
#include "cli/undo.h"

#include <time.h>

#include "cli/command.h"
#include "session/sanitise.h"
#include "session/words.h"

#define LOST_SHOWN 200 /* bytes of what a checkpoint has lost */

/* ---- the list ---- */

struct table {
    struct outlet *out;
    uint32_t at; /* the state that the session has */
    unsigned n;
};

static void time_text(int64_t ms, char *ret, size_t size)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    localtime_r(&seconds, &tm);
    strftime(ret, size, "%H:%M:%S", &tm);
}

static void lost_text(const char *lost, char *ret, size_t size)
{
    cleanup_buf struct buf text = {0};

    for (; *lost; lost++)
        buf_add_fmt(&text, *lost == '\n' ? ", " : "%c", *lost);
    sanitise_name(buf_text(&text), ret, size); /* a guest names its threads */
}

static void show_point(void *ctx, const struct session_point *p)
{
    struct table *t = ctx;
    char time[16], size[WORDS_SIZE], lost[LOST_SHOWN];

    if (t->n++ == 0)
        outlet_say(t->out, 1, "  cell  time        memory  lost\n");
    time_text(p->taken_ms, time, sizeof(time));
    lost_text(p->lost, lost, sizeof(lost));
    outlet_say(t->out, 1, "%c %4u  %s  %8s%s%s\n", p->up_to == t->at ? '*' : ' ', p->up_to, time,
               words_size(p->memory, size), lost[0] ? "  " : "", lost);
}

int undo_list(struct repl *r, const char *rest, struct err *e)
{
    struct table t = {&r->owner.out, r->branch->guest.at, 0};

    if (*rest)
        return err_set(e, 0, "%%checkpoints takes nothing");
    if (guest_points(&r->branch->guest, show_point, &t, e) < 0)
        return -1;
    if (t.n == 0)
        outlet_note(&r->owner.out, "no checkpoint is kept of this session");
    return 0;
}

/* ---- going back ---- */

struct before {
    uint32_t at;
    bool found;
    uint32_t n;
};

/* The last that is told stays: it is the newest. One that has the state of now is no way back. */
static void note_before(void *ctx, const struct session_point *p)
{
    struct before *b = ctx;

    if (p->up_to >= b->at)
        return;
    b->found = true;
    b->n = p->up_to;
}

static int find_before(struct repl *r, uint32_t *ret, struct err *e)
{
    struct before b = {.at = r->branch->guest.at};

    if (guest_points(&r->branch->guest, note_before, &b, e) < 0)
        return -1;
    if (!b.found) {
        err_set(e, 0, "no earlier state is kept: there is nothing to go back to");
        return -1;
    }
    *ret = b.n;
    return 0;
}

int undo_back(struct repl *r, const char *rest, struct err *e)
{
    uint32_t n;

    if (*rest && !command_number(rest, &n))
        return err_set(e, 0, "%%undo takes nothing, or the number of a cell to go back to");
    if (!*rest && find_before(r, &n, e) < 0)
        return -1;
    int turn = guest_rollback(&r->branch->guest, n, e);
    if (turn == 0 && n > 0)
        outlet_note(&r->owner.out, "back to the state after cell %u, files included", n);
    else if (turn == 0)
        outlet_note(&r->owner.out, "back to where the session began, files included");
    return turn;
}
