/* claims: see claims.h. */
#include "agent/claims.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "agent/moment.h"
#include "agent/numeral.h"

#define TRIVIAL_MAX 10
#define SPAN_MAX 4096    /* where the end of a code span, a link or a tag is looked for */
#define NAME_LONGEST 255 /* of a file */

struct claims {
    struct buf *list; /* of struct claim */
    /* While the answer is read: */
    const char *begin, *end, *at;
    const char *word, *word_end; /* the last one */
    bool fenced;
    char fence;
    size_t fence_len;
    double counted; /* the number that the last row of a table, or item of a list, began with */
};

/* ---- claims ---- */

static void add_interval(struct claim *c, double lo, double hi)
{
    if (c->n_intervals < CLAIM_INTERVALS && isfinite(lo) && isfinite(hi))
        c->intervals[c->n_intervals++] = (struct interval){lo, hi};
}

/* Binary fractions are not the decimal ones that were written. */
static void add_about(struct claim *c, double lo, double hi)
{
    double slack = 1e-12 * fmax(fabs(lo), fabs(hi));

    add_interval(c, lo - slack, hi + slack);
}

static void add_claim(struct claims *cs, const struct claim *c)
{
    if (c->n_intervals > 0)
        buf_add(cs->list, c, sizeof(*c));
}

/* How a number is written, besides its digits. */
struct manner {
    struct before before;
    bool about; /* it says itself that it is rounded */
    struct suffix suffix;
};

static void claim_reading(struct claim *c, const struct manner *m, double value, double half)
{
    double lo = m->before.negative ? -value - half : value - half;
    double hi = m->before.negative ? -value + half : value + half;

    add_about(c, lo, hi);
    if (m->suffix.kind == SUFFIX_PERCENT)
        add_about(c, lo / 100, hi / 100);
    if (m->suffix.kind == SUFFIX_SCALE) {
        add_about(c, lo * m->suffix.scale, hi * m->suffix.scale);
        add_about(c, lo * m->suffix.other_scale, hi * m->suffix.other_scale);
    }
}

static void claim_numeral(struct claim *c, const struct manner *m, const struct numeral *n)
{
    for (unsigned i = 0; i < n->n_readings; i++) {
        int digits = n->readings[i].decimals - (m->about ? n->readings[i].zeros : 0);
        claim_reading(c, m, n->readings[i].value, 0.5 * pow(10, -digits));
    }
}

static void claim_moment(struct claim *c, const struct moment *m)
{
    for (unsigned i = 0; i < m->n_codes; i++)
        add_interval(c, m->codes[i], m->codes[i] + m->lasts);
    if (m->as_number >= 0)
        add_interval(c, m->as_number, m->as_number);
}

/* ---- what is around a number ---- */

static bool is_one_of(const char *at, const char *end, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == (size_t)(end - at) && has_word(at, end, *words))
            return true;
    return false;
}

/* Nothing but blanks and emphasis between the last word and here? */
static bool follows_word(const struct claims *cs, const char *at)
{
    if (!cs->word || at - cs->word_end > 4)
        return false;
    for (const char *p = cs->word_end; p < at; p++)
        if (!strchr(" *(\t", *p))
            return false;
    return true;
}

static bool says_about(const struct claims *cs, const char *at)
{
    static const char *const words[] = {"about",  "around", "approximately", "approx", "roughly",
                                        "nearly", "almost", "over",          "under",  "circa",
                                        "ca",     "some",   "than",          "least",  "most",
                                        "above",  "below",  "exceeding",     NULL};
    static const char *const signs[] = {"~", "\xe2\x89\x88", "\xe2\x89\x83", ">",
                                        "<", "\xe2\x89\xa5", "\xe2\x89\xa4", NULL};
    const char *p = at;

    if (p > cs->begin && p[-1] == ' ')
        p--;
    return before_any(cs->begin, p, signs) < p ||
           (follows_word(cs, at) && is_one_of(cs->word, cs->word_end, words));
}

static const char *skip_name(const char *at, const char *end)
{
    size_t len;

    for (;;) {
        while (at < end && (is_digit(*at) || *at == '_' || is_letter(at, end, &len)))
            at += is_digit(*at) || *at == '_' ? 1 : len;
        if (end - at < 2 || !strchr("-./\\", *at) || *at == '\0' ||
            !(is_digit(at[1]) || at[1] == '_' || is_letter(at + 1, end, &len)))
            return at;
        at++;
    }
}

/* "2023_sales.csv", "3d_plot": where a name that begins with a digit ends, or NULL. */
static const char *name_here(const char *at, const char *end)
{
    const char *limit = end - at > NAME_LONGEST ? at + NAME_LONGEST : end;
    const char *behind = skip_name(at, limit), *dot = behind;
    size_t len;

    while (dot > at && dot[-1] != '.')
        dot--;
    if (dot > at + 1 && behind - dot <= 5 && is_letter(dot, behind, &len) && dot[-2] != '.')
        return behind;
    for (const char *p = at; p + 1 < behind; p++) {
        if (is_letter(p, behind, &len) && p[len] == '_')
            return behind;
        if (*p == '_' && is_letter(p + 1, behind, &len))
            return behind;
        if (*p == '-' || *p == '/')
            break; /* what follows is another's */
    }
    return NULL;
}

