/* markdown: see markdown.h.
 *
 * md4c calls us for blocks, spans and texts. Text is gathered in `inline_text` (or in a cell of a table) until its
 * block ends, and then written in lines, each behind the prefixes of the quotes and lists that it is in.
 */
#include "term/markdown.h"

#include <md4c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/sanitise.h"
#include "session/utf8.h"
#include "term/highlight.h"
#include "term/table.h"
#include "term/width.h"

#define RENDERED_MAX (256u << 10) /* bytes of one block: a longer one is shown as it is */
#define DEPTH_MAX 24              /* of quotes and lists; deeper ones look like the last */
#define TEXT_WIDTH_MIN 10u
#define LINK_DEPTH 8

/* A quote, a list or an item of one that we are in. */
struct level {
    char first[32], rest[8]; /* before its first line, and before the others; "" is nothing */
    bool begun;
    bool tight;
    bool ordered;
    unsigned number, digits; /* of the next item */
};

struct page {
    const struct paper *paper;
    struct buf *out;
    struct level levels[DEPTH_MAX];
    unsigned depth;
    bool written, gap; /* there is a block before this one; an empty line has to follow it */
    struct rich inline_text;
    unsigned styles[32]; /* of the spans that we are in */
    unsigned n_styles;
    struct {
        char *address;
        size_t from; /* where its text begins */
    } links[LINK_DEPTH];
    unsigned n_links;
    bool code, python; /* in a block of code */
    struct buf code_text;
    bool in_table, in_head;
    struct table table;
    struct rich *cell;
};

/* ---- lines ---- */

static struct level *level_at(struct page *g)
{
    unsigned depth = g->depth < DEPTH_MAX ? g->depth : DEPTH_MAX;
    return depth > 0 ? &g->levels[depth - 1] : NULL;
}

static unsigned prefix_width(const struct page *g)
{
    unsigned width = 0;

    for (unsigned i = 0; i < g->depth && i < DEPTH_MAX; i++)
        width += width_text(g->levels[i].rest, strlen(g->levels[i].rest));
    return width;
}

static unsigned text_width(const struct page *g)
{
    unsigned prefix = prefix_width(g), columns = g->paper->columns;
    return columns > prefix + TEXT_WIDTH_MIN ? columns - prefix : TEXT_WIDTH_MIN;
}

static void add_prefix(struct page *g, bool empty)
{
    cleanup_rich struct rich prefix = {0};
    size_t end = 0;

    for (unsigned i = 0; i < g->depth && i < DEPTH_MAX; i++) {
        struct level *l = &g->levels[i];
        bool first = !empty && !l->begun && l->first[0];
        rich_add_text(&prefix, first ? STYLE_CYAN : STYLE_DIM, first ? l->first : l->rest);
        l->begun = l->begun || !empty;
    }
    /* No blanks at the end of an empty line. */
    for (size_t i = 0; i < prefix.text.len; i++)
        end = prefix.text.data[i] != ' ' || !empty ? i + 1 : end;
    rich_write(&prefix, 0, end, g->paper->colours, g->out);
}

static void begin_line(struct page *g)
{
    if (g->gap && g->written) {
        add_prefix(g, true);
        buf_add_text(g->out, "\n");
    }
    g->gap = false;
    g->written = true;
    add_prefix(g, false);
}

static void write_text(struct page *g, const struct rich *r)
{
    for (size_t at = 0, end, next; at < r->text.len; at = next) {
        next = rich_wrap(r, at, text_width(g), &end);
        begin_line(g);
        rich_write(r, at, end, g->paper->colours, g->out);
        buf_add_text(g->out, "\n");
    }
}

/* The text that was gathered, as a paragraph or what stands for one. */
static void flush_text(struct page *g)
{
    if (g->inline_text.text.len > 0) {
        write_text(g, &g->inline_text);
        rich_clear(&g->inline_text);
    }
}

static void end_block(struct page *g)
{
    const struct level *l = level_at(g);
    g->gap = !(l && l->tight);
}

/* ---- quotes, lists ---- */

static void enter_level(struct page *g, const struct level *l)
{
    flush_text(g);
    if (g->depth < DEPTH_MAX)
        g->levels[g->depth] = *l;
    g->depth++;
}

static void leave_level(struct page *g)
{
    flush_text(g);
    if (g->depth > 0)
        g->depth--;
}

