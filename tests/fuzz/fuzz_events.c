/* A server's stream on any bytes: the first says in which pieces they come. What must hold: the pieces make
 * no difference, and no event is larger than it may be. */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "guest/events.h"

#define MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
    (void)e;
    assert_that(len <= MAX && data[len] == '\0' && strlen(name) < EVENT_NAME_MAX);
    buf_add_text(ctx, name);
    buf_add(ctx, "\0", 1);
    buf_add(ctx, data, len);
    buf_add(ctx, "\0", 1);
    return 0;
}

static int feed(const char *data, size_t size, size_t piece, struct buf *heard)
{
    struct events ev;
    struct err e;
    int r = 0;

    events_init(&ev, MAX, on_event, heard);
    for (size_t at = 0; at < size && r == 0; at += piece)
        r = events_feed(&ev, data + at, size - at < piece ? size - at : piece, &e);
    events_done(&ev);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_buf struct buf one = {0}, other = {0};

    if (size < 1)
        return 0;
    int r = feed((const char *)data + 1, size - 1, 1, &one);
    int s = feed((const char *)data + 1, size - 1, 1u + data[0] % 32, &other);
    assert_that(r == s && one.len == other.len);
    assert_that(one.len == 0 || memcmp(one.data, other.data, one.len) == 0);
    return 0;
}
