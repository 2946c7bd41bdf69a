/* summary: see summary.h.
 *
 * A cell becomes a list of items, each a line or a block. What must be there (files, the error, how it ended)
 * is measured first; what the budget leaves is shared out among the outputs: small ones are whole, large ones
 * get equal parts, and where even those would be crumbs the outputs in the middle go, and are counted.
 */
#include "session/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "session/cell.h"
#include "session/parts.h"
#include "session/sanitise.h"
#include "session/utf8.h"
#include "session/words.h"
#include "wire/proto.h"

#define ENDS 32                   /* outputs from each end that are looked at */
#define CRUMB 200                 /* bytes: of less than this of an output nothing can be read */
#define LOOKED_AT 16              /* times the budget: more of one text is not even read */
#define LOOKED_AT_MOST (8u << 20) /* bytes of all together */
#define FENCE_MAX 16
#define FILES_SHOWN 40 /* and about an eighth of the budget */
#define NAME_SHOWN 200 /* bytes of a file's name */
#define LABEL_SPARE 80 /* "(the first 1234 and last 1234 of 12345678 bytes)" */
#define MARK_SPARE 40  /* "[… 12345678 bytes left out …]" */

struct item {
    char label[160];
    struct buf text;  /* cleaned; empty: the label is all */
    size_t dropped;   /* bytes of it that were not even read */
    size_t fence;     /* backticks */
    size_t share;     /* bytes of the text that are shown */
    unsigned outputs; /* that would be gone with it */
    bool error;       /* its end is what matters */
};

struct list {
    struct item *items;
    unsigned n;
};

/* ---- text ---- */

/* A line is what a terminal would show of it: after a return it is written anew, and a backspace takes a
 * character back. */
static void write_over(struct buf *b)
{
    size_t line = 0, n = 0;
    bool returned = false;

    for (size_t i = 0; i < b->len; i++) {
        char c = b->data[i];
        if (c == '\r') {
            returned = true;
            continue;
        }
        if (c == '\b') {
            while (n > line && ((unsigned char)b->data[--n] & 0xC0) == 0x80)
                ;
            continue;
        }
        if (c == '\n')
            line = n + 1;
        else if (returned)
            n = line;
        returned = false;
        b->data[n++] = c;
    }
    b->len = n;
}

/* The guest's text without what is not text. */
static void clean(struct buf *ret, const char *text, size_t len)
{
    struct sanitiser s = {.no_colours = true};
    cleanup_buf struct buf harmless = {0};

    sanitise(&s, text, len, &harmless);
    utf8_repair(ret, harmless.data, harmless.len);
    write_over(ret);
    while (ret->len && (ret->data[ret->len - 1] == '\n' || ret->data[ret->len - 1] == ' '))
        ret->len--;
}

