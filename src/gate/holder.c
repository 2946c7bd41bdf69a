/* holder: what each token has in use, and how much it may have. */
#include "base/clock.h"
#include "gate/inside.h"

struct holder *holder_get(struct gate *g, const struct token *t)
{
    struct holder *h = g->holders;

    while (h && h->token.id != t->id)
        h = h->next;
    if (!h) {
        h = xcalloc(1, sizeof(*h));
        h->next = g->holders;
        h->cells_left =
            t->quota.cells_per_minute == LIMIT_NONE ? 0 : (double)t->quota.cells_per_minute;
        h->cells_at_ms = clock_now_ms();
        g->holders = h;
    }
    h->token = *t; /* quotas may have changed */
    return h;
}

int holder_admits(struct request *r, uint64_t memory)
{
    const struct holder *h = r->holder;
    const struct quota *q = &h->token.quota;

    if (q->sessions != LIMIT_NONE && h->sessions >= q->sessions) {
        reply_later(r, 429, 10, "quota_sessions",
                    "this token may have %llu sessions at once; end one first",
                    (unsigned long long)q->sessions);
        return -1;
    }
    if (q->memory != LIMIT_NONE && (memory > q->memory || h->memory > q->memory - memory)) {
        reply_later(
            r, 429, 10, "quota_memory",
            "the sessions of this token may have %llu bytes of memory together, and %llu are "
            "taken; ask for less, or end one",
            (unsigned long long)q->memory, (unsigned long long)h->memory);
        return -1;
    }
    return 0;
}

void holder_add(struct holder *h, uint64_t memory)
{
    h->sessions++;
    h->memory += memory == LIMIT_NONE ? 0 : memory;
}

static void uncount_memory(struct holder *h, uint64_t memory)
{
    h->memory -= memory == LIMIT_NONE ? 0 : memory;
}

void holder_remove(struct holder *h, uint64_t memory)
{
    h->sessions--;
    uncount_memory(h, memory);
}

struct charge {
    struct gate *gate;
    struct holder *holder;
    uint64_t memory;
    unsigned refs; /* its session's, and its branches' */
    struct charge *under;
};

struct charge *charge_new(struct gate *g, struct holder *h, uint64_t memory, struct charge *under)
{
    struct charge *c = xcalloc(1, sizeof(*c));

    *c = (struct charge){.gate = g, .holder = h, .memory = memory, .refs = 1, .under = under};
    if (under)
        under->refs++;
    g->n_lives++;
    holder_add(h, memory);
    return c;
}

void charge_end(struct charge *c)
{
    c->holder->sessions--;
    while (c && --c->refs == 0) {
        struct charge *under = c->under;
        uncount_memory(c->holder, c->memory);
        c->gate->n_lives--;
        free(c);
        c = under;
    }
}

/* ---- memory ---- */

/* What a token may hold of it: one alone cannot keep all others from being heard. */
#define SHARE 4

bool holder_has_room(const struct request *r)
{
    return !r->holder || r->holder->held - r->held < r->gate->config->max_buffers / SHARE;
}

bool request_has_room(const struct request *r)
{
    return r->held <= SMALL_REQUEST ||
           (holder_has_room(r) && r->gate->held - r->held < r->gate->config->max_buffers);
}

void request_holds(struct request *r, uint64_t *held, uint64_t now)
{
    if (r->gone)
        return; /* it is about to be freed with all that it has */
    r->held += now - *held;
    r->gate->held += now - *held;
    if (r->holder)
        r->holder->held += now - *held;
    *held = now;
}

void request_holds_nothing(struct request *r)
{
    r->gate->held -= r->held;
    if (r->holder)
        r->holder->held -= r->held;
    r->held = 0;
}

/* ---- cells ---- */

/* A bucket that holds a minute's worth and fills all the time. */
int holder_begins_cell(struct request *r)
{
    struct holder *h = r->holder;
    uint64_t quota = h->token.quota.cells_per_minute;
    int64_t now = clock_now_ms();

    if (quota == LIMIT_NONE)
        return 0;
    h->cells_left += (double)(now - h->cells_at_ms) * (double)quota / 60000;
    if (h->cells_left > (double)quota)
        h->cells_left = (double)quota;
    h->cells_at_ms = now;
    if (h->cells_left < 1) {
        unsigned seconds = (unsigned)((1 - h->cells_left) * 60 / (double)quota) + 1;
        reply_later(r, 429, seconds, "too_many_cells", "this token may begin %llu cells a minute",
                    (unsigned long long)quota);
        return -1;
    }
    h->cells_left -= 1;
    return 0;
}
