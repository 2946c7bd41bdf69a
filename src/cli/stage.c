/* stage: see stage.h.
 *
 * Everything that is shown is made in `ink` and handed to the outlet at the end of each call. Invariants:
 *  1. Between calls the cursor is at the beginning of a line, unless a guest's line is not finished (gutter).
 *  2. What a model or a box says goes through term/ (rich, gutter, drawn_check), never straight to the outlet.
 */
#include "cli/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/parts.h"
#include "session/words.h"
#include "term/gutter.h"
#include "term/highlight.h"
#include "term/markdown.h"
#include "term/picture.h"
#include "term/progress.h"
#include "term/rich.h"
#include "term/term.h"
#include "term/traceback.h"
#include "wire/proto.h"

#define HEADER_COLUMNS 72u
#define CODE_PREFIX "  "
#define OUTPUT_PREFIX "│ "
#define PICTURE_PREFIX "  "
#define PICTURE_COLUMNS 100u
#define FILES_SHOWN 20u
#define NAME_SHOWN 300   /* bytes of a guest's file name */
#define LINES_SHOWN 300u /* of one cell's text, as it comes; then the last of them */
#define LAST_LINES 12u
#define LAST_BYTES (16u << 10)

struct stage {
    struct agent_view view;
    struct outlet *out;
    bool quiet;
    int fd; /* where the work is shown */
    struct term term;
    struct buf ink;
    bool begun; /* there is something above */
    struct progress progress;

    /* the reply */
    struct buf said;
    struct flow flow;
    bool holding; /* it is not known yet whether what it says is the answer, which goes elsewhere */
    struct highlight code;
    struct buf code_text; /* of the call that is shown as it is written */
    bool code_begun, line_begun;
    unsigned call;

    /* the cell */
    struct gutter gutter;
    bool came_out; /* something */
    unsigned lines, lines_left_out;
    struct buf last; /* the end of what is left out */
};

/* ---- ink ---- */

static struct paper paper_of(const struct stage *s)
{
    return (struct paper){.columns = s->term.columns, .colours = s->term.colours};
}

static void flush(struct stage *s)
{
    outlet_put(s->out, s->fd, s->ink.data, s->ink.len);
    s->ink.len = 0;
}

/* Something else begins: an empty line before it. */
static void section(struct stage *s)
{
    gutter_end(&s->gutter, &s->term, &s->ink);
    if (s->begun)
        buf_add_text(&s->ink, "\n");
    s->begun = true;
}

static void draw_progress(struct stage *s)
{
    cleanup_buf struct buf line = {0};
    const struct buf *tail = s->code_begun ? &s->code.pending : &s->flow.pending;

    if (s->quiet || !s->term.moves || !s->progress.what || s->gutter.midline)
        return;
    term_measure(&s->term, s->fd);
    progress_line(&s->progress, &s->term, clock_now_ms(), tail->data, tail->len, &line);
    outlet_transient(s->out, s->fd, line.data, line.len);
}

static void wait_for(struct stage *s, const char *what)
{
    progress_begin(&s->progress, what, clock_now_ms());
    draw_progress(s);
}

static void wait_no_more(struct stage *s)
{
    progress_stop(&s->progress);
    outlet_transient(s->out, s->fd, "", 0);
}

/* Words in one style, in lines behind a prefix of blanks. */
static void say_lines(struct stage *s, unsigned style, const char *prefix, const char *text)
{
    cleanup_rich struct rich r = {0};

    rich_add_text(&r, style, text);
    for (size_t at = 0, end, next; at < r.text.len; at = next) {
        next = rich_wrap(&r, at, s->term.columns - (unsigned)strlen(prefix), &end);
        buf_add_text(&s->ink, prefix);
        rich_write(&r, at, end, s->term.colours, &s->ink);
        buf_add_text(&s->ink, "\n");
    }
}

/* A sentence of ours about the conversation, in which others may have words. */
static void aside(struct stage *s, const char *text)
{
    struct sanitiser clean = {.no_colours = true};
    cleanup_buf struct buf harmless = {0};

    sanitise(&clean, text, strlen(text), &harmless);
    section(s);
    say_lines(s, STYLE_DIM, "", buf_text(&harmless));
}

/* ---- what the model says ---- */

static void show_blocks(struct stage *s, const struct buf *blocks)
{
    struct paper paper = paper_of(s);
    cleanup_buf struct buf rendered = {0};

    markdown_render(&paper, blocks->data, blocks->len, &rendered);
    if (rendered.len == 0)
        return;
    section(s);
    buf_add(&s->ink, rendered.data, rendered.len);
}

static void end_text(struct stage *s)
{
    cleanup_buf struct buf rest = {0};

    s->holding = false;
    flow_end(&s->flow, &rest);
    show_blocks(s, &rest);
}

