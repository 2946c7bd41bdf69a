/* buf: a byte buffer that grows up to a bound.
 *
 * Whatever a box or a client can make us hold goes through one of these, so that "how much" is
 * always answered by the code that owns the buffer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len;
    size_t cap;
};

void buf_done(struct buf *b);
#define cleanup_buf __attribute__((cleanup(buf_done)))

/* Make room for `more` bytes behind what is there, and return the place. Running out of memory is
 * treated as a bug: sizes are bounded by the callers. */
char *buf_room(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_add_text(struct buf *b, const char *text);
void buf_add_fmt(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Drop the first n bytes. */
void buf_drop(struct buf *b, size_t n);
/* The contents as a string: a NUL is put behind them, and does not count. */
char *buf_text(struct buf *b);
/* Take the memory over; the buffer is empty afterwards. */
char *buf_steal(struct buf *b);

/* The same for single allocations: they do not fail. */
void *xcalloc(size_t n, size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void free_ptr(void *pp);
#define cleanup_free __attribute__((cleanup(free_ptr)))
