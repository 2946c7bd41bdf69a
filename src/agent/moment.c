/* moment: see moment.h. */
#include "agent/moment.h"

#include <string.h>

#include "agent/numeral.h"

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