static size_t longest_run(const struct buf *b, char of)
{
    size_t longest = 0, run = 0;

    for (size_t i = 0; i < b->len; i++) {
        run = b->data[i] == of ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* A text so long is told by its ends. */
static void take_text(struct item *it, const char *text, size_t len, size_t look)
{
    size_t end = look / 2;

    if (len <= look + 1) {
        clean(&it->text, text, len);
    } else {
        it->dropped = len - 2 * end - 1;
        clean(&it->text, text, end);
        buf_add(&it->text, "\n", 1); /* in the place of the one */
        cleanup_buf struct buf tail = {0};
        clean(&tail, text + len - end, end);
        buf_add(&it->text, tail.data, tail.len);
    }
    /* A fence that is as long as a text of nothing but backticks would be the summary. */
    if (longest_run(&it->text, '`') > FENCE_MAX)
        for (size_t i = 0; i < it->text.len; i++)
            it->text.data[i] = it->text.data[i] == '`' ? '\'' : it->text.data[i];
    size_t run = longest_run(&it->text, '`');
    it->fence = run < 3 ? 3 : run + 1;
}

/* ---- items ---- */

static struct item *add(struct list *l)
{
    l->items = realloc(l->items, (l->n + 1) * sizeof(*l->items));
    assert_that(l->items);
    l->items[l->n] = (struct item){0};
    return &l->items[l->n++];
}

static struct item *add_label(struct list *l, const char *label)
{
    struct item *it = add(l);

    snprintf(it->label, sizeof(it->label), "%s", label);
    return it;
}

/* The type is the guest's word: what no type has becomes '?'. */
static char *type_words(const char *type, char *ret, size_t size)
{
    size_t i = 0;

    for (; type[i] && i + 1 < size; i++) {
        bool usual = (type[i] >= 'a' && type[i] <= 'z') || (type[i] >= 'A' && type[i] <= 'Z') ||
                     (type[i] >= '0' && type[i] <= '9') || strchr("/.+-", type[i]);
        ret[i] = usual ? type[i] : '?';
    }
    ret[i] = '\0';
    return ret;
}

static void add_picture(struct list *l, const struct mime_part *p, unsigned number)
{
    char type[40], bytes[WORDS_SIZE], pixels[40] = "";
    unsigned w, h;
    struct item *it = add(l);

    if (part_picture_size(p, &w, &h))
        snprintf(pixels, sizeof(pixels), "%u × %u pixels, ", w, h);
    snprintf(it->label, sizeof(it->label), "picture %u: %s, %s%s", number,
             type_words(p->type, type, sizeof(type)), pixels, words_size(p->len, bytes));
}

static void add_other(struct list *l, const struct output *o)
{
    char type[40], bytes[WORDS_SIZE];

    if (!o->n_parts)
        return;
    struct item *it = add(l);
    snprintf(it->label, sizeof(it->label), "display: %s, %s",
             type_words(o->parts[0].type, type, sizeof(type)), words_size(o->parts[0].len, bytes));
}

static void add_display(struct list *l, const struct output *o, unsigned *pictures, size_t look)
{
    const struct mime_part *picture = part_picture(o), *chart = part_find(o, CHART_TYPE),
                           *text = part_text(o);

    if (picture)
        add_picture(l, picture, ++*pictures);
    if (chart) /* few models see, and all can read */
        take_text(add_label(l, "chart"), chart->data, chart->len, look);
    /* Beside a picture the text of a display is "<Figure size 640x480 with 1 Axes>". */
    if (text && (o->kind == OUTPUT_RESULT || !picture))
        take_text(add_label(l, o->kind == OUTPUT_RESULT ? "result" : "display"), text->data,
                  text->len, look);
    if (!picture && !chart && !text)
        add_other(l, o);
}

static void add_parts(struct list *l, const struct output *o, unsigned *pictures, size_t look)
{
    if (o->kind == OUTPUT_DISPLAY || o->kind == OUTPUT_RESULT) {
        add_display(l, o, pictures, look);
        return;
    }
    struct item it = {0};
    take_text(&it, o->text, o->len, look);
    if (!it.text.len) {
        buf_done(&it.text);
        return;
    }
    snprintf(it.label, sizeof(it.label), "%s", output_kind_name(o->kind));
    *add(l) = it;
}

static void add_output(struct list *l, const struct output *o, unsigned *pictures, size_t look)
{
    unsigned first = l->n;

    add_parts(l, o, pictures, look);
    if (l->n > first)
        l->items[first].outputs = 1; /* of those that are told in several items */
}

static void add_outputs(struct list *l, const struct cell *c, size_t look)
{
    unsigned pictures = 0;

    for (unsigned i = 0; i < c->n_outputs; i++) {
        if (c->n_outputs > 2 * ENDS && i == ENDS) {
            struct item *it = add(l);
            unsigned skipped = it->outputs = c->n_outputs - 2 * ENDS;
            snprintf(it->label, sizeof(it->label), "(%u outputs left out here)", skipped);
            for (; skipped; skipped--, i++)
                pictures += part_picture(&c->outputs[i]) != NULL;
        }
        add_output(l, &c->outputs[i], &pictures, look);
    }
}

/* ---- what must be there ---- */

static void add_files(struct list *l, const struct cell *c, size_t budget)
{
    cleanup_buf struct buf names = {0};
    unsigned i = 0;

    if (!c->n_files)
        return;
    for (; i < c->n_files && i < FILES_SHOWN && names.len < budget / 8; i++) {
        const struct file_note *f = &c->files[i];
        char name[NAME_SHOWN], bytes[WORDS_SIZE];
        sanitise_name(f->path, name, budget / 16 < sizeof(name) ? budget / 16 : sizeof(name));
        if (f->change == FILE_DELETED)
            buf_add_fmt(&names, "deleted %s\n", name);
        else
            buf_add_fmt(&names, "%s %s (%s)\n", file_change_name(f->change), name,
                        words_size(f->size, bytes));
    }
    struct item *it = add_label(l, "files");
    if (i < c->n_files)
        snprintf(it->label, sizeof(it->label), "files (%u of %u)", i, c->n_files);
    take_text(it, names.data, names.len, names.len);
}

static void add_error(struct list *l, const struct cell *c, size_t look)
{
    cleanup_buf struct buf text = {0};

    if (!c->error.name || c->status == CELL_CRASHED)
        return;
    /* Of one that left there is no traceback but its status. */
    bool has_traceback = c->error.traceback && *c->error.traceback &&
                         !(c->error.value && strcmp(c->error.traceback, c->error.value) == 0);
    if (has_traceback)
        buf_add_text(&text, c->error.traceback);
    else
        buf_add_fmt(&text, "%s: %s", c->error.name, c->error.value ? c->error.value : "");
    struct item *it = add_label(l, "error");
    it->error = true;
    take_text(it, text.data, text.len, look);
}

static void add_truncated(struct list *l, const struct cell *c)
{
    const struct {
        uint64_t n;
        const char *of;
    } lost[] = {{c->truncated.stdout_bytes, "bytes of stdout"},
                {c->truncated.stderr_bytes, "bytes of stderr"},
                {c->truncated.displays, "displays"}};
    char text[sizeof(l->items->label)];
    int n = snprintf(text, sizeof(text), "note: lost beyond the output limit:");
    int empty = n;

    for (unsigned i = 0; i < 3; i++)
        if (lost[i].n)
            n += snprintf(text + n, sizeof(text) - (size_t)n, "%s %llu %s", n > empty ? "," : "",
                          (unsigned long long)lost[i].n, lost[i].of);
    if (n > empty)
        add_label(l, text);
}

static void add_end(struct list *l, const struct cell *c)
{
    char limit[80];

    if (c->limit.kind != LIMIT_KIND_NONE && c->limit.kind != LIMIT_KIND_OUTPUT) {
        words_limit(c, NULL, limit, sizeof(limit));
        struct item *it = add(l);
        snprintf(it->label, sizeof(it->label), "%s: the %s was reached",
                 c->status == CELL_LIMIT ? "stopped" : "note", limit);
    }
    if (c->status == CELL_INTERRUPTED)
        add_label(l, "stopped: the cell was interrupted");
    if (c->status == CELL_CRASHED) {
        take_text(add_label(l, "crashed"), c->error.value ? c->error.value : "",
                  c->error.value ? strlen(c->error.value) : 0, SUMMARY_MIN);
    }
    if (c->restored) {
        struct item *it = add(l);
        snprintf(it->label, sizeof(it->label),
                 "note: variables are as they were after cell %u; files %s", c->restored_to,
                 c->undone ? "too" : "are as the cell left them");
    } else if (c->session_ended) {
        add_label(l, "note: the session has ended, and its variables are gone");
    }
}

/* ---- sharing out ---- */

/* What an item takes beside its text. */
static size_t frame_of(const struct item *it)
{
    if (!it->text.len)
        return strlen(it->label) + 1;
    return strlen(it->label) + 2 + 2 * (it->fence + 1) + 1;
}

/* As shown whole, or with room for what says that it is not. */
static size_t cost(const struct item *it)
{
    bool cut = it->share < it->text.len || it->dropped;

    return frame_of(it) + it->share + (cut ? LABEL_SPARE + MARK_SPARE : 0);
}

static size_t cost_of_all(const struct list *l)
{
    size_t sum = 0;

    for (unsigned i = 0; i < l->n; i++)
        sum += cost(&l->items[i]);
    return sum;
}

static void share_at_most(struct list *l, size_t most)
{
    for (unsigned i = 0; i < l->n; i++)
        l->items[i].share = l->items[i].text.len < most ? l->items[i].text.len : most;
}

/* The largest part that each may have. */
static size_t fair_share(struct list *l, size_t room)
{
    size_t low = 0, high = room + 1;

    share_at_most(l, SIZE_MAX);
    if (cost_of_all(l) <= room) /* what is whole needs no words that say it is not */
        return SIZE_MAX;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        share_at_most(l, middle);
        if (cost_of_all(l) <= room)
            low = middle;
        else
            high = middle;
    }
    share_at_most(l, low);
    return low;
}

static bool all_fit(const struct list *l, size_t room, size_t share)
{
    if (cost_of_all(l) > room)
        return false;
    for (unsigned i = 0; i < l->n; i++)
        if (l->items[i].share < l->items[i].text.len && share < CRUMB)
            return false;
    return true;
}

static void remove_item(struct list *l, unsigned at)
{
    buf_done(&l->items[at].text);
    memmove(&l->items[at], &l->items[at + 1], (l->n - at - 1) * sizeof(*l->items));
    l->n--;
}

/* Make the outputs fit. */
static void share_out(struct list *l, size_t room)
{
    unsigned removed = 0, gone = 0, at = 0;

    for (;;) {
        size_t share = fair_share(l, room);
        if (all_fit(l, room, share) || l->n <= (removed ? 1u : 0u))
            return;
        if (!removed) { /* one gives its place to the note */
            at = l->n / 2;
            gone = l->items[at].outputs;
            buf_done(&l->items[at].text);
            l->items[at].dropped = 0;
        } else {
            unsigned victim = at + 1 < l->n && (at == 0 || l->n - at - 1 >= at) ? at + 1 : at - 1;
            gone += l->items[victim].outputs;
            remove_item(l, victim);
            at -= victim < at;
        }
        removed++;
        snprintf(l->items[at].label, sizeof(l->items[at].label),
                 "(%u outputs left out here: they do not fit)", gone);
    }
}

/* What must be there has at least half, and what the outputs do not need. */
static void share_what_must_be(struct list *must, struct list *outputs, size_t budget)
{
    share_at_most(outputs, SIZE_MAX);
    share_at_most(must, 0);
    size_t wanted = cost_of_all(outputs), least = cost_of_all(must);
    size_t room = wanted < budget / 2 ? budget - wanted : budget - budget / 2;

    assert_that(least <= budget); /* labels are short, and SUMMARY_MIN is not less */
    fair_share(must, room < least ? least : room);
}

/* ---- writing ---- */

/* Of a line's end within reach: a cut there reads better. */
static size_t to_line_end(const struct buf *b, size_t at, size_t reach)
{
    for (size_t i = at; i > 0 && at - i < reach; i--)
        if (b->data[i - 1] == '\n')
            return i;
    return at;
}

static size_t to_line_start(const struct buf *b, size_t at, size_t reach)
{
    for (size_t i = at; i < b->len && i - at < reach; i++)
        if (i == 0 || b->data[i - 1] == '\n')
            return i;
    while (at < b->len && ((unsigned char)b->data[at] & 0xC0) == 0x80)
        at++;
    return at;
}

static void write_block(struct buf *out, const struct item *it)
{
    bool error = it->error;
    const struct buf *t = &it->text;
    bool whole = it->share == t->len && !it->dropped;
    size_t head = t->len, tail = 0;

    if (!whole) { /* of an error the end is what matters, of text both */
        head = it->share / (error ? 4 : 2);
        head = to_line_end(t, utf8_fit(t->data, t->len, head), head / 4);
        size_t start = t->len - (it->share - it->share / (error ? 4 : 2));
        start = to_line_start(t, start < head ? head : start, it->share / 8);
        tail = t->len - start;
        buf_add_fmt(out, "%s (the first %zu and last %zu of %zu bytes):\n", it->label, head, tail,
                    t->len + it->dropped);
    } else {
        buf_add_fmt(out, "%s:\n", it->label);
    }
    cleanup_buf struct buf fence = {0};
    memset(buf_room(&fence, it->fence), '`', it->fence);
    buf_add(out, fence.data, it->fence);
    buf_add(out, "\n", 1);
    buf_add(out, t->data, head);
    if (!whole) {
        if (head && t->data[head - 1] != '\n')
            buf_add(out, "\n", 1);
        buf_add_fmt(out, "[… %zu bytes left out …]\n", t->len - head - tail + it->dropped);
        buf_add(out, t->data + t->len - tail, tail);
    }
    buf_add(out, "\n", 1);
    buf_add(out, fence.data, it->fence);
    buf_add(out, "\n", 1);
}

static void write_items(struct buf *out, const struct list *l)
{
    for (unsigned i = 0; i < l->n; i++) {
        const struct item *it = &l->items[i];
        if (it->text.len)
            write_block(out, it);
        else
            buf_add_fmt(out, "%s\n", it->label);
    }
}

static void list_done(struct list *l)
{
    for (unsigned i = 0; i < l->n; i++)
        buf_done(&l->items[i].text);
    free(l->items);
}

/* Bytes of each text. A server makes summaries between its other answers: what it reads for one is bounded. */
static size_t to_look_at(const struct cell *c, size_t budget)
{
    size_t texts = 1 + (c->n_outputs < 2 * ENDS ? c->n_outputs : 2 * ENDS);
    size_t most = LOOKED_AT_MOST / texts;

    return LOOKED_AT * budget < most ? LOOKED_AT * budget : most;
}

char *cell_summary(const struct cell *c, size_t budget)
{
    struct list outputs = {0}, must = {0};
    struct buf out = {0};

    assert_that(budget >= SUMMARY_MIN && budget <= SUMMARY_MAX);
    size_t look = to_look_at(c, budget);
    add_outputs(&outputs, c, look);
    add_truncated(&must, c);
    add_files(&must, c, budget);
    add_error(&must, c, look);
    add_end(&must, c);
    if (!outputs.n && !must.n)
        add_label(&must, "ok, no output");
    share_what_must_be(&must, &outputs, budget);
    share_out(&outputs, budget - cost_of_all(&must));
    write_items(&out, &outputs);
    write_items(&out, &must);
    list_done(&outputs);
    list_done(&must);
    if (out.len && out.data[out.len - 1] == '\n')
        out.len--;
    buf_text(&out);
    return buf_steal(&out);
}