static void enter_list(struct page *g, bool ordered, unsigned start, bool tight)
{
    /* The list itself has no prefix; its items have. */
    enter_level(g, &(struct level){.ordered = ordered, .number = start, .tight = tight});
}

static void enter_item(struct page *g, const MD_BLOCK_LI_DETAIL *d)
{
    static const char *const bullets[] = {"• ", "◦ ", "▪ "};
    struct level *list = level_at(g), item = {.rest = "  "};
    unsigned nested = 0;

    if (!list)
        return;
    for (unsigned i = 0; i < g->depth && i < DEPTH_MAX; i++)
        nested += g->levels[i].first[0] != '\0' && !g->levels[i].ordered;
    if (d->is_task)
        snprintf(item.first, sizeof(item.first), "%s ", d->task_mark == ' ' ? "☐" : "☑");
    else if (list->ordered)
        snprintf(item.first, sizeof(item.first), "%u. ", list->number++);
    else
        snprintf(item.first, sizeof(item.first), "%s", bullets[nested % 3]);
    unsigned width = width_text(item.first, strlen(item.first));
    snprintf(item.rest, sizeof(item.rest), "%*s", (int)(width < 7 ? width : 7), "");
    item.tight = list->tight;
    if (item.tight && list->begun)
        g->gap = false;
    enter_level(g, &item);
}

static void leave_item(struct page *g)
{
    struct level *l = level_at(g);

    flush_text(g);
    if (l && !l->begun) { /* an empty item is shown too */
        begin_line(g);
        buf_add_text(g->out, "\n");
    }
    leave_level(g);
    end_block(g);
}

static void leave_list(struct page *g)
{
    leave_level(g);
    end_block(g);
}

/* ---- code ---- */

static void on_code_line(void *ctx, const struct rich *line)
{
    struct page *g = ctx;
    size_t at = 0, end;

    do {
        size_t next = rich_chop(line, at, text_width(g) - 2, &end);
        begin_line(g);
        buf_add_text(g->out, "  ");
        rich_write(line, at, end, g->paper->colours, g->out);
        buf_add_text(g->out, "\n");
        at = next;
    } while (at < line->text.len);
}

static bool says_python(const MD_ATTRIBUTE *lang)
{
    static const char *const names[] = {"python", "py", "python3", "ipython", "ipython3", "pycon"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (lang->size == strlen(names[i]) && strncasecmp(lang->text, names[i], lang->size) == 0)
            return true;
    }
    return false;
}

static void write_code(struct page *g)
{
    struct highlight h;
    struct rich plain = {0};

    if (g->python) {
        highlight_init(&h, on_code_line, g);
        highlight_feed(&h, buf_text(&g->code_text), g->code_text.len);
        highlight_end(&h);
        highlight_done(&h);
    } else {
        const char *at = buf_text(&g->code_text), *end = at + g->code_text.len;
        while (at < end) {
            const char *newline = memchr(at, '\n', (size_t)(end - at));
            const char *stop = newline ? newline : end;
            rich_clear(&plain);
            rich_add(&plain, 0, at, (size_t)(stop - at));
            on_code_line(g, &plain);
            at = newline ? newline + 1 : end;
        }
    }
    rich_done(&plain);
    g->code_text.len = 0;
    g->code = false;
}

/* ---- tables ---- */

static void on_table_line(void *ctx, const char *text, size_t len)
{
    struct page *g = ctx;

    begin_line(g);
    buf_add(g->out, text, len);
    buf_add_text(g->out, "\n");
}

/* There is no room for columns: each row as lines "head: cell". */
static void write_records(struct page *g)
{
    const struct table *t = &g->table;

    for (unsigned i = t->columns; i < t->n_cells; i++) {
        cleanup_rich struct rich line = {0};
        const struct rich *head = &t->cells[i % t->columns], *cell = &t->cells[i];
        rich_add(&line, STYLE_BOLD, head->text.data, head->text.len);
        rich_add_text(&line, STYLE_BOLD, ": ");
        rich_add(&line, 0, cell->text.data, cell->text.len);
        write_text(g, &line);
        g->gap = (i + 1) % t->columns == 0;
    }
}

