/* table: see table.h. */
#include "term/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define COLUMN_MIN 3u /* characters */

void table_done(struct table *t)
{
    for (unsigned i = 0; i < t->n_cells; i++)
        rich_done(&t->cells[i]);
    free(t->cells);
    *t = (struct table){0};
}

struct rich *table_add(struct table *t)
{
    if (t->n_cells == TABLE_CELLS)
        return NULL;
    if (t->n_cells == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->cells = reallocarray(t->cells, t->cap, sizeof(*t->cells));
        if (!t->cells)
            bug("out of memory");
    }
    t->cells[t->n_cells] = (struct rich){0};
    return &t->cells[t->n_cells++];
}

/* ---- what stands in a column ---- */

/* A number as people write it: "1,234.5", "-3 %", "$12", "€ 4", "1.2e-5", "n/a" and "–" for none. */
static bool is_number(const struct rich *cell)
{
    static const char *const around[] = {"€", "£", "¥", "−", "±", "–", "—", "×", "≈", " ", "°"};
    const char *p = cell->text.data, *end = cell->text.len ? p + cell->text.len : p;
    bool digits = false;

    for (bool known = true; p < end && known;) {
        known = false;
        if (strchr("0123456789.,+-%$ ()/eEkKMGTBx~*_'", *p) && *p) {
            digits = digits || (*p >= '0' && *p <= '9');
            known = true;
            p++;
        }
        for (unsigned i = 0; !known && i < sizeof(around) / sizeof(*around); i++) {
            size_t n = strlen(around[i]);
            if ((size_t)(end - p) >= n && memcmp(p, around[i], n) == 0) {
                known = true;
                p += n;
            }
        }
    }
    return p == end && (digits || cell->text.len <= strlen("—"));
}

static bool has_digit(const struct rich *cell)
{
    for (size_t i = 0; i < cell->text.len; i++) {
        if (cell->text.data[i] >= '0' && cell->text.data[i] <= '9')
            return true;
    }
    return false;
}

static bool column_of_numbers(const struct table *t, unsigned column)
{
    bool some = false;

    for (unsigned i = t->columns + column; i < t->n_cells; i += t->columns) {
        if (!is_number(&t->cells[i]))
            return false;
        some = some || has_digit(&t->cells[i]);
    }
    return some;
}

/* ---- widths ---- */

static unsigned longest_line(const struct rich *cell)
{
    unsigned longest = 0;

    for (size_t at = 0, end; at < cell->text.len;) {
        size_t next = rich_chop(cell, at, 1u << 30, &end);
        unsigned width = rich_width(cell, at, end);
        longest = width > longest ? width : longest;
        at = next;
    }
    return longest;
}

/* Take from the widest until all fits. */
static bool fit(unsigned *widths, unsigned n, unsigned room)
{
    unsigned total = 0;

    for (unsigned i = 0; i < n; i++)
        total += widths[i];
    while (total > room) {
        unsigned widest = 0;
        for (unsigned i = 1; i < n; i++)
            widest = widths[i] > widths[widest] ? i : widest;
        if (widths[widest] <= COLUMN_MIN)
            return false;
        unsigned second = COLUMN_MIN;
        for (unsigned i = 0; i < n; i++) {
            if (i != widest && widths[i] > second)
                second = widths[i];
        }
        unsigned over = total - room, step = widths[widest] - second;
        step = step == 0 ? 1 : step < over ? step : over;
        widths[widest] -= step;
        total -= step;
    }
    return true;
}

static bool find_widths(const struct table *t, unsigned room, unsigned widths[TABLE_COLUMNS],
                        bool *ret_narrowed)
{
    unsigned lines = 3 * t->columns + 1, total = lines;

    memset(widths, 0, TABLE_COLUMNS * sizeof(*widths));
    for (unsigned i = 0; i < t->n_cells; i++) {
        unsigned width = longest_line(&t->cells[i]), *column = &widths[i % t->columns];
        *column = width > *column ? width : *column;
    }
    for (unsigned i = 0; i < t->columns; i++)
        total += widths[i] = widths[i] ? widths[i] : 1;
    *ret_narrowed = total > room;
    return room > lines && fit(widths, t->columns, room - lines);
}

/* ---- lines ---- */

struct setting {
    const struct table *table;
    unsigned widths[TABLE_COLUMNS];
    bool colours;
    struct buf line;
    void (*out)(void *ctx, const char *text, size_t len);
    void *ctx;
};

static void end_line(struct setting *s)
{
    s->out(s->ctx, buf_text(&s->line), s->line.len);
    s->line.len = 0;
}

static void set_rule(struct setting *s, const char *left, const char *middle, const char *right)
{
    struct buf rule = {0};

    buf_add_text(&rule, left);
    for (unsigned i = 0; i < s->table->columns; i++) {
        for (unsigned n = 0; n < s->widths[i] + 2; n++)
            buf_add_text(&rule, "─");
        buf_add_text(&rule, i + 1 < s->table->columns ? middle : right);
    }
    rich_say(STYLE_DIM, buf_text(&rule), s->colours, &s->line);
    buf_done(&rule);
    end_line(s);
}

static void pad(struct buf *b, unsigned n)
{
    memset(buf_room(b, n), ' ', n);
    b->len += n;
}

static void set_piece(struct setting *s, unsigned column, const struct rich *cell, size_t from,
                      size_t to)
{
    unsigned width = rich_width(cell, from, to);
    unsigned spare = width < s->widths[column] ? s->widths[column] - width : 0;
    enum table_align align = s->table->align[column];
    unsigned left = align == ALIGN_RIGHT ? spare : align == ALIGN_CENTRE ? spare / 2 : 0;

    pad(&s->line, left + 1);
    rich_write(cell, from, to, s->colours, &s->line);
    pad(&s->line, spare - left + 1);
    rich_say(STYLE_DIM, "│", s->colours, &s->line);
}

static void set_row(struct setting *s, const struct rich *cells)
{
    size_t at[TABLE_COLUMNS] = {0};
    bool more = true;

    while (more) {
        more = false;
        rich_say(STYLE_DIM, "│", s->colours, &s->line);
        for (unsigned i = 0; i < s->table->columns; i++) {
            size_t from = at[i], end = from;
            if (from < cells[i].text.len)
                at[i] = rich_wrap(&cells[i], from, s->widths[i], &end);
            set_piece(s, i, &cells[i], from, end);
            more = more || at[i] < cells[i].text.len;
        }
        end_line(s);
    }
}

bool table_write(struct table *t, unsigned width, bool colours,
                 void (*line)(void *ctx, const char *text, size_t len), void *ctx)
{
    struct setting s = {.table = t, .colours = colours, .out = line, .ctx = ctx};
    bool narrowed = false; /* rows may take several lines: then there are lines between them */

    if (!find_widths(t, width, s.widths, &narrowed))
        return false;
    for (unsigned i = 0; i < t->columns; i++) {
        if (t->align[i] == ALIGN_UNSAID && column_of_numbers(t, i))
            t->align[i] = ALIGN_RIGHT;
    }
    set_rule(&s, "┌", "┬", "┐");
    for (unsigned row = 0; row < t->n_cells; row += t->columns) {
        set_row(&s, t->cells + row);
        if (row + t->columns < t->n_cells && (row == 0 || narrowed))
            set_rule(&s, "├", "┼", "┤");
    }
    set_rule(&s, "└", "┴", "┘");
    buf_done(&s.line);
    return true;
}
