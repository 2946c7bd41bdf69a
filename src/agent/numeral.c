/* numeral: see numeral.h. */
#include "agent/numeral.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- characters ---- */

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_letter(const char *at, const char *end, size_t *ret_len)
{
    unsigned char c = at < end ? (unsigned char)*at : 0;

    *ret_len = 1;
    if (c < 0x80)
        return is_ascii_letter((char)c);
    if (c < 0xc3 || c > 0xd4 || end - at < 2)
        return false;
    *ret_len = 2;
    unsigned code = (c & 0x1fu) << 6 | ((unsigned char)at[1] & 0x3fu);
    return code != 0xd7 && code != 0xf7 && (code <= 0x24f || code >= 0x370);
}

bool has_text(const char *at, const char *end, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(end - at) >= n && memcmp(at, text, n) == 0;
}

bool has_word(const char *at, const char *end, const char *word)
{
    size_t n = strlen(word), ignored;

    return (size_t)(end - at) >= n && strncasecmp(at, word, n) == 0 &&
           !is_letter(at + n, end, &ignored);
}

/* The bytes of the first of these that the text goes on with, or 0. */
static size_t one_of(const char *at, const char *end, const char *const *list)
{
    for (; *list; list++)
        if (has_text(at, end, *list))
            return strlen(*list);
    return 0;
}

size_t blank_len(const char *at, const char *end)
{
    static const char *const blanks[] = {" ", "\t", "\xc2\xa0", "\xe2\x80\x89", "\xe2\x80\xaf",
                                         NULL};

    return one_of(at, end, blanks);
}

size_t dash_len(const char *at, const char *end)
{
    static const char *const dashes[] = {
        "-", "\xe2\x80\x90", "\xe2\x80\x91", "\xe2\x80\x92", "\xe2\x80\x93", "\xe2\x80\x94", NULL};

    return one_of(at, end, dashes);
}

size_t digits_len(const char *at, const char *end)
{
    const char *p = at;

    while (p < end && is_digit(*p))
        p++;
    return (size_t)(p - at);
}

bool starts_number(const char *at, const char *end)
{
    return is_digit(*at) || (*at == '.' && end - at > 1 && is_digit(at[1]));
}

/* ---- digits in groups ---- */

/* What stands between the groups: one character for each kind, and the bytes that it has. */
static char separator(const char *at, const char *end, size_t *ret_len)
{
    size_t blank = blank_len(at, end);

    *ret_len = 1;
    if (at < end && (*at == ',' || *at == '.' || *at == '_' || *at == '\''))
        return *at;
    *ret_len = 3;
    if (has_text(at, end, "\xe2\x80\x99"))
        return '\'';
    *ret_len = blank;
    return blank > 0 && *at != '\t' ? ' ' : '\0';
}

/* Only points and commas stand before groups of any length. */
static bool joins(char sep, size_t before, size_t group)
{
    if (group == 0)
        return false;
    return sep == ',' || sep == '.' || (sep != '\0' && group == 3 && before <= 3);
}

struct groups {
    struct numeral *to;
    char seps[NUMERAL_GROUPS]; /* before each; 0: the first */
};

static void cut_groups(struct numeral *n, unsigned left)
{
    n->n_groups = left;
    n->end = n->groups[left - 1].at + n->groups[left - 1].len;
}

static void take_groups(const char *at, const char *end, struct groups *g)
{
    struct numeral *n = g->to;
    size_t len = digits_len(at, end), sep_len = 0;
    char sep = '\0';

    for (;;) {
        n->groups[n->n_groups].at = at;
        n->groups[n->n_groups].len = len;
        g->seps[n->n_groups++] = sep;
        n->end = at + len;
        sep = separator(n->end, end, &sep_len);
        at = n->end + sep_len;
        size_t next = sep == '\0' ? 0 : digits_len(at, end);
        bool inner = n->n_groups > 1 && (len == 2 || len == 3);
        if (!joins(sep, len, next) || !(n->n_groups == 1 || inner || sep == '.'))
            return;
        if (n->n_groups == NUMERAL_GROUPS) {
            if (sep == '.') /* not between a number and its decimals */
                cut_groups(n, NUMERAL_GROUPS - 1);
            return;
        }
        len = next;
    }
}

/* Is this group one of thousands, where `point` is the other character? In India there are groups of two. */
static bool is_thousands(const struct groups *g, unsigned i, char point, bool last)
{
    size_t len = g->to->groups[i].len;

    if (g->seps[i] == point || g->to->groups[0].len > 3 || g->to->groups[0].len == 0)
        return false;
    if (g->seps[i] != g->seps[1])
        return false;
    return len == 3 || (len == 2 && !last && g->seps[i] == ',');
}

