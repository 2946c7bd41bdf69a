/* rich: see rich.h. */
#include "term/rich.h"

#include <string.h>

#include "session/utf8.h"
#include "term/width.h"

#define MARKS_MAX 4 /* on one character: more grow over the lines around it */
#define TAB "    "

void rich_done(struct rich *r)
{
    buf_done(&r->text);
    buf_done(&r->style);
}

void rich_clear(struct rich *r)
{
    r->text.len = r->style.len = 0;
    r->marks = 0;
}

static void put(struct rich *r, unsigned style, const char *text, size_t len)
{
    buf_add(&r->text, text, len);
    memset(buf_room(&r->style, len), (int)style, len);
    r->style.len += len;
}

static void put_char(struct rich *r, unsigned style, const char *text, size_t n)
{
    int width = width_of(width_decode(text, n));

    r->marks = width == 0 ? r->marks + 1 : 0;
    if (width < 0)
        put(r, style, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
    else if (r->marks <= MARKS_MAX)
        put(r, style, text, n);
}

void rich_add(struct rich *r, unsigned style, const char *text, size_t len)
{
    size_t n;

    for (size_t at = 0; at < len; at += n) {
        enum utf8_kind kind = utf8_next(text + at, len - at, &n);
        if (text[at] == '\n')
            put(r, style, "\n", 1);
        else if (text[at] == '\t')
            put(r, style, TAB, strlen(TAB));
        else if (kind == UTF8_WHOLE)
            put_char(r, style, text + at, n);
        else
            put(r, style, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
    }
}

void rich_add_text(struct rich *r, unsigned style, const char *text)
{
    rich_add(r, style, text, strlen(text));
}

unsigned rich_width(const struct rich *r, size_t from, size_t to)
{
    return from < to ? width_text(r->text.data + from, to - from) : 0;
}

/* ---- lines ---- */

static uint32_t char_at(const struct rich *r, size_t at, size_t *ret_n)
{
    utf8_next(r->text.data + at, r->text.len - at, ret_n);
    return width_decode(r->text.data + at, *ret_n);
}

/* May a line begin with it? In Chinese and Japanese one may begin anywhere, but not with these. */
static bool closes(uint32_t c)
{
    static const uint32_t closing[] = {0x3001, 0x3002, 0xff0c, 0xff0e, 0xff01, 0xff1f, 0xff1a,
                                       0xff1b, 0xff09, 0x300d, 0x300f, 0x3011, 0x300b, 0x30fc};

    for (unsigned i = 0; i < sizeof(closing) / sizeof(*closing); i++) {
        if (c == closing[i])
            return true;
    }
    return c < 0x80 && strchr(".,;:!?)]}%\"'", (int)c);
}

static size_t skip_blanks(const struct rich *r, size_t at)
{
    while (at < r->text.len && r->text.data[at] == ' ')
        at++;
    return at;
}

size_t rich_wrap(const struct rich *r, size_t at, unsigned width, size_t *ret_end)
{
    size_t end = 0, next = 0, n; /* the last place where it can be cut; next 0: none */
    unsigned column = 0;
    int before = 1;

    for (size_t i = at; i < r->text.len; i += n) {
        uint32_t c = char_at(r, i, &n);
        int wide = width_of(c);
        if (c == '\n') {
            *ret_end = i;
            return i + 1;
        }
        if (c == ' ' && i > at && r->text.data[i - 1] != ' ') {
            end = i;
            next = skip_blanks(r, i);
        } else if (i > at && wide > 0 && (wide == 2 || before == 2) && c != ' ' && !closes(c)) {
            end = next = i;
        }
        if (column + (unsigned)wide > width && i > at) {
            *ret_end = next ? end : i;
            /* At least one character a line, however narrow it is. */
            next = next > at ? next : i;
            return next < r->text.len && r->text.data[next] == '\n' && next > *ret_end ? next + 1
                                                                                       : next;
        }
        column += (unsigned)wide;
        before = wide > 0 ? wide : before;
    }
    *ret_end = r->text.len;
    return r->text.len;
}

size_t rich_chop(const struct rich *r, size_t at, unsigned width, size_t *ret_end)
{
    unsigned column = 0;
    size_t n;

    for (size_t i = at; i < r->text.len; i += n) {
        uint32_t c = char_at(r, i, &n);
        if (c == '\n') {
            *ret_end = i;
            return i + 1;
        }
        column += (unsigned)width_of(c);
        if (column > width && i > at)
            return *ret_end = i;
    }
    return *ret_end = r->text.len;
}

/* ---- to the terminal ---- */

void rich_switch(unsigned style, struct buf *out)
{
    static const char *const codes[] = {";1", ";2", ";3", ";4", ";9"};

    buf_add_text(out, "\033[0");
    for (unsigned i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        if (style & 1u << i)
            buf_add_text(out, codes[i]);
    }
    if (STYLE_COLOUR(style))
        buf_add_fmt(out, ";3%u", STYLE_COLOUR(style));
    buf_add_text(out, "m");
}

void rich_write(const struct rich *r, size_t from, size_t to, bool colours, struct buf *out)
{
    unsigned style = 0;

    for (size_t at = from, run; at < to; at = run) {
        unsigned wanted = colours ? (unsigned char)r->style.data[at] : 0;
        for (run = at + 1; run < to && r->style.data[run] == r->style.data[at];)
            run++;
        if (wanted != style)
            rich_switch(wanted, out);
        style = wanted;
        buf_add(out, r->text.data + at, run - at);
    }
    if (style)
        rich_switch(0, out);
}

void rich_say(unsigned style, const char *text, bool colours, struct buf *out)
{
    cleanup_rich struct rich r = {0};

    rich_add_text(&r, style, text);
    rich_write(&r, 0, r.text.len, colours, out);
}