static void write_table(struct page *g)
{
    if (g->table.columns > 0 && g->table.n_cells > 0 &&
        !table_write(&g->table, text_width(g), g->paper->colours, on_table_line, g))
        write_records(g);
    table_done(&g->table);
    g->in_table = false;
    g->cell = NULL;
    end_block(g);
}

static int enter_cell(struct page *g, const MD_BLOCK_TD_DETAIL *d)
{
    static const enum table_align aligns[] = {[MD_ALIGN_DEFAULT] = ALIGN_UNSAID,
                                              [MD_ALIGN_LEFT] = ALIGN_LEFT,
                                              [MD_ALIGN_CENTER] = ALIGN_CENTRE,
                                              [MD_ALIGN_RIGHT] = ALIGN_RIGHT};

    if (g->in_head && g->table.n_cells < g->table.columns)
        g->table.align[g->table.n_cells] = aligns[d->align];
    g->cell = table_add(&g->table);
    return g->cell ? 0 : -1;
}

/* ---- blocks ---- */

static void write_rule(struct page *g)
{
    unsigned width = text_width(g);

    begin_line(g);
    struct buf rule = {0};
    for (unsigned i = 0; i < width && i < 40; i++)
        buf_add_text(&rule, "─");
    rich_say(STYLE_DIM, buf_text(&rule), g->paper->colours, g->out);
    buf_done(&rule);
    buf_add_text(g->out, "\n");
    end_block(g);
}

static void push_style(struct page *g, unsigned style)
{
    unsigned outer = g->n_styles ? g->styles[g->n_styles - 1] : 0;

    /* The innermost colour is the one that is seen. */
    if (STYLE_COLOUR(style))
        outer &= ~(7u << 5);
    if (g->n_styles < sizeof(g->styles) / sizeof(*g->styles))
        g->styles[g->n_styles] = outer | style;
    g->n_styles++;
}

static void pop_style(struct page *g)
{
    if (g->n_styles > 0)
        g->n_styles--;
}

static unsigned style_now(const struct page *g)
{
    unsigned last = sizeof(g->styles) / sizeof(*g->styles);
    unsigned n = g->n_styles < last ? g->n_styles : last;
    return n ? g->styles[n - 1] : 0;
}

static struct rich *target(struct page *g)
{
    return g->cell ? g->cell : &g->inline_text;
}

static void enter_heading(struct page *g, unsigned level)
{
    static const unsigned styles[] = {STYLE_BOLD | STYLE_UNDERLINE | STYLE_BLUE,
                                      STYLE_BOLD | STYLE_BLUE, STYLE_BOLD};

    push_style(g, styles[level < 3 ? level - 1 : 2]);
    /* Without colours its marks are what shows that it is one. */
    if (!g->paper->colours) {
        rich_add(&g->inline_text, 0, "######", level < 6 ? level : 6);
        rich_add_text(&g->inline_text, 0, " ");
    }
}

static int enter_table(struct page *g, const MD_BLOCK_TABLE_DETAIL *d)
{
    g->in_table = true;
    g->table = (struct table){.columns = d->col_count};
    return d->col_count <= TABLE_COLUMNS ? 0 : -1;
}

static int on_enter_block(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    struct page *g = ctx;

    switch (type) {
    case MD_BLOCK_QUOTE:
        enter_level(g, &(struct level){.rest = "▌ "});
        break;
    case MD_BLOCK_UL:
        enter_list(g, false, 0, ((MD_BLOCK_UL_DETAIL *)detail)->is_tight);
        break;
    case MD_BLOCK_OL:
        enter_list(g, true, ((MD_BLOCK_OL_DETAIL *)detail)->start,
                   ((MD_BLOCK_OL_DETAIL *)detail)->is_tight);
        break;
    case MD_BLOCK_LI:
        enter_item(g, detail);
        break;
    case MD_BLOCK_HR:
        write_rule(g);
        break;
    case MD_BLOCK_H:
        enter_heading(g, ((MD_BLOCK_H_DETAIL *)detail)->level);
        break;
    case MD_BLOCK_CODE:
        flush_text(g);
        g->code = true;
        g->python = says_python(&((MD_BLOCK_CODE_DETAIL *)detail)->lang);
        break;
    case MD_BLOCK_TABLE:
        flush_text(g);
        return enter_table(g, detail);
    case MD_BLOCK_THEAD:
        g->in_head = true;
        break;
    case MD_BLOCK_TH:
        push_style(g, STYLE_BOLD);
        return enter_cell(g, detail);
    case MD_BLOCK_TD:
        return enter_cell(g, detail);
    default:
        break;
    }
    return 0;
}