static void add_reading(struct groups *g, unsigned whole_groups)
{
    struct numeral *n = g->to;
    double value = 0;
    int decimals = 0, zeros = 0;

    for (unsigned i = 0; i < n->n_groups; i++)
        for (size_t k = 0; k < n->groups[i].len; k++) {
            value = value * 10 + (n->groups[i].at[k] - '0');
            zeros = n->groups[i].at[k] == '0' ? zeros + 1 : 0;
            decimals += i >= whole_groups;
        }
    n->readings[n->n_readings].value = decimals > 300 ? 0 : value / pow(10, decimals);
    n->readings[n->n_readings].decimals = decimals;
    n->readings[n->n_readings++].zeros = decimals > 0 || value == 0 ? 0 : zeros;
}

/* Thousands, and then at most one group behind the point. */
static void read_with_point(struct groups *g, char point)
{
    unsigned n = g->to->n_groups, whole = n;

    if (n > 1 && g->seps[n - 1] == point)
        whole = n - 1;
    for (unsigned i = 1; i < whole; i++)
        if (!is_thousands(g, i, point, i == whole - 1))
            return;
    add_reading(g, whole);
}

/* ---- powers of ten ---- */

static int read_exponent(const char *at, const char *end, const char **ret_end)
{
    bool minus = at < end && *at == '-', plus = at < end && *at == '+';
    const char *digits = at + (minus || plus);
    size_t len = digits_len(digits, end);
    int n = 0;

    if (len == 0 || len > 3)
        return 0;
    for (size_t i = 0; i < len; i++)
        n = n * 10 + (digits[i] - '0');
    *ret_end = digits + len;
    return minus ? -n : n;
}

static int read_superscript(const char *at, const char *end, const char **ret_end)
{
    static const char *const digits[] = {
        "\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",     "\xe2\x81\xb4",
        "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7", "\xe2\x81\xb8", "\xe2\x81\xb9"};
    bool minus = has_text(at, end, "\xe2\x81\xbb");
    int n = 0;

    at += minus ? 3 : 0;
    for (unsigned d = 0, seen = 0; d < 10 && seen < 3; d++)
        if (has_text(at, end, digits[d])) {
            n = n * 10 + (int)d;
            at += strlen(digits[d]);
            *ret_end = at;
            seen++;
            d = (unsigned)-1;
        }
    return minus ? -n : n;
}

/* " × 10^6", "\times 10^{6}", "x10⁶". */
static int read_power(const char *at, const char *end, const char **ret_end)
{
    static const char *const signs[] = {"\xc3\x97", "\\times", "\xc2\xb7", "\\cdot",
                                        "x",        "*",       NULL};
    const char *p = at + blank_len(at, end);
    size_t sign = one_of(p, end, signs);

    if (sign == 0)
        return 0;
    p += sign;
    p += blank_len(p, end);
    if (!has_text(p, end, "10"))
        return 0;
    p += 2;
    if (p < end && *p == '^') {
        bool brace = ++p < end && *p == '{';
        int n = read_exponent(p + brace, end, ret_end);
        *ret_end += brace && *ret_end < end && **ret_end == '}';
        return n;
    }
    return read_superscript(p, end, ret_end);
}

static void take_exponent(struct numeral *n, const char *end)
{
    const char *behind = n->end;
    size_t ignored;
    int exponent = 0;

    if (n->end < end && (*n->end == 'e' || *n->end == 'E')) {
        exponent = read_exponent(n->end + 1, end, &behind);
        if (is_letter(behind, end, &ignored))
            return;
    } else {
        exponent = read_power(n->end, end, &behind);
    }
    if (behind == n->end)
        return;
    for (unsigned i = 0; i < n->n_readings; i++) {
        n->readings[i].value *= pow(10, exponent);
        n->readings[i].decimals -= exponent;
        n->readings[i].zeros = 0;
    }
    n->end = behind;
    n->whole = false;
}

static void read_groups(struct groups *g)
{
    read_with_point(g, '.');
    for (unsigned i = 1; i < g->to->n_groups; i++)
        if (g->seps[i] == '.' || g->seps[i] == ',') { /* else both are the same */
            read_with_point(g, ',');
            return;
        }
}

void numeral_scan(const char *at, const char *end, struct numeral *ret)
{
    struct groups g = {.to = ret};

    *ret = (struct numeral){.end = at};
    take_groups(at, end, &g);
    read_groups(&g);
    for (unsigned i = 1; i < ret->n_groups && ret->n_readings == 0; i++)
        if (g.seps[i] != '.') { /* it is a list: its first member */
            cut_groups(ret, i);
            read_groups(&g);
            break;
        }
    ret->whole = ret->n_groups == 1;
    take_exponent(ret, end);
}

/* ---- what stands behind ---- */

