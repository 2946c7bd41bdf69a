/* shrink: see shrink.h. Runs in the keeper, once.
 *
 * Every process of a box loads the filter, and the kernel translates it anew each time: 0.3 µs an
 * instruction. libseccomp compares with one number after the other, where most neighbours get the same
 * answer: 497 instructions for 93 ranges.
 *
 * A program here is made of blocks: loads and the like, and then comparisons of what was loaded with
 * constants, which lead to other blocks or to an answer. What the comparisons amount to is a list of
 * ranges, each with the block that it leads to; it is found by trying the program at every constant in
 * it, where alone it can change its mind. It is written down again as a tree. Blocks keep their order,
 * so that all jumps still lead forward.
 */
#include "box/shrink.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"

#define JUMP_MAX 255 /* a comparison jumps no further */

struct piece {
    uint32_t from;   /* the range begins here, and ends before the next one's */
    unsigned target; /* the block, by its first instruction in the old program */
};

struct block {
    unsigned plain; /* how many instructions come before its comparisons; an answer is the last */
    struct piece *pieces;
    unsigned n_pieces;
    unsigned at; /* in the new program */
};

struct shrinking {
    const struct sock_fprog *old;
    uint32_t *constants; /* in order, the first is 0 */
    unsigned n_constants;
    struct block
        *blocks; /* by their first instruction in the old program; plain 0: none begins there */
    struct sock_filter *code;
    unsigned n_code;
    bool failed;
};

static bool is_jump(const struct sock_filter *i)
{
    return BPF_CLASS(i->code) == BPF_JMP;
}

static bool is_answer(const struct sock_filter *i)
{
    return i->code == (BPF_RET | BPF_K);
}

/* Answers are shared: the last of the same kind stands for all of them. */
static unsigned shared(const struct sock_fprog *p, unsigned at)
{
    unsigned last = at;

    for (unsigned i = at + 1; is_answer(&p->filter[at]) && i < p->len; i++)
        if (is_answer(&p->filter[i]) && p->filter[i].k == p->filter[at].k)
            last = i;
    return last;
}

/* Where the comparisons that begin at `at` lead for this value. */
static unsigned follow(struct shrinking *s, unsigned at, uint32_t value)
{
    while (at < s->old->len && is_jump(&s->old->filter[at])) {
        const struct sock_filter *i = &s->old->filter[at];
        switch (i->code) {
        case BPF_JMP | BPF_JA:
            at += 1 + i->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += 1U + (value == i->k ? i->jt : i->jf);
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            at += 1U + (value > i->k ? i->jt : i->jf);
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += 1U + (value >= i->k ? i->jt : i->jf);
            break;
        default:
            s->failed = true;
            return 0;
        }
    }
    if (at >= s->old->len) {
        s->failed = true;
        return 0;
    }
    return shared(s->old, at);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void collect_constants(struct shrinking *s)
{
    s->constants = xcalloc(2 * (size_t)s->old->len + 1, sizeof(*s->constants));
    s->n_constants = 1;
    for (unsigned i = 0; i < s->old->len; i++) {
        uint32_t k = s->old->filter[i].k;
        if (!is_jump(&s->old->filter[i]))
            continue;
        s->constants[s->n_constants++] = k;
        s->constants[s->n_constants++] = k + 1; /* at the very end: 0, which does no harm */
    }
    qsort(s->constants, s->n_constants, sizeof(*s->constants), by_value);
}

static void read_block(struct shrinking *s, unsigned at)
{
    struct block *b = &s->blocks[at];
    unsigned end = at;

    while (end < s->old->len && !is_jump(&s->old->filter[end]) && !is_answer(&s->old->filter[end]))
        end++;
    if (end == s->old->len) {
        s->failed = true;
        return;
    }
    b->plain = end - at + is_answer(&s->old->filter[end]);
    if (is_answer(&s->old->filter[end]))
        return;
    b->pieces = xcalloc(s->n_constants, sizeof(*b->pieces));
    for (unsigned i = 0; i < s->n_constants && !s->failed; i++) {
        unsigned target = follow(s, end, s->constants[i]);
        if (b->n_pieces == 0 || b->pieces[b->n_pieces - 1].target != target)
            b->pieces[b->n_pieces++] = (struct piece){s->constants[i], target};
    }
}

/* Those that are reached, in one pass: they are reached from earlier ones only. */
static void read_blocks(struct shrinking *s)
{
    bool *reached = xcalloc(s->old->len, sizeof(*reached));
    unsigned size = 0;

    s->blocks = xcalloc(s->old->len, sizeof(*s->blocks));
    reached[0] = true;
    for (unsigned i = 0; i < s->old->len && !s->failed; i++) {
        struct block *b = &s->blocks[i];
        if (!reached[i])
            continue;
        read_block(s, i);
        b->at = size;
        /* With one piece only there is nothing to compare, but still a way to go. */
        size += b->plain + (b->n_pieces > 1 ? b->n_pieces - 1 : b->n_pieces);
        for (unsigned k = 0; k < b->n_pieces; k++)
            reached[b->pieces[k].target] = true;
    }
    free(reached);
    s->n_code = size;
}

static uint8_t distance(struct shrinking *s, unsigned from, unsigned to)
{
    if (to <= from || to - from - 1 > JUMP_MAX) {
        s->failed = true;
        return 0;
    }
    return (uint8_t)(to - from - 1);
}

/* A tree over these ranges, at `at`: a comparison, the tree of the lower half, that of the upper. */
static void write_tree(struct shrinking *s, unsigned at, const struct piece *pieces, unsigned n)
{
    unsigned low = n / 2, high = n - low;
    unsigned low_at = low > 1 ? at + 1 : s->blocks[pieces[0].target].at;
    unsigned high_at = high > 1 ? at + low : s->blocks[pieces[low].target].at;

    s->code[at] = (struct sock_filter){
        .code = BPF_JMP | BPF_JGE | BPF_K,
        .jt = distance(s, at, high_at),
        .jf = distance(s, at, low_at),
        .k = pieces[low].from,
    };
    if (low > 1)
        write_tree(s, low_at, pieces, low);
    if (high > 1)
        write_tree(s, high_at, pieces + low, high);
}

static void write_blocks(struct shrinking *s)
{
    s->code = xcalloc(s->n_code, sizeof(*s->code));
    for (unsigned i = 0; i < s->old->len && !s->failed; i++) {
        const struct block *b = &s->blocks[i];
        unsigned end = b->at + b->plain;
        for (unsigned k = 0; k < b->plain; k++)
            s->code[b->at + k] = s->old->filter[i + k];
        if (b->n_pieces > 1)
            write_tree(s, end, b->pieces, b->n_pieces);
        else if (b->n_pieces == 1)
            s->code[end] = (struct sock_filter){
                .code = BPF_JMP | BPF_JA,
                .k = s->blocks[b->pieces[0].target].at - end - 1,
            };
    }
}

static void release(struct shrinking *s)
{
    for (unsigned i = 0; s->blocks && i < s->old->len; i++)
        free(s->blocks[i].pieces);
    free(s->blocks);
    free(s->constants);
    free(s->code);
}

bool shrink_program(const struct sock_fprog *p, struct sock_fprog *ret)
{
    __attribute__((cleanup(release))) struct shrinking s = {.old = p};

    collect_constants(&s);
    read_blocks(&s);
    if (!s.failed)
        write_blocks(&s);
    if (s.failed || s.n_code >= p->len)
        return false;
    *ret = (struct sock_fprog){.len = (unsigned short)s.n_code, .filter = s.code};
    s.code = NULL;
    return true;
}
