/* progress: see progress.h. */
#include "term/progress.h"

#include <string.h>

#include "session/utf8.h"
#include "term/width.h"

#define FRAME_MS 100
#define TAIL_BYTES 400

void progress_begin(struct progress *p, const char *what, int64_t now_ms)
{
    if (!p->what || strcmp(p->what, what) != 0)
        *p = (struct progress){.since_ms = now_ms, .what = what};
}

void progress_stop(struct progress *p)
{
    p->what = NULL;
}

static void add_seconds(struct rich *line, int64_t ms)
{
    cleanup_buf struct buf b = {0};

    if (ms >= 60000)
        buf_add_fmt(&b, "  %lld min %02lld s", (long long)ms / 60000, (long long)ms / 1000 % 60);
    else if (ms >= 1000)
        buf_add_fmt(&b, "  %lld s", (long long)ms / 1000);
    rich_add(line, STYLE_DIM, b.data, b.len);
}

/* The last line of the text that is not empty, or as much of its end as there is room for. */
static void add_tail(struct rich *line, const char *text, size_t len, unsigned room)
{
    struct rich all = {0};
    size_t n, from;

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    const char *newline = len ? memrchr(text, '\n', len) : NULL;
    from = newline ? (size_t)(newline + 1 - text) : 0;
    if (len - from > TAIL_BYTES) {
        from = len - TAIL_BYTES;
        while (from < len && ((unsigned char)text[from] & 0xc0) == 0x80)
            from++;
    }
    rich_add(&all, STYLE_DIM, text + from, utf8_whole(text + from, len - from));
    unsigned width = rich_width(&all, 0, all.text.len);
    size_t at = 0;
    for (; width > room && at < all.text.len; at += n) {
        utf8_next(all.text.data + at, all.text.len - at, &n);
        width -= (unsigned)width_of(width_decode(all.text.data + at, n));
    }
    if (at < all.text.len) {
        rich_add_text(line, STYLE_DIM, at > 0 ? "  …" : "  ");
        rich_add(line, STYLE_DIM, all.text.data + at, all.text.len - at);
    }
    rich_done(&all);
}

void progress_line(const struct progress *p, const struct term *t, int64_t now_ms, const char *tail,
                   size_t len, struct buf *out)
{
    static const char *const frames[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    int64_t ms = now_ms > p->since_ms ? now_ms - p->since_ms : 0;
    cleanup_rich struct rich line = {0};
    size_t end;

    rich_add_text(&line, STYLE_CYAN, frames[ms / FRAME_MS % 10]);
    rich_add_text(&line, 0, " ");
    rich_add_text(&line, STYLE_DIM, p->what);
    add_seconds(&line, ms);
    unsigned taken = rich_width(&line, 0, line.text.len) + 4;
    if (len > 0 && t->columns > taken + 10)
        add_tail(&line, tail, len, t->columns - taken);
    rich_chop(&line, 0, t->columns - 1, &end);
    rich_write(&line, 0, end, t->colours, out);
}
