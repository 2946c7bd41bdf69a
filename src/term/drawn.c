/* drawn: are these bytes a drawing and nothing else? See picture.h.
 *
 * They come from a process that has read a hostile picture, and go to a terminal, which obeys. The three grammars are
 * small, so they are held to the letter: kitty's protocol for instance could also name a file of ours to be shown, or to
 * be deleted (t=t).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "session/utf8.h"
#include "term/picture.h"
#include "term/width.h"

#define SIDE_MAX 10000ul /* pixels, and whatever else is a number in a drawing */

struct scan {
    const char *at, *end;
};

static bool eat(struct scan *s, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0)
        return false;
    s->at += n;
    return true;
}

/* 1: a number; 0: there is none; -1: one that is too large. */
static int eat_number(struct scan *s, unsigned long max, unsigned long *ret)
{
    unsigned long n = 0;
    const char *from = s->at;

    while (s->at < s->end && isdigit((unsigned char)*s->at) && n <= max)
        n = n * 10 + (unsigned long)(*s->at++ - '0');
    *ret = n;
    return s->at == from ? 0 : n <= max ? 1 : -1;
}

/* ---- blocks: characters, colours, newlines ---- */

static bool eat_colour(struct scan *s)
{
    size_t n = 0;

    while (s->at < s->end && n++ < 48 && (isdigit((unsigned char)*s->at) || *s->at == ';'))
        s->at++;
    return eat(s, "m");
}

static bool check_blocks(struct scan s, unsigned columns, unsigned rows)
{
    unsigned column = 0, row = 1;
    size_t n;

    while (s.at < s.end) {
        if (eat(&s, "\n")) {
            column = 0;
            row++;
        } else if (eat(&s, "\033[")) {
            if (!eat_colour(&s))
                return false;
        } else {
            if (utf8_next(s.at, (size_t)(s.end - s.at), &n) != UTF8_WHOLE ||
                width_of(width_decode(s.at, n)) != 1)
                return false;
            column++;
            s.at += n;
        }
        if (column > columns || row > rows + (column == 0))
            return false;
    }
    return true;
}

/* ---- sixel: ESC P numbers q data ESC \ ---- */

static bool check_sixel(struct scan s)
{
    unsigned long n;

    if (!eat(&s, "\033P"))
        return false;
    while (s.at < s.end && *s.at != 'q') {
        if (!isdigit((unsigned char)*s.at) && *s.at != ';')
            return false;
        s.at++;
    }
    if (!eat(&s, "q"))
        return false;
    while (s.at < s.end && *s.at != '\033') {
        if (isdigit((unsigned char)*s.at)) {
            if (eat_number(&s, SIDE_MAX, &n) < 0)
                return false;
        } else if (strchr("\"#!$-;\n", *s.at) || (*s.at >= '?' && *s.at <= '~')) {
            s.at++;
        } else {
            return false;
        }
    }
    if (!eat(&s, "\033\\"))
        return false;
    eat(&s, "\n");
    return s.at == s.end;
}

/* ---- kitty: ESC _ G key=value,… ; base64 ESC \ , once or more ---- */

/* Put this picture here (a=T), from the bytes that follow (t=d), which are pixels (f=24, f=32), and say nothing (q). */
static bool check_key(char key, unsigned long value, const char *word, size_t word_len)
{
    switch (key) {
    case 'a':
        return word_len == 1 && *word == 'T';
    case 't':
        return word_len == 1 && *word == 'd';
    case 'f':
        return value == 24 || value == 32;
    case 'm':
        return value <= 1;
    case 'q':
        return value <= 2;
    case 's':
    case 'v':
    case 'c':
    case 'r':
        return value > 0 && value <= SIDE_MAX;
    default:
        return false;
    }
}

static bool eat_keys(struct scan *s)
{
    while (s->at < s->end && isalpha((unsigned char)*s->at)) {
        char key = *s->at++;
        unsigned long value = 0;
        const char *word = s->at + 1;
        if (!eat(s, "="))
            return false;
        int number = eat_number(s, SIDE_MAX, &value);
        if (number < 0)
            return false;
        while (number == 0 && s->at < s->end && isalpha((unsigned char)*s->at))
            s->at++;
        if (!check_key(key, value, word, number ? 0 : (size_t)(s->at - word)))
            return false;
        if (!eat(s, ","))
            break;
    }
    return true;
}

static bool check_kitty(struct scan s)
{
    while (s.at < s.end && *s.at == '\033') {
        if (!eat(&s, "\033_G") || !eat_keys(&s))
            return false;
        if (eat(&s, ";")) {
            while (s.at < s.end && (isalnum((unsigned char)*s.at) || strchr("+/=", *s.at)) && *s.at)
                s.at++;
        }
        if (!eat(&s, "\033\\"))
            return false;
    }
    eat(&s, "\n");
    return s.at == s.end;
}

bool drawn_check(enum term_pictures kind, const char *bytes, size_t len, unsigned columns,
                 unsigned rows)
{
    struct scan s = {bytes, bytes + len};

    if (len == 0 || memchr(bytes, '\0', len))
        return false;
    switch (kind) {
    case PICTURES_BLOCKS:
        return check_blocks(s, columns, rows);
    case PICTURES_SIXEL:
        return check_sixel(s);
    case PICTURES_KITTY:
        return check_kitty(s);
    default:
        return false;
    }
}
