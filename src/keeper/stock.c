/* stock: ready boxes, and blank ones behind them, kept for whoever comes next. Runs in the keeper. */
#include "base/clock.h"
#include "keeper/state.h"

#define USHER_CPUS_MILLI 200

static unsigned stock_count(const struct state *s, unsigned environment, enum box_phase phase)
{
    unsigned n = 0;

    for (const struct box *b = s->boxes; b; b = b->next)
        n += b->phase == phase && b->plan.environment == environment;
    return n;
}

/* An usher goes in, and forks, with the box's share of cores, and its zygote waits for that. */
static bool usher_keeps_up(const struct state *s, const struct limits *l)
{
    return s->cgroups.version == 0 || l->cpus_milli >= USHER_CPUS_MILLI;
}

/* Can a box made for the standard limits serve this request? What a cgroup holds can be changed, what
 * was mounted or set on a process cannot. */
static bool stock_fits(const struct state *s, const struct box *b, const struct limits *l)
{
    if (b->limits.disk != l->disk || b->limits.files != l->files)
        return false;
    if (b->phase == BOX_READY && b->limits.cpus_milli != l->cpus_milli)
        return false;
    if (b->phase == BOX_BLANK && !usher_keeps_up(s, l))
        return false;
    return s->cgroups.version != 0 || (b->limits.memory == l->memory && b->limits.pids == l->pids);
}

struct box *stock_take(struct state *s, enum box_phase phase, uint32_t environment,
                       const struct limits *l)
{
    struct box *next;
    struct err e;

    for (struct box *b = s->boxes; b; b = next) {
        next = b->next;
        if (b->phase != phase || b->plan.environment != environment || !stock_fits(s, b, l))
            continue;
        bool differs = b->limits.memory != l->memory || b->limits.pids != l->pids ||
                       b->limits.cpus_milli != l->cpus_milli;
        if (differs && cgroup_limit(&s->cgroups, b->id, l, &e) < 0) {
            box_end(s, b); /* some of the new limits may be on: it is of no use to others now */
            continue;
        }
        box_set_limits(b, l);
        return b;
    }
    return NULL;
}

/* One at a time: the machine's cores belong to the cells. */
static void stock_refill_one(struct state *s, unsigned environment)
{
    const struct limits *l = &s->options->limits;
    bool ready_short = stock_count(s, environment, BOX_READY) < s->options->pool;
    bool blank_short =
        stock_count(s, environment, BOX_BLANK) < s->options->blanks && usher_keeps_up(s, l);

    if (!zygote_can_fork(s, environment) || stock_count(s, environment, BOX_MAKING) > 0 ||
        !(ready_short || blank_short))
        return;
    struct box *b = ready_short ? stock_take(s, BOX_BLANK, environment, l) : NULL;
    if (b) {
        box_fill(s, b);
        return;
    }
    b = box_new(s, environment, l);
    if (b) {
        b->stay_blank = !ready_short;
        box_make(s, b);
    }
}

void stock_refill(struct state *s)
{
    s->refill_at_ms = 0;
    for (unsigned i = 0; i < s->options->n_environments; i++)
        stock_refill_one(s, i);
}
