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

static bool is_ascii_letter(char c)
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

static size_t digits_len(const char *at, const char *end)
{
    const char *p = at;

    while (p < end && is_digit(*p))
        p++;
    return (size_t)(p - at);
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

/* ---- days ---- */

/* Far from everything that is counted, and still exact to a part of a second. */
#define DAY_CODE 1e15
#define TIME_CODE 2e15

/* Two digits at most, or four. */
static unsigned small_number(const char *at, size_t len)
{
    unsigned n = 0;

    for (size_t i = 0; i < len && i < 4; i++)
        n = n * 10 + (unsigned)(at[i] - '0');
    return n;
}

static void add_day(struct moment *m, unsigned year, unsigned month, unsigned day)
{
    double code = year * 10000.0 + month * 100.0 + day;

    if (month < 1 || month > 12 || day < 1 || day > 31 || m->n_codes == 2)
        return;
    m->codes[m->n_codes++] = DAY_CODE + code;
    m->as_number = code;
}

static unsigned full_year(const char *at, size_t len)
{
    return small_number(at, len) + (len == 2 ? 2000 : 0);
}

/* Three runs of digits with the same character between them. */
static bool scan_numbers_day(const char *at, const char *end, struct moment *ret)
{
    const char *parts[3];
    size_t lens[3];
    char sep = '\0';

    for (unsigned i = 0; i < 3; i++) {
        parts[i] = at;
        lens[i] = digits_len(at, end);
        at += lens[i];
        if (lens[i] == 0 || lens[i] > 4 || lens[i] == 3)
            return false;
        if (i == 2)
            break;
        if (at == end || !strchr("-/.", *at) || *at == '\0' || (i > 0 && *at != sep))
            return false;
        sep = *at++;
    }
    if (lens[0] == 4 && lens[1] <= 2 && lens[2] <= 2) {
        add_day(ret, small_number(parts[0], 4), small_number(parts[1], lens[1]),
                small_number(parts[2], lens[2]));
    } else if (lens[0] <= 2 && lens[1] <= 2 && (lens[2] == 4 || (lens[2] == 2 && sep == '/'))) {
        unsigned year = full_year(parts[2], lens[2]);
        unsigned a = small_number(parts[0], lens[0]), b = small_number(parts[1], lens[1]);
        add_day(ret, year, b, a);
        if (a != b)
            add_day(ret, year, a, b);
    }
    ret->end = at;
    return ret->n_codes > 0;
}

static unsigned month_named(const char *at, const char *end, size_t *ret_len)
{
    static const char *const names[] = {"january",   "february", "march",    "april",
                                        "may",       "june",     "july",     "august",
                                        "september", "october",  "november", "december"};

    if (at == end || !is_ascii_letter(*at))
        return 0;
    for (unsigned i = 0; i < 12; i++) {
        char brief[4] = {names[i][0], names[i][1], names[i][2], '\0'};
        bool whole = has_word(at, end, names[i]);
        if (!whole && !has_word(at, end, brief) && !(i == 8 && has_word(at, end, "sept")))
            continue;
        *ret_len = whole ? strlen(names[i]) : i == 8 && has_word(at, end, "sept") ? 4 : 3;
        *ret_len += at + *ret_len < end && at[*ret_len] == '.';
        return i + 1;
    }
    return 0;
}

/* Four digits behind blanks, and perhaps a comma. */
static bool scan_year(const char *at, const char *end, unsigned *ret, const char **ret_end)
{
    at += at < end && *at == ',';
    size_t blank = blank_len(at, end);

    if (blank == 0 || digits_len(at + blank, end) != 4)
        return false;
    *ret = small_number(at + blank, 4);
    *ret_end = at + blank + 4;
    return true;
}

/* Where the word before this place begins, with blanks between. */
static const char *word_before(const char *begin, const char *at)
{
    const char *p = at;

    while (p > begin && (p[-1] == ' ' || p[-1] == '.') && at - p < 3)
        p--;
    const char *blank = p;
    for (unsigned n = 0; p > begin && is_ascii_letter(p[-1]) && n < 10; n++)
        p--;
    return p < blank && blank < at ? p : at;
}

/* "March 15, 2026" and "15 March 2026". */
static bool scan_named_day(const char *begin, const char *at, const char *end, struct moment *ret)
{
    size_t len = digits_len(at, end), month_len = 0;
    const char *behind = at + len;
    unsigned year;

    if (len == 0 || len > 2)
        return false;
    const char *word = word_before(begin, at);
    unsigned month = word < at ? month_named(word, at, &month_len) : 0;
    if (has_word(behind, end, "st") || has_word(behind, end, "nd") || has_word(behind, end, "rd") ||
        has_word(behind, end, "th"))
        behind += 2;
    if (month > 0) {
        ret->at = word;
    } else {
        size_t blank = blank_len(behind, end);
        month = blank ? month_named(behind + blank, end, &month_len) : 0;
        behind += blank + month_len;
    }
    if (month == 0 || !scan_year(behind, end, &year, &ret->end))
        return false;
    add_day(ret, year, month, small_number(at, len));
    return ret->n_codes > 0;
}

/* ---- times ---- */

static bool is_afternoon(const char *at, const char *end)
{
    at += blank_len(at, end);
    return has_word(at, end, "pm") || has_text(at, end, "p.m");
}

static bool scan_time(const char *at, const char *end, struct moment *ret)
{
    size_t len = digits_len(at, end);
    const char *p = at + len;
    unsigned hour = small_number(at, len), second = 0;

    if (len == 0 || len > 2 || p == end || *p != ':' || digits_len(p + 1, end) != 2)
        return false;
    unsigned minute = small_number(p + 1, 2);
    p += 3;
    bool seconds = p < end && *p == ':' && digits_len(p + 1, end) == 2;
    if (seconds) {
        second = small_number(p + 1, 2);
        p += 3;
        if (p < end && *p == '.' && digits_len(p + 1, end) > 0)
            p += 1 + digits_len(p + 1, end);
    }
    if (is_afternoon(p, end) && hour < 12)
        hour += 12;
    ret->codes[ret->n_codes++] = TIME_CODE + hour * 3600.0 + minute * 60.0 + second;
    ret->lasts = seconds ? 0 : 59;
    ret->as_number = minute == 0 && second == 0 ? (double)hour : -1;
    ret->end = p;
    return true;
}

bool moment_scan(const char *begin, const char *at, const char *end, struct moment *ret)
{
    *ret = (struct moment){.at = at, .end = at, .as_number = -1};
    return scan_time(at, end, ret) || scan_numbers_day(at, end, ret) ||
           scan_named_day(begin, at, end, ret);
}