/* Does the number run on into letters and further digits, as a name does? Where that ends. */
static const char *runs_on(const char *at, const char *end)
{
    const char *p = at;
    size_t len;

    while (is_letter(p, end, &len))
        p += len;
    return p > at && p < end && (is_digit(*p) || *p == '_') ? skip_name(p, end) : NULL;
}

/* ---- what a number is not ---- */

static bool is_habit(const struct claims *cs, const struct numeral *n, const struct manner *m,
                     const char *start)
{
    static const double levels[] = {0.1, 0.05, 0.01, 0.005, 0.001, 0.0001};
    static const char *const signs[] = {"<", ">", "\xe2\x89\xa4", "\xe2\x89\xa5", NULL};
    static const char *const intervals[] = {"CI", "confidence", "credible", "prediction"};
    const char *p = start, *behind = m->suffix.end;

    if (p > cs->begin && p[-1] == ' ')
        p--;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (n->readings[0].value == levels[i] && before_any(cs->begin, p, signs) < p)
            return true;
    if (m->suffix.kind != SUFFIX_PERCENT)
        return false;
    behind += behind < cs->end && (*behind == ' ' || *behind == '-');
    for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++)
        if (has_word(behind, cs->end, intervals[i]))
            return true;
    return false;
}

/* "R^2", "x_{12}", "[3]": a mark and not a number. */
static bool is_mark(const struct claims *cs, const char *at, const char *behind)
{
    const char *b = cs->begin;

    if (at == b)
        return false;
    if (at[-1] == '^' || at[-1] == '#')
        return true;
    if (at[-1] == '{' && at - b > 1 && (at[-2] == '^' || at[-2] == '_'))
        return true;
    return at[-1] == '[' && behind < cs->end && *behind == ']';
}

static bool is_trivial(const struct numeral *n, const struct manner *m, const char *start,
                       const char *at)
{
    return n->whole && n->readings[0].value <= TRIVIAL_MAX && start == at && !m->before.currency &&
           m->suffix.kind == SUFFIX_NONE;
}

static bool is_decade(const struct numeral *n, const char *end)
{
    return n->whole && n->groups[0].len == 4 && n->end[-1] == '0' && has_word(n->end, end, "s");
}

/* ---- reading the answer ---- */

/* "5–10 %": what stands behind the second number is meant for both. */
static void inherit_suffix(const char *at, const char *end, struct suffix *s)
{
    size_t dash = dash_len(at, end), blank = blank_len(at, end);
    struct numeral next;

    if (dash == 0 && blank > 0 && has_word(at + blank, end, "to"))
        dash = blank + 2 + blank_len(at + blank + 2, end);
    if (dash == 0 || at + dash >= end || !is_digit(at[dash]))
        return;
    numeral_scan(at + dash, end, &next);
    suffix_scan(next.end, end, s);
    if (s->kind == SUFFIX_ORDINAL || s->kind == SUFFIX_TIMES)
        s->kind = SUFFIX_NONE;
    s->end = at; /* it is not a part of this one */
}

static const char *take_moment(struct claims *cs, const char *at)
{
    struct moment m;

    if (!moment_scan(cs->begin, at, cs->end, &m))
        return NULL;
    struct claim c = {.at = m.at, .len = (size_t)(m.end - m.at)};
    claim_moment(&c, &m);
    add_claim(cs, &c);
    return m.end;
}

/* Behind the number at this place, whatever it is. */
static const char *take_number(struct claims *cs, const char *at)
{
    const char *behind = name_here(at, cs->end);
    struct manner m = {0};
    struct numeral n;

    if (behind)
        return behind;
    if (has_text(at, cs->end, "0x") && (behind = runs_on(at + 1, cs->end)))
        return behind;
    if ((behind = take_moment(cs, at)))
        return behind;
    numeral_scan(at, cs->end, &n);
    if ((behind = runs_on(n.end, cs->end)))
        return behind;
    before_scan(cs->begin, at, &m.before);
    const char *start = m.before.at;
    if (n.n_readings == 0 || is_mark(cs, start, n.end) || is_decade(&n, cs->end))
        return n.end;
    suffix_scan(n.end, cs->end, &m.suffix);
    m.before.currency = m.before.currency || is_currency(n.end, cs->end);
    if (m.suffix.kind == SUFFIX_NONE)
        inherit_suffix(n.end, cs->end, &m.suffix);
    if (m.suffix.kind == SUFFIX_ORDINAL || is_trivial(&n, &m, start, at) ||
        is_habit(cs, &n, &m, start))
        return m.suffix.end;
    m.about = says_about(cs, start);
    struct claim c = {.at = start, .len = (size_t)(m.suffix.end - start)};
    claim_numeral(&c, &m, &n);
    add_claim(cs, &c);
    return m.suffix.end;
}

