/* output: see output.h. */
#include "session/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "session/cell.h"
#include "session/utf8.h"

void output_init(struct collector *c, uint64_t limit, uint64_t display_limit,
                 const struct output_sink *sink)
{
    if (limit > OUTPUT_HARD_LIMIT)
        limit = OUTPUT_HARD_LIMIT;
    *c = (struct collector){.limit = limit,
                            .display_limit = display_limit,
                            .sink = *sink,
                            .head_left = (size_t)(limit / 2),
                            .ring_size = (size_t)(limit - limit / 2)};
}

void output_done(struct collector *c)
{
    for (unsigned i = 0; i < c->n_outputs; i++)
        cell_output_done(&c->outputs[i]);
    for (unsigned i = 0; i < c->n_late; i++)
        cell_output_done(&c->late[i].output);
    free(c->outputs);
    free(c->late);
    free(c->ring);
    free(c->runs);
    buf_done(&c->open);
    *c = (struct collector){0};
}

bool output_begun(const struct collector *c)
{
    return output_written(c) > 0 || c->n_displays > 0;
}

uint64_t output_dropped(const struct collector *c)
{
    return c->dropped[0] + c->dropped[1];
}

uint64_t output_written(const struct collector *c)
{
    return c->written[0] + c->written[1];
}

/* ---- the list of outputs ---- */

static struct output *push(struct collector *c)
{
    if (c->n_outputs == c->cap_outputs) {
        c->cap_outputs = c->cap_outputs ? c->cap_outputs * 2 : 4;
        c->outputs = realloc(c->outputs, c->cap_outputs * sizeof(*c->outputs));
        if (!c->outputs)
            bug("out of memory (%u outputs)", c->cap_outputs);
    }
    struct output *o = &c->outputs[c->n_outputs++];
    *o = (struct output){0};
    return o;
}

/* The last text will not grow any more. */
static void seal(struct collector *c)
{
    if (!c->is_open)
        return;
    struct output *o = &c->outputs[c->n_outputs - 1];
    o->len = c->open.len;
    o->text = buf_steal(&c->open);
    c->is_open = false;
}

static bool grows(const struct collector *c, unsigned stream)
{
    return c->is_open && c->outputs[c->n_outputs - 1].kind == (enum output_kind)stream;
}

/* Add text that is valid by now, or is repaired on the way, to the last output of its stream. */
static void append(struct collector *c, unsigned stream, const char *text, size_t len)
{
    if (len == 0)
        return;
    if (!grows(c, stream)) {
        seal(c);
        push(c)->kind = (enum output_kind)stream;
        c->is_open = true;
    }
    size_t before = c->open.len;
    utf8_repair(&c->open, text, len);
    if (c->live)
        c->sink.text(c->sink.ctx, (enum output_kind)stream, c->open.data + before,
                     c->open.len - before);
}

/* ---- the head ---- */

/* How many bytes of the text fit into `room` once repaired, in whole characters; *ret_room is what
 * is left of the room. */
static size_t fitting(const char *text, size_t len, size_t room, size_t *ret_room)
{
    size_t at = 0, n;

    while (at < len) {
        size_t valid = utf8_valid(text + at, len - at);
        size_t fits = utf8_fit(text + at, valid, room);
        at += fits;
        room -= fits;
        if (fits < valid || at == len || room < strlen(UTF8_REPLACEMENT))
            break;
        utf8_next(text + at, len - at, &n);
        at += n;
        room -= strlen(UTF8_REPLACEMENT);
    }
    *ret_room = room;
    return at;
}

/* How many bytes the head took. */
static size_t add_to_head(struct collector *c, unsigned stream, const char *text, size_t len)
{
    if (!grows(c, stream)) {
        if (c->head_runs == HEAD_RUNS)
            return 0;
        c->head_runs++;
    }
    size_t taken = fitting(text, len, c->head_left, &c->head_left);
    append(c, stream, text, taken);
    return taken;
}

/* ---- the tail ---- */

static struct tail_run *run_at(const struct collector *c, unsigned i)
{
    return &c->runs[(c->first_run + i) % TAIL_RUNS];
}

/* Forget the oldest bytes up to position `to`. */
static void drop_to(struct collector *c, uint64_t to)
{
    while (c->first < to) {
        struct tail_run *r = run_at(c, 0);
        uint64_t until = r->end < to ? r->end : to;
        c->dropped[r->stream] += until - c->first;
        c->first = until;
        c->cut = until < r->end;
        if (!c->cut) {
            c->first_run = (c->first_run + 1) % TAIL_RUNS;
            c->n_runs--;
        }
    }
}