static int on_leave_block(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    struct page *g = ctx;
    (void)detail;

    switch (type) {
    case MD_BLOCK_QUOTE:
        leave_level(g);
        end_block(g);
        break;
    case MD_BLOCK_UL:
    case MD_BLOCK_OL:
        leave_list(g);
        break;
    case MD_BLOCK_LI:
        leave_item(g);
        break;
    case MD_BLOCK_H:
        pop_style(g);
        flush_text(g);
        end_block(g);
        break;
    case MD_BLOCK_P:
        flush_text(g);
        end_block(g);
        break;
    case MD_BLOCK_CODE:
        write_code(g);
        end_block(g);
        break;
    case MD_BLOCK_TABLE:
        write_table(g);
        break;
    case MD_BLOCK_THEAD:
        g->in_head = false;
        break;
    case MD_BLOCK_TH:
        pop_style(g);
        break;
    default:
        break;
    }
    return 0;
}

/* ---- spans ---- */

static void enter_link(struct page *g, const MD_ATTRIBUTE *address)
{
    if (g->n_links < LINK_DEPTH) {
        struct buf copy = {0};
        buf_add(&copy, address->text, address->size);
        g->links[g->n_links].address = buf_steal(&copy);
        g->links[g->n_links].from = target(g)->text.len;
    }
    g->n_links++;
}

/* Its address is shown, unless it is its text. */
static void leave_link(struct page *g)
{
    struct rich *r = target(g), address = {0};

    /* md4c may leave a link that it has not entered: in "![a](b[) ](c[)". */
    if (g->n_links == 0 || --g->n_links >= LINK_DEPTH)
        return;
    size_t from = g->links[g->n_links].from <= r->text.len ? g->links[g->n_links].from : 0;
    rich_add_text(&address, 0, g->links[g->n_links].address);
    if (address.text.len > 0 &&
        (address.text.len != r->text.len - from ||
         memcmp(address.text.data, r->text.data + from, address.text.len) != 0)) {
        rich_add_text(r, STYLE_DIM, " (");
        rich_add(r, STYLE_DIM, address.text.data, address.text.len);
        rich_add_text(r, STYLE_DIM, ")");
    }
    rich_done(&address);
    free(g->links[g->n_links].address);
    g->links[g->n_links].address = NULL;
}

/* What stands around a span where there are no colours. */
static void mark(struct page *g, MD_SPANTYPE type)
{
    const char *marks = type == MD_SPAN_CODE     ? "`"
                        : type == MD_SPAN_STRONG ? "**"
                        : type == MD_SPAN_EM     ? "*"
                        : type == MD_SPAN_DEL    ? "~~"
                                                 : "";
    if (!g->paper->colours)
        rich_add_text(target(g), 0, marks);
}

static int on_enter_span(MD_SPANTYPE type, void *detail, void *ctx)
{
    struct page *g = ctx;
    unsigned style = type == MD_SPAN_STRONG ? STYLE_BOLD
                     : type == MD_SPAN_EM   ? STYLE_ITALIC
                     : type == MD_SPAN_CODE ? STYLE_CYAN
                     : type == MD_SPAN_DEL  ? STYLE_STRIKE
                     : type == MD_SPAN_A    ? STYLE_UNDERLINE
                                            : 0;
    if (type == MD_SPAN_IMG)
        rich_add_text(target(g), STYLE_DIM, "picture: ");
    if (type == MD_SPAN_A)
        enter_link(g, &((MD_SPAN_A_DETAIL *)detail)->href);
    if (type == MD_SPAN_IMG)
        enter_link(g, &((MD_SPAN_IMG_DETAIL *)detail)->src);
    push_style(g, style);
    mark(g, type);
    return 0;
}

static int on_leave_span(MD_SPANTYPE type, void *detail, void *ctx)
{
    struct page *g = ctx;
    (void)detail;

    mark(g, type);
    pop_style(g);
    if (type == MD_SPAN_A || type == MD_SPAN_IMG)
        leave_link(g);
    return 0;
}

/* ---- texts ---- */

