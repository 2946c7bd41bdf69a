/* buf: see buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

char *buf_room(struct buf *b, size_t more)
{
    if (more > b->cap - b->len) {
        size_t cap = b->cap ? b->cap : 256;
        while (cap - b->len < more) {
            assert_that(cap <= ((size_t)-1) / 2);
            cap *= 2;
        }
        b->data = realloc(b->data, cap);
        if (!b->data)
            bug("out of memory (%zu bytes)", cap);
        b->cap = cap;
    }
    return b->data + b->len;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    memcpy(buf_room(b, len), data, len);
    b->len += len;
}

void buf_add_text(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

void buf_add_fmt(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    assert_that(n >= 0);
    char *at = buf_room(b, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(at, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

void buf_drop(struct buf *b, size_t n)
{
    assert_that(n <= b->len);
    if (n > 0 && n < b->len)
        memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

char *buf_text(struct buf *b)
{
    *buf_room(b, 1) = '\0';
    return b->data;
}

char *buf_steal(struct buf *b)
{
    char *text = buf_text(b);
    *b = (struct buf){0};
    return text;
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p)
        bug("out of memory (%zu × %zu bytes)", n, size);
    return p;
}

char *xstrdup(const char *s)
{
    char *copy = strdup(s);
    if (!copy)
        bug("out of memory");
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        bug("out of memory");
    return text;
}

void free_ptr(void *pp)
{
    free(*(void **)pp);
}