static void end_code(struct stage *s)
{
    highlight_end(&s->code);
    s->code_begun = s->line_begun = false;
}

static void forget_reply(struct stage *s)
{
    s->said.len = s->code_text.len = 0;
    s->holding = !s->out->tty[1];
}

static void on_asking(void *ctx)
{
    struct stage *s = ctx;

    if (s->quiet)
        return;
    end_text(s);
    end_code(s);
    forget_reply(s);
    flush(s);
    wait_for(s, "thinking");
}

static void on_text(void *ctx, const char *text, size_t len)
{
    struct stage *s = ctx;
    cleanup_buf struct buf whole = {0};

    if (s->quiet)
        return;
    buf_add(&s->said, text, len);
    if (s->holding) {
        buf_add(&s->flow.pending, text, len);
    } else {
        flow_feed(&s->flow, text, len, &whole);
        show_blocks(s, &whole);
        flush(s);
    }
    wait_for(s, "writing");
}

/* ---- code ---- */

static void show_header(struct stage *s)
{
    cleanup_buf struct buf line = {0};
    unsigned width = s->term.columns < HEADER_COLUMNS ? s->term.columns : HEADER_COLUMNS;

    section(s);
    buf_add_text(&line, "── python ");
    for (unsigned i = 10; i < width; i++)
        buf_add_text(&line, "─");
    buf_add_text(&line, "\n");
    rich_say(STYLE_DIM, buf_text(&line), s->term.colours, &s->ink);
}

static void on_code_line(void *ctx, const struct rich *line)
{
    struct stage *s = ctx;
    size_t at = 0, end;

    if (line->text.len == 0 && !s->line_begun)
        return; /* empty lines before the first */
    s->line_begun = true;
    do {
        size_t next = rich_chop(line, at, s->term.columns - strlen(CODE_PREFIX), &end);
        if (end > at)
            buf_add_text(&s->ink, CODE_PREFIX);
        rich_write(line, at, end, s->term.colours, &s->ink);
        buf_add_text(&s->ink, "\n");
        at = next;
    } while (at < line->text.len);
}

static void begin_code(struct stage *s)
{
    end_text(s);
    show_header(s);
    s->code_begun = true;
    s->line_begun = false;
}

static void on_code(void *ctx, unsigned call, const char *text, size_t len)
{
    struct stage *s = ctx;

    if (s->quiet)
        return;
    if (!s->code_begun && s->code_text.len == 0) {
        s->call = call;
        begin_code(s);
    }
    if (call == s->call) { /* others are shown when they run, above what comes out of them */
        buf_add(&s->code_text, text, len);
        highlight_feed(&s->code, text, len);
    }
    flush(s);
    wait_for(s, "writing code");
}

static void on_replied(void *ctx)
{
    struct stage *s = ctx;

    if (s->quiet)
        return;
    if (!s->holding)
        end_text(s);
    end_code(s);
    flush(s);
    wait_no_more(s);
}

static size_t trimmed(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    return len;
}

/* Has this code been seen: as that of a call, or as a block in the text? */
static bool was_shown(struct stage *s, const char *code)
{
    size_t len = trimmed(code, strlen(code));

    if (s->code_text.len > 0 && trimmed(s->code_text.data, s->code_text.len) == len &&
        memcmp(s->code_text.data, code, len) == 0)
        return true;
    return len > 0 && s->said.len > 0 && memmem(s->said.data, s->said.len, code, len);
}

static void on_running(void *ctx, const char *code)
{
    struct stage *s = ctx;

    if (s->quiet)
        return;
    if (s->holding)
        end_text(s);
    if (!was_shown(s, code)) {
        begin_code(s);
        highlight_feed(&s->code, code, strlen(code));
        end_code(s);
    }
    s->code_text.len = 0;
    s->came_out = false;
    s->lines = s->lines_left_out = 0;
    s->last.len = 0;
    flush(s);
    wait_for(s, "running");
}

static void on_again(void *ctx, const char *why, unsigned seconds)
{
    struct stage *s = ctx;
    bool shown = s->said.len > 0 || s->code_text.len > 0;
    cleanup_free char *line =
        xasprintf("↻ %s: asking again in %u s%s", why, seconds,
                  shown ? "; what stands above of this reply does not count" : "");

    if (s->quiet)
        return;
    s->holding = false;
    end_text(s);
    end_code(s);
    forget_reply(s);
    aside(s, line);
    flush(s);
    wait_for(s, "waiting");
}

/* ---- what comes out of a cell ---- */

/* An empty line between the code and what comes out of it. */
static void come_out(struct stage *s)
{
    if (!s->came_out)
        buf_add_text(&s->ink, "\n");
    s->came_out = true;
}