static const char *find(const char *at, const char *end, const char *text)
{
    size_t n = (size_t)(end - at) < SPAN_MAX ? (size_t)(end - at) : SPAN_MAX;
    const char *found = memmem(at, n, text, strlen(text));

    return found ? found + strlen(text) : NULL;
}

/* Behind a code span that begins here; where it never ends, behind its marks. */
static const char *skip_code(const char *at, const char *end)
{
    const char *limit = end - at > SPAN_MAX ? at + SPAN_MAX : end;
    size_t n = strspn(at, "`"), run = 0;

    n = n > (size_t)(end - at) ? (size_t)(end - at) : n;
    for (const char *p = at + n; p < limit; p++) {
        run = *p == '`' ? run + 1 : 0;
        if (run == n && (p + 1 == end || p[1] != '`'))
            return p + 1;
        if (run > n)
            run = n + 1;
    }
    return at + n;
}

static const char *skip_address(const char *at, const char *end)
{
    while (at < end && (unsigned char)*at > ' ' && !strchr(")>\"]|", *at))
        at++;
    return at;
}

/* Behind what is no text of the answer, or NULL. */
static const char *skip_other(const char *at, const char *end)
{
    size_t len;

    if (*at == '`')
        return skip_code(at, end);
    if (has_text(at, end, "]("))
        return find(at, end, ")");
    if (has_text(at, end, "http://") || has_text(at, end, "https://") || has_text(at, end, "www."))
        return skip_address(at, end);
    if (*at == '<' && end - at > 1 && (at[1] == '/' || is_letter(at + 1, end, &len)))
        return find(at, end, ">");
    if (*at == '#')
        return at + 1 < end && (is_digit(at[1]) || is_letter(at + 1, end, &len))
                   ? skip_name(at + 1, end)
                   : NULL;
    return NULL;
}

static void read_line(struct claims *cs, const char *at, const char *end)
{
    size_t len;

    cs->word = NULL;
    while (at < end) {
        const char *behind = skip_other(at, end);
        if (behind) {
            at = behind;
        } else if (starts_number(at, end)) {
            at = take_number(cs, at);
        } else if (*at == '_' || is_letter(at, end, &len)) {
            cs->word = at;
            at = skip_name(at, end);
            cs->word_end = at;
        } else {
            at++;
        }
    }
}

/* ---- its lines ---- */

static const char *skip_any(const char *at, const char *end, const char *characters)
{
    while (at < end && *at && strchr(characters, *at))
        at++;
    return at;
}

/* Whether the next row or item can have this number. */
static bool counts(struct claims *cs, double n)
{
    bool next = n <= TRIVIAL_MAX || n == cs->counted + 1;

    cs->counted = n;
    return next;
}

/* Behind the number of an item, a heading or a row. */
static const char *skip_count(struct claims *cs, const char *at, const char *end)
{
    bool row = at < end && *at == '|';
    const char *digits = skip_any(at, end, row ? "| *\t" : " \t>#*-+("), *p = digits;
    double n = 0;

    while (p < end && is_digit(*p) && p - digits < 9)
        n = n * 10 + (*p++ - '0');
    if (p == digits || p == end)
        return at;
    if (row) {
        p = skip_any(p, end, " *.\t");
        return p < end && *p == '|' && counts(cs, n) ? p : at;
    }
    if ((*p != '.' && *p != ')') || p + 1 == end || !strchr(" *\t", p[1]))
        return at;
    p = skip_any(p + 1, end, " *\t");
    return p < end && counts(cs, n) ? p : at;
}

/* Does a block of code begin or end with this line? */
static bool is_fence(struct claims *cs, const char *at, const char *end)
{
    at = skip_any(at, end, " \t>");
    char c = at < end ? *at : '\0';
    size_t n = 0;

    if (c != '`' && c != '~')
        return false;
    while (at + n < end && at[n] == c)
        n++;
    if (n < 3 || (cs->fenced && (c != cs->fence || n < cs->fence_len)))
        return false;
    if (!cs->fenced && c == '`' && memchr(at + n, '`', (size_t)(end - at) - n))
        return false; /* a span */
    cs->fenced = !cs->fenced;
    cs->fence = c;
    cs->fence_len = n;
    return true;
}

static void read_answer(struct claims *cs)
{
    const char *whole = cs->end;

    while (cs->at < whole) {
        const char *line = cs->at, *newline = memchr(line, '\n', (size_t)(whole - line));
        const char *end = newline ? newline : whole;
        bool fence = is_fence(cs, line, end);
        if (fence || cs->fenced) {
            cs->at = end;
        } else {
            const char *indent = skip_any(line, end, " \t");
            cs->begin = line;
            cs->end = end;
            read_line(cs, skip_count(cs, indent, end), end);
            cs->end = whole;
        }
        cs->at = newline ? newline + 1 : whole;
    }
}

void claims_read(const char *answer, size_t len, struct buf *ret)
{
    struct claims cs = {.list = ret, .begin = answer, .at = answer, .end = answer + len};

    read_answer(&cs);
}