static void copy_in(struct collector *c, const char *data, size_t len)
{
    size_t at = (size_t)(c->end % c->ring_size);
    size_t part = len < c->ring_size - at ? len : c->ring_size - at;

    memcpy(c->ring + at, data, part);
    memcpy(c->ring, data + part, len - part);
    c->end += len;
}

static void add_to_tail(struct collector *c, unsigned stream, const char *data, size_t len)
{
    if (!c->ring) {
        c->ring = xcalloc(1, c->ring_size);
        c->runs = xcalloc(TAIL_RUNS, sizeof(*c->runs));
    }
    bool same = c->n_runs > 0 && run_at(c, c->n_runs - 1)->stream == stream;
    if (!same && c->n_runs == TAIL_RUNS)
        drop_to(c, run_at(c, 0)->end);
    if (len > c->ring_size) {
        size_t lost = len - c->ring_size;
        drop_to(c, c->end);
        c->dropped[stream] += lost;
        c->first = c->end += lost;
        c->cut = true;
        data += lost;
        len -= lost;
    } else if (c->end - c->first + len > c->ring_size) {
        drop_to(c, c->end + len - c->ring_size);
    }
    copy_in(c, data, len);
    if (c->n_runs > 0 && run_at(c, c->n_runs - 1)->stream == stream) {
        run_at(c, c->n_runs - 1)->end = c->end;
    } else {
        *run_at(c, c->n_runs) = (struct tail_run){.end = c->end, .stream = stream};
        c->n_runs++;
    }
}

static void add(struct collector *c, unsigned stream, const char *data, size_t len)
{
    size_t taken = c->ring ? 0 : add_to_head(c, stream, data, len);

    if (taken < len)
        add_to_tail(c, stream, data + taken, len - taken);
}

/* ---- text ---- */

/* Complete the character that was held back. Returns how many bytes that took. */
static size_t complete_held(struct collector *c, unsigned stream, const char *data, size_t len)
{
    char *held = c->held[stream];
    unsigned n = c->n_held[stream];
    size_t used = 0, good;

    while (n > 0 && used < len) {
        held[n] = data[used];
        enum utf8_kind kind = utf8_next(held, n + 1, &good);
        if (kind != UTF8_BROKEN) {
            n++;
            used++;
        }
        if (kind != UTF8_CUT) {
            add(c, stream, held, n);
            n = 0;
        }
    }
    c->n_held[stream] = n;
    return used;
}

void output_text(struct collector *c, unsigned stream, const char *data, size_t len)
{
    c->written[stream] += len;
    size_t used = complete_held(c, stream, data, len);
    data += used;
    len -= used;
    if (len == 0)
        return;
    size_t whole = utf8_whole(data, len);
    if (whole > 0)
        add(c, stream, data, whole);
    memcpy(c->held[stream], data + whole, len - whole);
    c->n_held[stream] = (unsigned)(len - whole);
}

/* ---- displays ---- */

/* How long a part becomes when it is told as JSON: a control character is six bytes there, and what is
 * not text goes as base64. */
static uint64_t as_json(const struct mime_part *p)
{
    uint64_t bytes = p->text ? p->len : p->len / 3 * 4;

    for (size_t i = 0; p->text && i < p->len; i++)
        bytes += (unsigned char)p->data[i] < 0x20 ? 5 : 0;
    return bytes;
}

static uint64_t weight(const struct output *o)
{
    uint64_t bytes = o->metadata ? strlen(o->metadata) : 0;

    for (unsigned i = 0; i < o->n_parts; i++)
        bytes += as_json(&o->parts[i]) + strlen(o->parts[i].type);
    return bytes;
}

static void push_late(struct collector *c, const struct output *o)
{
    if (c->n_late == c->cap_late) {
        c->cap_late = c->cap_late ? c->cap_late * 2 : 16;
        c->late = realloc(c->late, c->cap_late * sizeof(*c->late));
        if (!c->late)
            bug("out of memory (%u displays)", c->cap_late);
    }
    c->late[c->n_late++] = (struct late_display){.at = c->end, .output = *o};
}