/* A line of ours about a cell. What a guest chose in it is harmless behind this. */
__attribute__((format(printf, 3, 4))) static void remark(struct stage *s, unsigned style,
                                                         const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        bug("out of memory");
    char *line = xcalloc(1, (size_t)n + 1);
    sanitise_name(text, line, (size_t)n + 1);
    come_out(s);
    gutter_end(&s->gutter, &s->term, &s->ink);
    say_lines(s, style, CODE_PREFIX, line);
    free(line);
    free(text);
}

static void keep_last(struct stage *s, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        s->lines_left_out += text[i] == '\n';
    buf_add(&s->last, text, len);
    if (s->last.len > 4 * LAST_BYTES)
        buf_drop(&s->last, s->last.len - LAST_BYTES);
}

/* Too much is counted, and its end kept. */
static void show_text(struct stage *s, unsigned style, const char *text, size_t len)
{
    size_t n = 0;

    come_out(s);
    while (n < len && s->lines < LINES_SHOWN)
        s->lines += text[n++] == '\n';
    gutter_feed(&s->gutter, &s->term, style, text, n, &s->ink);
    if (n < len)
        keep_last(s, text + n, len - n);
}

static void show_last(struct stage *s)
{
    size_t at = s->last.len;
    unsigned lines = 0;

    if (s->last.len == 0)
        return;
    for (; at > 0 && lines <= LAST_LINES; at--)
        lines += s->last.data[at - 1] == '\n';
    at += lines > LAST_LINES ? 1 : 0;
    unsigned shown = lines < LAST_LINES ? lines : LAST_LINES;
    if (s->lines_left_out > shown)
        remark(s, STYLE_DIM, "… %u lines are not shown …", s->lines_left_out - shown);
    gutter_feed(&s->gutter, &s->term, 0, s->last.data + at, s->last.len - at, &s->ink);
    s->last.len = 0;
}

static void on_output(void *ctx, enum output_kind kind, const char *text, size_t len)
{
    struct stage *s = ctx;

    if (s->quiet)
        return;
    show_text(s, kind == OUTPUT_STDERR ? STYLE_DIM : 0, text, len);
    flush(s);
}

static void show_picture(struct stage *s, const struct mime_part *image)
{
    char size[WORDS_SIZE];
    struct err e = {0};
    unsigned columns = s->term.columns - 4, rows = s->term.rows > 8 ? s->term.rows - 3 : 5;

    come_out(s);
    gutter_end(&s->gutter, &s->term, &s->ink);
    if (s->term.pictures == PICTURES_NONE)
        remark(s, STYLE_DIM, "picture: %s, %s", image->type, words_size(image->len, size));
    else if (picture_draw(&s->term, columns < PICTURE_COLUMNS ? columns : PICTURE_COLUMNS, rows,
                          PICTURE_PREFIX, image->data, image->len, &s->ink, &e) < 0)
        remark(s, STYLE_DIM, "picture: %s, %s (%s)", image->type, words_size(image->len, size),
               e.text);
}

static void on_display(void *ctx, const struct output *o)
{
    struct stage *s = ctx;
    const struct mime_part *image = part_picture(o), *text = part_text(o);

    if (s->quiet)
        return;
    term_measure(&s->term, s->fd);
    if (text && (!image || o->kind == OUTPUT_RESULT)) {
        gutter_end(&s->gutter, &s->term, &s->ink);
        show_text(s, 0, text->data, text->len);
        show_text(s, 0, "\n", 1);
    }
    if (image)
        show_picture(s, image);
    flush(s);
}

/* ---- the end of a cell ---- */

static void on_traceback_line(void *ctx, enum traceback_part part, const char *text, size_t len)
{
    struct stage *s = ctx;
    static const unsigned styles[] = {[TRACEBACK_FRAME] = STYLE_DIM,
                                      [TRACEBACK_HERE] = STYLE_RED,
                                      [TRACEBACK_MESSAGE] = STYLE_BOLD | STYLE_RED};

    come_out(s);
    gutter_feed(&s->gutter, &s->term, styles[part], text, len, &s->ink);
    gutter_end(&s->gutter, &s->term, &s->ink);
}

static void show_error(struct stage *s, const struct cell *c)
{
    const char *traceback = c->error.traceback;

    gutter_end(&s->gutter, &s->term, &s->ink);
    if (!c->error.name)
        return;
    if (traceback && *traceback) {
        traceback_lines(traceback, c->error.name, on_traceback_line, s);
        return;
    }
    cleanup_free char *line =
        xasprintf("%s: %s", c->error.name, c->error.value ? c->error.value : "");
    on_traceback_line(s, TRACEBACK_MESSAGE, line, strlen(line));
}

