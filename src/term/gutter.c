/* gutter: see gutter.h. */
#include "term/gutter.h"

#include <string.h>

#include "session/utf8.h"
#include "term/rich.h"
#include "term/width.h"

#define TAB 8u

void gutter_init(struct gutter *g, const char *prefix)
{
    *g = (struct gutter){.prefix = prefix, .sanitiser = {.no_colours = true}};
}

static void style_on(struct gutter *g, const struct term *t, struct buf *out)
{
    if (g->style && t->colours && !g->styled) {
        rich_switch(g->style, out);
        g->styled = true;
    }
}

static void style_off(struct gutter *g, struct buf *out)
{
    if (g->styled)
        rich_switch(0, out);
    g->styled = false;
}

static void begin(struct gutter *g, const struct term *t, struct buf *out)
{
    if (g->midline)
        return;
    rich_say(STYLE_DIM, g->prefix, t->colours, out);
    g->midline = true;
    g->column = 0;
}

static void newline(struct gutter *g, const struct term *t, struct buf *out)
{
    begin(g, t, out);
    style_off(g, out);
    buf_add_text(out, "\n");
    g->midline = false;
}

static void put(struct gutter *g, const struct term *t, const char *text, size_t n, unsigned width,
                struct buf *out)
{
    unsigned taken = width_text(g->prefix, strlen(g->prefix));

    if (g->midline && taken + g->column + width > t->columns)
        newline(g, t, out);
    begin(g, t, out);
    style_on(g, t, out);
    buf_add(out, text, n);
    g->column += width;
}

/* What follows is written over the line. */
static void go_back(struct gutter *g, const struct term *t, struct buf *out)
{
    g->returned = false;
    if (!g->midline || g->column == 0)
        return;
    if (!t->moves) {
        newline(g, t, out);
        return;
    }
    style_off(g, out);
    buf_add_text(out, "\r");
    g->midline = false;
}

static void put_char(struct gutter *g, const struct term *t, const char *text, size_t n,
                     struct buf *out)
{
    int width;

    if (g->returned && *text != '\n')
        go_back(g, t, out);
    switch (*text) {
    case '\n':
        g->returned = false;
        newline(g, t, out);
        break;
    case '\r':
        g->returned = true;
        break;
    case '\b':
        if (t->moves && g->column > 0) {
            buf_add_text(out, "\b");
            g->column--;
        }
        break;
    case '\t':
        do {
            put(g, t, " ", 1, 1, out);
        } while (g->column % TAB);
        break;
    default:
        width = width_of(width_decode(text, n));
        if (width < 0)
            put(g, t, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT), 1, out);
        else
            put(g, t, text, n, (unsigned)width, out);
    }
}

void gutter_feed(struct gutter *g, const struct term *t, unsigned style, const char *text,
                 size_t len, struct buf *out)
{
    cleanup_buf struct buf clean = {0};
    size_t n;

    if (style != g->style)
        style_off(g, out);
    g->style = style;
    sanitise(&g->sanitiser, text, len, &clean);
    for (size_t at = 0; at < clean.len; at += n) {
        bool whole = utf8_next(clean.data + at, clean.len - at, &n) == UTF8_WHOLE;
        put_char(g, t, whole ? clean.data + at : UTF8_REPLACEMENT,
                 whole ? n : strlen(UTF8_REPLACEMENT), out);
    }
    style_off(g, out);
}

void gutter_end(struct gutter *g, const struct term *t, struct buf *out)
{
    if (g->midline)
        newline(g, t, out);
    gutter_init(g, g->prefix);
}