static const struct {
    const char *word;
    double scale, other;
    bool exact; /* as it is written: M is not m */
} scales[] = {
    {"thousand", 1e3, 1e3},
    {"million", 1e6, 1e6},
    {"millions", 1e6, 1e6},
    {"billion", 1e9, 1e9},
    {"billions", 1e9, 1e9},
    {"trillion", 1e12, 1e12},
    {"lakh", 1e5, 1e5},
    {"crore", 1e7, 1e7},
    {"mio", 1e6, 1e6},
    {"mrd", 1e9, 1e9},
    {"mn", 1e6, 1e6},
    {"bn", 1e9, 1e9},
    {"tn", 1e12, 1e12},
    {"kB", 1e3, 1024.0},
    {"MB", 1e6, 1048576.0, true},
    {"GB", 1e9, 1073741824.0, true},
    {"TB", 1e12, 1099511627776.0, true},
    {"KiB", 1024.0, 1e3},
    {"MiB", 1048576.0, 1e6},
    {"GiB", 1073741824.0, 1e9},
    {"TiB", 1099511627776.0, 1e12},
    {"k", 1e3, 1e3},
    {"M", 1e6, 1e6, true},
    {"m", 1e6, 1e6, true},
    {"G", 1e9, 1e9, true},
    {"B", 1e9, 1e9, true},
    {"b", 1e9, 1e9, true},
    {"T", 1e12, 1e12, true},
};

static bool scan_scale(const char *at, const char *end, struct suffix *ret)
{
    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        if (!has_word(at, end, scales[i].word) ||
            (scales[i].exact && !has_text(at, end, scales[i].word)))
            continue;
        *ret = (struct suffix){.end = at + strlen(scales[i].word),
                               .kind = SUFFIX_SCALE,
                               .scale = scales[i].scale,
                               .other_scale = scales[i].other};
        return true;
    }
    return false;
}

static bool scan_percent(const char *at, const char *end, struct suffix *ret)
{
    static const char *const words[] = {"percent", "per cent", "percentage", "pp"};

    ret->kind = SUFFIX_PERCENT;
    if (at < end && *at == '\\')
        at++; /* as LaTeX has it */
    if (at < end && *at == '%') {
        ret->end = at + 1;
        return true;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (has_word(at, end, words[i])) {
            ret->end = at + strlen(words[i]);
            return true;
        }
    return false;
}

/* "2.5x", but not the first side of "3×4". */
static bool is_times(const char *at, const char *end)
{
    size_t len = has_text(at, end, "\xc3\x97") ? 2 : has_word(at, end, "x") ? 1 : 0;
    const char *behind = at + len + blank_len(at + len, end);

    return len > 0 && !(behind < end && is_digit(*behind));
}

void suffix_scan(const char *at, const char *end, struct suffix *ret)
{
    static const char *const ordinals[] = {"st", "nd", "rd", "th"};
    const char *word = at + blank_len(at, end);

    *ret = (struct suffix){.end = at};
    if (word == end || !(is_ascii_letter(*word) || strchr("%\\\xc3", *word)))
        return;
    if (scan_percent(word, end, ret) || scan_scale(word, end, ret))
        return;
    *ret = (struct suffix){.end = at};
    if (is_times(at, end)) {
        ret->end = at + (*at == '\xc3' ? 2 : 1);
        ret->kind = SUFFIX_TIMES;
    }
    for (size_t i = 0; i < sizeof(ordinals) / sizeof(ordinals[0]); i++)
        if (has_word(at, end, ordinals[i])) {
            ret->end = at + 2;
            ret->kind = SUFFIX_ORDINAL;
        }
}

/* ---- what stands before ---- */

static bool ends_with(const char *begin, const char *at, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(at - begin) >= n && memcmp(at - n, text, n) == 0;
}

const char *before_any(const char *begin, const char *at, const char *const *list)
{
    for (; *list; list++)
        if (ends_with(begin, at, *list))
            return at - strlen(*list);
    return at;
}

static const char *before_sign(const char *begin, const char *at)
{
    static const char *const signs[] = {"-", "+", "\xe2\x88\x92", NULL};
    const char *p = before_any(begin, at, signs);

    /* Between two numbers it is a range, and in a name a dash. */
    if (p > begin && (is_digit(p[-1]) || (unsigned char)p[-1] >= 0x80 || strchr("%)]", p[-1])))
        return at;
    return p;
}

/* Behind a number: "5 €", "5 EUR". */
bool is_currency(const char *at, const char *end)
{
    at += blank_len(at, end);
    return has_text(at, end, "$") || has_text(at, end, "\xe2\x82\xac") ||
           has_text(at, end, "\xc2\xa3") || has_word(at, end, "EUR") || has_word(at, end, "USD") ||
           has_word(at, end, "GBP") || has_word(at, end, "dollars") || has_word(at, end, "euros");
}

void before_scan(const char *begin, const char *at, struct before *ret)
{
    static const char *const currencies[] = {
        "$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "\xe2\x82\xb9", "\xe2\x82\xbd", NULL};
    const char *p = before_sign(begin, at), *start = p;
    const char *sign = p < at ? p : NULL;

    if (!sign && p > begin && p[-1] == ' ')
        p--;
    const char *currency = before_any(begin, p, currencies);
    bool has_currency = currency < p;
    if (has_currency) {
        start = currency;
        p = before_sign(begin, currency);
        if (p < currency) {
            sign = p;
            start = p;
        }
    }
    *ret = (struct before){.at = start, .negative = sign && *sign != '+', .currency = has_currency};
}
