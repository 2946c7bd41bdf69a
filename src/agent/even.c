/* even: see even.h. */
#include "agent/even.h"

#include <stdbool.h>
#include <string.h>

#include "session/sanitise.h"

#define LEFT_OUT "\xe2\x80\xa6"

static bool begins(const char *at, const char *end, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(end - at) >= n && memcmp(at, text, n) == 0;
}

static size_t span(const char *at, const char *end, const char *set)
{
    const char *p = at;

    while (p < end && *p && strchr(set, *p))
        p++;
    return (size_t)(p - at);
}

#define DIGITS "0123456789"
#define HEX DIGITS "abcdef"
#define NAME DIGITS "abcdefghijklmnopqrstuvwxyz_"

/* ---- patterns: each says how many bytes it takes at this place (0: it is not here) ---- */

/* As Python prints addresses: behind "at", or as large as a process's own are. */
static size_t address(const char *begin, const char *at, const char *end)
{
    size_t n = begins(at, end, "0x") ? span(at + 2, end, HEX) : 0;
    bool said = at - begin >= 4 && memcmp(at - 4, " at ", 4) == 0;
    bool large = n == 12 && (memcmp(at + 2, "7f", 2) == 0 || memcmp(at + 2, "55", 2) == 0 ||
                             memcmp(at + 2, "56", 2) == 0);

    return large || (said && n >= 6) ? n + 2 : 0;
}

static size_t temporary_name(const char *begin, const char *at, const char *end)
{
    (void)begin;
    return begins(at, end, "/tmp/tmp") && span(at + 8, end, NAME) == 8 ? 16 : 0;
}

static size_t uuid(const char *begin, const char *at, const char *end)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    const char *p = at;

    if (at > begin && strchr(HEX, at[-1]))
        return 0;
    for (unsigned i = 0; i < 5; i++) {
        if (span(p, end, HEX) != groups[i])
            return 0;
        p += groups[i];
        if (i < 4 && (p == end || *p++ != '-'))
            return 0;
    }
    return (size_t)(p - at);
}

static size_t table_id(const char *begin, const char *at, const char *end)
{
    (void)begin;
    return begins(at, end, "T_") && span(at + 2, end, HEX) == 5 ? 7 : 0;
}

static size_t cell_name(const char *begin, const char *at, const char *end)
{
    size_t n;
    (void)begin;

    if (begins(at, end, "<cell ")) {
        n = 6 + span(at + 6, end, DIGITS);
        return n > 6 && at + n < end && at[n] == '>' ? n + 1 : 0;
    }
    if (!begins(at, end, "/tmp/ipykernel_"))
        return 0;
    n = 15 + span(at + 15, end, DIGITS);
    if (at + n == end || at[n] != '/')
        return 0;
    n += 1 + span(at + n + 1, end, DIGITS);
    return begins(at + n, end, ".py") ? n + 3 : 0;
}

/* "[00:01<00:00, 4.9it/s]" */
static size_t speed(const char *begin, const char *at, const char *end)
{
    size_t n = span(at + 1, end, DIGITS ":<?, ./+-itsabkMG");
    (void)begin;

    return at + 1 + n < end && at[1 + n] == ']' && n > 5 && memchr(at, '<', n) ? n + 2 : 0;
}

static const struct {
    char first;
    size_t (*match)(const char *begin, const char *at, const char *end);
    const char *instead;
} patterns[] = {
    {'0', address, "0x" LEFT_OUT},           {'/', temporary_name, "/tmp/tmp" LEFT_OUT},
    {'/', cell_name, "<cell " LEFT_OUT ">"}, {'<', cell_name, "<cell " LEFT_OUT ">"},
    {'T', table_id, "T_" LEFT_OUT},          {'[', speed, "[" LEFT_OUT "]"},
};

static size_t match(const char *begin, const char *at, const char *end, const char **ret_instead)
{
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        size_t n = *at == patterns[i].first ? patterns[i].match(begin, at, end) : 0;
        if (n > 0) {
            *ret_instead = patterns[i].instead;
            return n;
        }
    }
    *ret_instead = LEFT_OUT;
    return *at && strchr(HEX, *at) ? uuid(begin, at, end) : 0;
}

/* ---- lines ---- */

static bool is_timing(const char *at, const char *end)
{
    return begins(at, end, "CPU times: ") || begins(at, end, "Wall time: ") ||
           memmem(at, (size_t)(end - at), " per loop (mean ", 16);
}

static void even_line(const char *at, const char *end, struct buf *ret)
{
    const char *instead, *begin = at;

    if (end > at && end[-1] == '\r')
        end--;
    const char *over = memrchr(at, '\r', (size_t)(end - at));
    begin = at = over ? over + 1 : at;
    if (is_timing(at, end)) {
        buf_add_text(ret, "[" LEFT_OUT " s]");
        return;
    }
    while (at < end) {
        size_t n = match(begin, at, end, &instead);
        if (n > 0) {
            buf_add_text(ret, instead);
            at += n;
        } else {
            buf_add(ret, at++, 1);
        }
    }
}

void even_out(const char *text, size_t len, struct buf *ret)
{
    struct sanitiser s = {.no_colours = true};
    cleanup_buf struct buf plain = {0};

    sanitise(&s, text, len, &plain);
    sanitise_end(&s, &plain);
    const char *at = buf_text(&plain), *end = at + plain.len;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        even_line(at, newline ? newline : end, ret);
        if (newline)
            buf_add(ret, "\n", 1);
        at = newline ? newline + 1 : end;
    }
}