static void show_files(struct stage *s, const struct cell *c)
{
    char size[WORDS_SIZE], name[NAME_SHOWN];

    for (unsigned i = 0; i < c->n_files && i < FILES_SHOWN; i++) {
        const struct file_note *f = &c->files[i];
        sanitise_name(f->path, name, sizeof(name));
        if (f->change == FILE_DELETED)
            remark(s, STYLE_DIM, "deleted %s", name);
        else
            remark(s, STYLE_GREEN, "wrote %s  %s", name, words_size(f->size, size));
    }
    if (c->n_files > FILES_SHOWN)
        remark(s, STYLE_DIM, "and %u more files", c->n_files - FILES_SHOWN);
}

static void show_bounds(struct stage *s, const struct cell *c)
{
    char words[80], size[WORDS_SIZE];
    uint64_t dropped = c->truncated.stdout_bytes + c->truncated.stderr_bytes;

    if (c->limit.kind != LIMIT_KIND_NONE && c->limit.kind != LIMIT_KIND_OUTPUT) {
        words_limit(c, NULL, words, sizeof(words));
        remark(s, STYLE_RED, "%s%s reached", c->status == CELL_LIMIT ? "stopped: " : "", words);
    }
    if (c->status == CELL_INTERRUPTED)
        remark(s, STYLE_RED, "interrupted");
    if (dropped)
        remark(s, STYLE_DIM, "%s of output were left out", words_size(dropped, size));
    if (c->truncated.displays)
        remark(s, STYLE_DIM, "%" PRIu64 " displays were left out", c->truncated.displays);
}

static void on_ran(void *ctx, const struct cell *c)
{
    struct stage *s = ctx;

    if (s->quiet)
        return;
    show_last(s);
    show_error(s, c);
    show_bounds(s, c);
    if (!c->undone)
        show_files(s, c);
    else
        remark(s, STYLE_DIM, "undone: variables and files are what they were before");
    flush(s);
    wait_no_more(s);
}

/* ---- the rest ---- */

static void on_note(void *ctx, const char *sentence)
{
    struct stage *s = ctx;

    if (s->quiet)
        return;
    if (!s->holding)
        end_text(s);
    end_code(s);
    cleanup_free char *line = xasprintf("retort: %s", sentence);
    aside(s, line);
    flush(s);
}

static void on_tick(void *ctx)
{
    draw_progress(ctx);
}

static const struct agent_view views = {
    .asking = on_asking,
    .text = on_text,
    .code = on_code,
    .again = on_again,
    .replied = on_replied,
    .running = on_running,
    .output = on_output,
    .display = on_display,
    .ran = on_ran,
    .note = on_note,
    .tick = on_tick,
};
struct stage *stage_new(struct outlet *out, bool quiet)
{
    struct stage *s = xcalloc(1, sizeof(*s));

    s->out = out;
    s->quiet = quiet;
    s->fd = out->tty[1] ? 1 : 2;
    s->view = views;
    s->view.ctx = s;
    term_look(&s->term, s->fd);
    highlight_init(&s->code, on_code_line, s);
    gutter_init(&s->gutter, OUTPUT_PREFIX);
    return s;
}

void stage_free(struct stage *s)
{
    if (!s)
        return;
    wait_no_more(s);
    highlight_done(&s->code);
    flow_done(&s->flow);
    buf_done(&s->ink);
    buf_done(&s->said);
    buf_done(&s->code_text);
    buf_done(&s->last);
    free(s);
}

const struct agent_view *stage_view(struct stage *s)
{
    return &s->view;
}

/* For a pipe or a file: as it is written, without what only a terminal would understand. */
static void write_plain(struct stage *s, const char *text)
{
    struct sanitiser clean = {.no_colours = true};
    cleanup_buf struct buf out = {0};

    sanitise(&clean, text, strlen(text), &out);
    if (out.len > 0 && out.data[out.len - 1] != '\n')
        buf_add_text(&out, "\n");
    outlet_put(s->out, 1, out.data, out.len);
}

void stage_answer(struct stage *s, const char *text)
{
    wait_no_more(s);
    bool seen = s->out->tty[1] && s->said.len == strlen(text) &&
                memcmp(s->said.data, text, s->said.len) == 0;
    if (s->holding) { /* it is the answer, or a part of it */
        s->flow.pending.len = 0;
        s->holding = false;
    }
    end_text(s);
    end_code(s);
    if (s->out->tty[1] && !seen) {
        struct buf blocks = {.data = (char *)text, .len = strlen(text)};
        show_blocks(s, &blocks);
    }
    flush(s);
    if (!s->out->tty[1])
        write_plain(s, text);
    s->said.len = 0;
    s->begun = false; /* what is above the next one is not ours */
}
