/* flow: Markdown in pieces; see markdown.h.
 *
 * A block is whole at an empty line, unless that lies in a fenced block of code, or the next line belongs to it all
 * the same: it is indented, or it is one more item of a list. So the first line of the next block is waited for. What
 * this gets wrong (a list that another follows at once) looks right all the same.
 */
#include <ctype.h>
#include <string.h>

#include "term/markdown.h"

static size_t count(const char *line, size_t len, char c)
{
    size_t n = 0;

    while (n < len && line[n] == c)
        n++;
    return n;
}

static bool is_item(const char *line, size_t len)
{
    size_t digits = 0;

    while (digits < len && digits < 9 && isdigit((unsigned char)line[digits]))
        digits++;
    if (digits > 0)
        return digits + 1 < len && (line[digits] == '.' || line[digits] == ')') &&
               line[digits + 1] == ' ';
    return len > 1 && strchr("-*+", line[0]) && line[1] == ' ';
}

/* Fences within lists and quotes count too. */
static void watch_fence(struct flow *f, const char *line, size_t len)
{
    size_t at = 0;

    while (at < len && (line[at] == ' ' || line[at] == '>' || line[at] == '\t'))
        at++;
    if (!f->fence && is_item(line + at, len - at))
        at = (size_t)((const char *)memchr(line + at, ' ', len - at) - line) + 1;
    char c = at < len ? line[at] : '\0';
    size_t n = c == '`' || c == '~' ? count(line + at, len - at, c) : 0;
    if (!f->fence && n >= 3 && (c == '~' || !memchr(line + at + n, '`', len - at - n))) {
        f->fence = c;
        f->fence_len = n;
    } else if (f->fence && c == f->fence && n >= f->fence_len &&
               count(line + at + n, len - at - n, ' ') == len - at - n) {
        f->fence = '\0';
    }
}

/* ---- the rules of tables ---- */

/* "|-|:-:|" and the like, below a line that has columns too. */
static bool is_table_rule(const char *line, size_t len, bool columns_above)
{
    size_t known = 0;

    while (known < len && strchr("|:- \t\r", line[known]))
        known++;
    return columns_above && known == len && memchr(line, '-', len) && memchr(line, '|', len);
}

static void widen_rule(const char *line, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len; i++) {
        buf_add(out, line + i, 1);
        if (line[i] == '-' && (i + 1 == len || line[i + 1] != '-'))
            buf_add_text(out, "--");
    }
}

void flow_widen(const char *text, size_t len, struct buf *out)
{
    struct flow f = {0};
    bool columns = false;

    for (size_t n; len > 0; text += n, len -= n) {
        const char *newline = memchr(text, '\n', len);
        size_t line = newline ? (size_t)(newline - text) : len;
        n = line + (newline != NULL);
        watch_fence(&f, text, line);
        if (!f.fence && is_table_rule(text, line, columns))
            widen_rule(text, line, out);
        else
            buf_add(out, text, line);
        buf_add(out, "\n", n - line);
        columns = memchr(text, '|', line) != NULL;
    }
}

/* ---- blocks ---- */

/* Does a block end before this line? */
static bool begins_block(const struct flow *f, const char *line, size_t len)
{
    return f->blank && !f->fence && line[0] != ' ' && line[0] != '\t' &&
           !(f->list && is_item(line, len));
}

static void take(struct flow *f, size_t upto, struct buf *whole)
{
    buf_add(whole, f->pending.data, upto);
    buf_drop(&f->pending, upto);
    f->seen = 0;
}

/* A line that is whole; true: a block was taken out before it. */
static void see_line(struct flow *f, size_t len, struct buf *whole)
{
    const char *line = f->pending.data + f->seen;
    bool blank = count(line, len, ' ') == len;

    if (!blank && begins_block(f, line, len)) {
        take(f, f->seen, whole);
        line = f->pending.data;
        f->list = false;
    }
    if (!blank && !f->fence && f->seen == 0)
        f->list = is_item(line, len);
    watch_fence(f, line, len);
    f->blank = blank;
    f->seen += len + 1;
}

void flow_feed(struct flow *f, const char *text, size_t len, struct buf *whole)
{
    buf_add(&f->pending, text, len);
    for (const char *from, *newline; f->seen < f->pending.len;) {
        from = f->pending.data + f->seen;
        newline = memchr(from, '\n', f->pending.len - f->seen);
        if (!newline)
            break;
        see_line(f, (size_t)(newline - from), whole);
    }
}

void flow_end(struct flow *f, struct buf *whole)
{
    take(f, f->pending.len, whole);
    *f = (struct flow){.pending = f->pending};
}

void flow_done(struct flow *f)
{
    buf_done(&f->pending);
    *f = (struct flow){0};
}
