/* numbers: see numbers.h.
 *
 * Each number in the answer is a claim: some intervals, one of which has to be hit. The ends of all intervals cut
 * the line into cells (the ends themselves, and what lies between them); the evidence is read once and marks the
 * cells that its numbers fall into; a claim is founded when a cell in one of its intervals is marked.
 */
#include "agent/numbers.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/claims.h"
#include "agent/moment.h"
#include "agent/numeral.h"
#include "base/buf.h"
#include "session/cell_json.h"

/* ---- the line that is marked ---- */

struct line {
    double *ends; /* sorted, each once */
    size_t n;
    unsigned *marks; /* 2n + 1 cells: before the first end, it, between it and the second, … */
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static size_t cell_of(const struct line *l, double value)
{
    size_t lo = 0, hi = l->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->ends[mid] < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return 2 * lo + (lo < l->n && l->ends[lo] == value);
}

static void line_init(struct line *l, const struct claim *claims, size_t n)
{
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < n; i++)
        count += 2 * (size_t)claims[i].n_intervals;
    l->ends = xcalloc(count + 1, sizeof(*l->ends));
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < claims[i].n_intervals; k++) {
            l->ends[l->n++] = claims[i].intervals[k].lo;
            l->ends[l->n++] = claims[i].intervals[k].hi;
        }
    qsort(l->ends, l->n, sizeof(*l->ends), compare_doubles);
    for (size_t i = 0; i < l->n; i++)
        if (i == 0 || l->ends[i] != l->ends[kept - 1])
            l->ends[kept++] = l->ends[i];
    l->n = kept;
    l->marks = xcalloc(2 * l->n + 2, sizeof(*l->marks));
}

static void line_done(struct line *l)
{
    free(l->ends);
    free(l->marks);
}

static void mark(struct line *l, double value)
{
    if (isfinite(value))
        l->marks[cell_of(l, value)] = 1;
}

/* From marks to their sums: how many there are in the cells before each. */
static void line_sum(struct line *l)
{
    unsigned sum = 0;

    for (size_t i = 0; i < 2 * l->n + 2; i++) {
        unsigned here = l->marks[i];
        l->marks[i] = sum;
        sum += here;
    }
}

static bool is_founded(const struct line *l, const struct claim *c)
{
    for (unsigned i = 0; i < c->n_intervals; i++) {
        size_t lo = cell_of(l, c->intervals[i].lo), hi = cell_of(l, c->intervals[i].hi);
        if (l->marks[hi + 1] > l->marks[lo])
            return true;
    }
    return false;
}

/* ---- reading the evidence ---- */

static void mark_both(struct line *l, double value, bool negative)
{
    mark(l, value);
    if (negative)
        mark(l, -value);
}

static void mark_moment(struct line *l, const struct moment *m, const char *end)
{
    for (unsigned i = 0; i < m->n_codes; i++)
        mark(l, m->codes[i]);
    for (const char *p = m->at; p < m->end && p < end;) { /* its parts */
        double n = 0;
        bool any = false;
        for (; p < m->end && is_digit(*p); p++, any = true)
            n = n * 10 + (*p - '0');
        if (any)
            mark(l, n);
        else
            p++;
    }
}

/* What stands between separators is a number too: in "[1,234]" there are two. */
static void mark_groups(struct line *l, const struct numeral *n, bool negative)
{
    for (unsigned i = 0; i < n->n_groups; i++) {
        double value = 0, part = 0, unit = 1;
        for (size_t k = 0; k < n->groups[i].len; k++)
            value = value * 10 + (n->groups[i].at[k] - '0');
        bool decimals = i > 0 && n->groups[i].at[-1] == '.';
        if (i + 1 == n->n_groups || n->groups[i].at[n->groups[i].len] != '.') {
            if (!decimals)
                mark_both(l, value, negative && i == 0);
            continue;
        }
        for (size_t k = 0; k < n->groups[i + 1].len && k < 17; k++) {
            part = part * 10 + (n->groups[i + 1].at[k] - '0');
            unit *= 10;
        }
        mark_both(l, value + part / unit, negative && i == 0);
    }
}

static const char *mark_number(struct line *l, const char *begin, const char *at, const char *end)
{
    struct moment moment;
    struct before before;
    struct suffix suffix;
    struct numeral n;

    if (moment_scan(begin, at, end, &moment)) {
        mark_moment(l, &moment, end);
        return moment.end;
    }
    numeral_scan(at, end, &n);
    suffix_scan(n.end, end, &suffix);
    before_scan(begin, at, &before);
    for (unsigned i = 0; i < n.n_readings; i++) {
        double value = n.readings[i].value;
        mark_both(l, value, before.negative);
        if (suffix.kind == SUFFIX_PERCENT)
            mark_both(l, value / 100, before.negative);
        if (suffix.kind == SUFFIX_SCALE)
            mark_both(l, value * suffix.scale, before.negative);
    }
    if (n.n_groups > 1)
        mark_groups(l, &n, before.negative);
    return n.end;
}

static void mark_text(struct line *l, const char *text, size_t len)
{
    const char *end = text + len;

    for (const char *at = text; at < end;)
        at = starts_number(at, end) ? mark_number(l, text, at, end) : at + 1;
}

/* ---- all of it ---- */

static json_t *list_unfounded(const struct line *l, const struct claim *claims, size_t n)
{
    json_t *list = json_array(), *seen = json_object();

    for (size_t i = 0; i < n; i++) {
        if (is_founded(l, &claims[i]))
            continue;
        json_t *text = cell_text_json(claims[i].at, claims[i].len);
        const char *key = json_string_value(text);
        if (!json_object_get(seen, key)) {
            json_object_set_new(seen, key, json_true());
            json_array_append(list, text);
        }
        json_decref(text);
    }
    json_decref(seen);
    return list;
}

json_t *numbers_unfounded(const char *answer, const char *const *evidence, size_t n)
{
    cleanup_buf struct buf named = {0};
    size_t left = NUMBERS_EVIDENCE_MAX;
    struct line l = {0};

    claims_read(answer, strnlen(answer, NUMBERS_ANSWER_MAX), &named);
    const struct claim *claims = (const struct claim *)named.data;
    size_t n_claims = named.len / sizeof(*claims);
    line_init(&l, claims, n_claims);
    for (size_t i = 0; i < n && n_claims > 0 && left > 0; i++) {
        size_t len = strnlen(evidence[i], left);
        mark_text(&l, evidence[i], len);
        left -= len;
    }
    line_sum(&l);
    json_t *list = list_unfounded(&l, claims, n_claims);
    line_done(&l);
    return list;
}