static void add_code_point(struct rich *r, unsigned style, unsigned long c)
{
    char text[4];
    size_t n = 0;

    if (c < 0x80) {
        text[n++] = (char)(c ? c : '?');
    } else if (c < 0x800) {
        text[n++] = (char)(0xc0 | c >> 6);
        text[n++] = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        text[n++] = (char)(0xe0 | c >> 12);
        text[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        text[n++] = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x110000) {
        text[n++] = (char)(0xf0 | c >> 18);
        text[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        text[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        text[n++] = (char)(0x80 | (c & 0x3f));
    }
    rich_add(r, style, text, n); /* which also takes care of what may not be shown */
}

/* Those that models write; others stay as they are written. */
static void add_entity(struct rich *r, unsigned style, const char *text, size_t len)
{
    static const char *const known[][2] = {
        {"&amp;", "&"},    {"&lt;", "<"},    {"&gt;", ">"},    {"&quot;", "\""},  {"&apos;", "'"},
        {"&nbsp;", " "},   {"&ndash;", "–"}, {"&mdash;", "—"}, {"&hellip;", "…"}, {"&times;", "×"},
        {"&plusmn;", "±"}, {"&deg;", "°"},   {"&euro;", "€"},  {"&pound;", "£"},  {"&rarr;", "→"},
        {"&larr;", "←"},   {"&le;", "≤"},    {"&ge;", "≥"},    {"&ne;", "≠"},     {"&approx;", "≈"},
        {"&middot;", "·"}, {"&bull;", "•"},  {"&copy;", "©"},  {"&micro;", "µ"},  {"&sum;", "∑"},
    };

    for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (strlen(known[i][0]) == len && memcmp(known[i][0], text, len) == 0) {
            rich_add_text(r, style, known[i][1]);
            return;
        }
    }
    if (len > 3 && len < 16 && text[1] == '#') {
        char number[16];
        bool hex = text[2] == 'x' || text[2] == 'X';
        memcpy(number, text + 2 + hex, len - 2 - hex);
        number[len - 2 - hex] = '\0';
        add_code_point(r, style, strtoul(number, NULL, hex ? 16 : 10));
        return;
    }
    rich_add(r, style, text, len);
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *ctx)
{
    struct page *g = ctx;
    struct rich *r = target(g);

    if (g->code)
        buf_add(&g->code_text, text, size);
    else if (type == MD_TEXT_BR)
        rich_add_text(r, 0, "\n");
    else if (type == MD_TEXT_SOFTBR)
        rich_add_text(r, style_now(g), " ");
    else if (type == MD_TEXT_NULLCHAR)
        rich_add_text(r, 0, UTF8_REPLACEMENT);
    else if (type == MD_TEXT_ENTITY)
        add_entity(r, style_now(g), text, size);
    else
        rich_add(r, style_now(g), text, size);
    return 0;
}

/* ---- a whole text ---- */

static void page_done(struct page *g)
{
    for (unsigned i = 0; i < g->n_links && i < LINK_DEPTH; i++)
        free(g->links[i].address);
    rich_done(&g->inline_text);
    buf_done(&g->code_text);
    table_done(&g->table);
}

/* What is no Markdown for us: in lines, as it is. */
static void write_plain(const struct paper *p, const char *text, size_t len, struct buf *out)
{
    struct page g = {.paper = p, .out = out};
    struct rich r = {0};

    rich_add(&r, 0, text, len);
    write_text(&g, &r);
    rich_done(&r);
}

void markdown_render(const struct paper *p, const char *text, size_t len, struct buf *out)
{
    static const MD_PARSER parser = {
        .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_NOHTML,
        .enter_block = on_enter_block,
        .leave_block = on_leave_block,
        .enter_span = on_enter_span,
        .leave_span = on_leave_span,
        .text = on_text,
    };
    struct sanitiser s = {.no_colours = true};
    cleanup_buf struct buf clean = {0}, wide = {0};
    struct page g = {.paper = p, .out = out};
    size_t before = out->len;

    sanitise(&s, text, len, &clean);
    if (clean.len <= RENDERED_MAX)
        flow_widen(clean.data, clean.len, &wide);
    if (clean.len > RENDERED_MAX || md_parse(buf_text(&wide), (MD_SIZE)wide.len, &parser, &g)) {
        out->len = before;
        write_plain(p, clean.data, clean.len, out);
    }
    page_done(&g);
}
