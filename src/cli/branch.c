/* branch: see branch.h. */
#include "cli/branch.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "cli/command.h"

unsigned branch_number(const struct repl *r, const struct branch *b)
{
    return (unsigned)(b - r->branches) + 1;
}

/* ---- making one ---- */

static void add_number(void *ctx, const struct session_point *p)
{
    struct buf *text = ctx;

    buf_add_fmt(text, "%s%u", text->len ? ", " : "", p->up_to);
}

static int say_not_kept(struct repl *r, uint32_t n, struct err *e)
{
    cleanup_buf struct buf kept = {0};

    if (guest_points(&r->branch->guest, add_number, &kept, e) < 0)
        return -1;
    err_set(e, 0, "the state after cell %u is not kept; there are: %s", n,
            kept.len ? buf_text(&kept) : "none");
    e->code = ENOENT;
    return -1;
}

int branch_make(struct repl *r, uint32_t n, struct err *e)
{
    struct branch *from = r->branch, *b = &r->branches[r->n_branches];

    if (r->n_branches == BRANCHES_MAX)
        return err_set(e, 0, "there are %d branches, and no more are possible", BRANCHES_MAX);
    /* It would be waited for: what was done last is kept a moment later. */
    if (n > from->guest.at || r->owner.wish.checkpoints == 0)
        return say_not_kept(r, n, e);
    int turn = guest_fork(&b->guest, &from->guest, n, e);
    if (turn < 0 && e->code == ENOENT)
        return say_not_kept(r, n, e);
    if (turn != 0)
        return turn;
    b->of = branch_number(r, from);
    b->after = n;
    r->n_branches++;
    return branch_enter(r, r->n_branches, e);
}

int branch_fork(struct repl *r, const char *rest, struct err *e)
{
    uint32_t n = r->branch->guest.at;

    if (*rest && !command_number(rest, &n))
        return err_set(e, 0, "%%fork takes nothing, or the number of a cell to leave after");
    int turn = branch_make(r, n, e);
    if (turn > 0 && !(turn & (TURN_STOP | TURN_CLOSED)))
        return err_set(e, 0, "no branch was made");
    if (turn != 0)
        return turn;
    const struct branch *b = r->branch;
    if (n > 0)
        outlet_note(&r->owner.out, "branch %u, which left branch %u after cell %u",
                    branch_number(r, b), b->of, n);
    else
        outlet_note(&r->owner.out, "branch %u, as branch %u began", branch_number(r, b), b->of);
    return 0;
}

/* ---- going to one ---- */

int branch_enter(struct repl *r, uint32_t number, struct err *e)
{
    if (number < 1 || number > r->n_branches)
        return err_set(e, 0, "there is no branch %u; the last is %u", number, r->n_branches);
    r->branch = &r->branches[number - 1];
    r->show.limits = &r->branch->guest.limits;
    return 0;
}

int branch_go(struct repl *r, const char *rest, struct err *e)
{
    uint32_t number;

    if (!command_number(rest, &number))
        return err_set(e, 0, "%%branch takes the number of a branch; %%branches tells them");
    if (branch_enter(r, number, e) < 0)
        return -1;
    outlet_note(&r->owner.out, "branch %u", number);
    return 0;
}

/* ---- the list ---- */

static void show_branch(struct repl *r, const struct branch *b)
{
    char of[16] = "", after[16] = "";

    if (b->of) {
        snprintf(of, sizeof(of), "%u", b->of);
        snprintf(after, sizeof(after), "%u", b->after);
    }
    outlet_say(&r->owner.out, 1, "%c %6u  %2s  %10s  %9u\n", b == r->branch ? '*' : ' ',
               branch_number(r, b), of, after, b->guest.next);
}

int branch_list(struct repl *r, const char *rest, struct err *e)
{
    if (*rest)
        return err_set(e, 0, "%%branches takes nothing");
    outlet_say(&r->owner.out, 1, "  branch  of  after cell  next cell\n");
    for (unsigned i = 0; i < r->n_branches; i++)
        show_branch(r, &r->branches[i]);
    return 0;
}

/* ---- the end ---- */

void branch_close_all(struct repl *r)
{
    for (unsigned i = 0; i < r->n_branches; i++)
        guest_leave(&r->branches[i].guest);
    for (unsigned i = 0; i < r->n_branches; i++)
        guest_close(&r->branches[i].guest);
}
