/* blocks: see blocks.h. */
#include "agent/blocks.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"

struct fence {
    char kind;
    size_t length, indent;
    const char *info; /* what stands behind it */
    size_t info_len;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool blocks_blank(const char *text, size_t len)
{
    while (len > 0 && is_space(text[len - 1]))
        len--;
    return len == 0;
}

/* Bytes of the line that begins here, with its line feed. */
static size_t line_length(const char *text, size_t len)
{
    const char *lf = memchr(text, '\n', len);

    return lf ? (size_t)(lf - text) + 1 : len;
}

static bool read_fence(const char *line, size_t len, struct fence *ret)
{
    size_t at = 0, from;

    while (at < len && (line[at] == ' ' || line[at] == '\t'))
        at++;
    from = at;
    while (at < len && (line[at] == '`' || line[at] == '~') && line[at] == line[from])
        at++;
    if (at - from < 3)
        return false;
    *ret = (struct fence){.kind = line[from], .length = at - from, .indent = from};
    while (at < len && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (len > at && is_space(line[len - 1]))
        len--;
    ret->info = line + at;
    ret->info_len = len - at;
    /* ```x``` on one line is no fence */
    return ret->kind != '`' || !memchr(ret->info, '`', ret->info_len);
}

static bool says_python(const struct fence *f)
{
    static const char *const names[] = {"python", "py", "python3", "ipython"};
    const char *word = f->info;
    size_t len = f->info_len, n = 0;

    while (len > 0 && (*word == '{' || *word == '.')) { /* ```{.python} */
        word++;
        len--;
    }
    while (n < len && !is_space(word[n]) && !strchr("},:", word[n]))
        n++;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == n && strncasecmp(names[i], word, n) == 0)
            return true;
    return false;
}

bool block_next(const char *text, size_t len, size_t *at, struct block *ret)
{
    struct fence open = {0}, f;
    size_t from = 0;

    for (size_t n; *at < len; *at += n) {
        n = line_length(text + *at, len - *at);
        if (!read_fence(text + *at, n, &f))
            continue;
        if (!open.kind) {
            open = f;
            from = *at + n;
            *ret = (struct block){.begin = *at,
                                  .indent = f.indent,
                                  .plain = f.info_len == 0,
                                  .python = says_python(&f)};
        } else if (f.kind == open.kind && f.length >= open.length && f.info_len == 0) {
            ret->closed = true;
            ret->text = text + from;
            ret->len = *at - from;
            *at += n;
            ret->end = *at;
            return true;
        }
    }
    if (!open.kind)
        return false;
    ret->text = text + from;
    ret->len = len - from;
    ret->end = len;
    return true;
}

char *block_code(const struct block *b)
{
    struct buf code = {0};

    for (size_t at = 0, n; at < b->len; at += n) {
        const char *line = b->text + at;
        size_t skip = 0;
        n = line_length(line, b->len - at);
        while (skip < b->indent && skip < n && (line[skip] == ' ' || line[skip] == '\t'))
            skip++;
        buf_add(&code, line + skip, n - skip);
    }
    return buf_steal(&code);
}