void output_display(struct collector *c, struct output *o)
{
    uint64_t bytes = weight(o);

    if (c->n_displays >= OUTPUT_DISPLAYS || bytes > c->display_limit - c->display_bytes) {
        c->displays_dropped++;
        cell_output_done(o);
        return;
    }
    c->n_displays++;
    c->display_bytes += bytes;
    if (c->ring) {
        push_late(c, o);
    } else {
        seal(c);
        *push(c) = *o;
    }
    if (c->live)
        c->sink.display(c->sink.ctx, o);
    *o = (struct output){0};
}

void output_go_live(struct collector *c)
{
    c->live = true;
    for (unsigned i = 0; i < c->n_outputs; i++) {
        const struct output *o = &c->outputs[i];
        if (o->kind == OUTPUT_DISPLAY || o->kind == OUTPUT_RESULT)
            c->sink.display(c->sink.ctx, o);
        else if (o->text)
            c->sink.text(c->sink.ctx, o->kind, o->text, o->len);
        else
            c->sink.text(c->sink.ctx, o->kind, c->open.data, c->open.len);
    }
    for (unsigned i = 0; i < c->n_late; i++)
        c->sink.display(c->sink.ctx, &c->late[i].output);
}

/* ---- the end ---- */

/* The ring's bytes in one piece. */
static char *straighten(const struct collector *c)
{
    size_t len = (size_t)(c->end - c->first);
    size_t at = (size_t)(c->first % c->ring_size);
    size_t part = len < c->ring_size - at ? len : c->ring_size - at;
    char *text = xcalloc(1, len + 1);

    memcpy(text, c->ring + at, part);
    memcpy(text + part, c->ring, len - part);
    return text;
}

/* Where the tail may begin: not within a character, and so that it is not longer than its half of
 * the limit once broken bytes have become U+FFFD, which is longer than they are. */
static void trim_tail(struct collector *c, const char *text)
{
    uint64_t base = c->first, at = base;
    size_t total = 0, n;

    for (unsigned skip = 0; c->cut && skip < 3 && at < run_at(c, 0)->end; skip++, at++)
        if (((uint8_t)text[at - base] & 0xC0) != 0x80)
            break;
    uint64_t start = at;
    for (unsigned i = 0; i < c->n_runs; i++) {
        total += utf8_repaired_len(text + (start - base), (size_t)(run_at(c, i)->end - start));
        start = run_at(c, i)->end;
    }
    for (unsigned i = 0; i < c->n_runs && total > c->ring_size; i++) {
        while (at < run_at(c, i)->end && total > c->ring_size) {
            bool whole =
                utf8_next(text + (at - base), (size_t)(run_at(c, i)->end - at), &n) == UTF8_WHOLE;
            total -= whole ? n : strlen(UTF8_REPLACEMENT);
            at += n;
        }
    }
    drop_to(c, at);
}

/* Displays that stand at or before a position. Returns how many are out now. */
static unsigned push_displays(struct collector *c, unsigned i, uint64_t at)
{
    for (; i < c->n_late && c->late[i].at <= at; i++) {
        seal(c);
        *push(c) = c->late[i].output;
    }
    return i;
}

static void push_tail(struct collector *c)
{
    cleanup_free char *text = straighten(c);
    uint64_t base = c->first;
    unsigned shown = 0;

    trim_tail(c, text);
    /* Where something is missing, the head and the tail stay two outputs: the gap can be seen. */
    if (output_dropped(c) > 0)
        seal(c);
    uint64_t at = c->first;
    for (unsigned i = 0; i < c->n_runs; i++) {
        const struct tail_run *r = run_at(c, i);
        while (at < r->end) {
            shown = push_displays(c, shown, at);
            uint64_t until = r->end;
            if (shown < c->n_late && c->late[shown].at < until)
                until = c->late[shown].at;
            append(c, r->stream, text + (at - base), (size_t)(until - at));
            at = until;
        }
    }
    push_displays(c, shown, UINT64_MAX);
    c->n_late = 0;
}

void output_finish(struct collector *c, struct cell *cell)
{
    for (unsigned stream = 0; stream < 2; stream++) {
        if (c->n_held[stream] > 0)
            add(c, stream, c->held[stream], c->n_held[stream]);
        c->n_held[stream] = 0;
    }
    if (c->ring)
        push_tail(c);
    seal(c);
    cell->outputs = c->outputs;
    cell->n_outputs = c->n_outputs;
    c->outputs = NULL;
    c->n_outputs = 0;
    cell->truncated.stdout_bytes = c->dropped[OUTPUT_STDOUT];
    cell->truncated.stderr_bytes = c->dropped[OUTPUT_STDERR];
    cell->truncated.displays = c->displays_dropped;
    output_done(c);
}
