/* Forms, on any bytes: whole, byte by byte and in uneven pieces they tell the same story; parts begin and
 * end in turn; data is never more than there was. */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "gate/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct story {
    struct buf text; /* lengths of data are not in it: they depend on the pieces */
    size_t bytes;
    unsigned parts;
    bool open;
};

static int on_begin(void *ctx, const char *name, const char *filename)
{
    struct story *s = ctx;

    assert_that(!s->open && strlen(name) <= MULTIPART_HEADER_MAX);
    s->open = true;
    s->parts++;
    buf_add_fmt(&s->text, "<%s|%s>", name, filename ? filename : "-");
    return s->parts == 40 ? -1 : 0;
}

static int on_data(void *ctx, const char *data, size_t len)
{
    struct story *s = ctx;

    assert_that(s->open && len > 0);
    s->bytes += len;
    buf_add(&s->text, data, len);
    return 0;
}

static int on_end(void *ctx)
{
    struct story *s = ctx;

    assert_that(s->open);
    s->open = false;
    buf_add_text(&s->text, ".");
    return 0;
}

/* 0: whole; 1: refused in the middle; 2: cut off; 3: the Content-Type is none */
static int read_all(const char *type, const char *body, size_t len, size_t step, struct story *s)
{
    static const struct multipart_events events = {on_begin, on_data, on_end};
    struct err e;
    struct multipart *m = multipart_new(type, &events, s, &e);
    int r = m ? 0 : 3;

    s->text.len = s->bytes = s->parts = 0;
    s->open = false;
    for (size_t at = 0; at < len && r == 0; at += step) {
        size_t n = len - at < step ? len - at : step;
        for (size_t read = 0; read < n && r == 0;) {
            ssize_t took = multipart_feed(m, body + at + read, n - read, &e);
            assert_that(took != 0);
            r = took < 0 ? 1 : 0;
            read += (size_t)took;
        }
    }
    if (r == 0 && multipart_finish(m, &e) < 0)
        r = 2;
    assert_that(r != 0 || !s->open);
    assert_that(s->parts <= MULTIPART_PARTS_MAX && s->bytes <= len);
    multipart_free(m);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct story whole, pieces;
    static const size_t steps[] = {1, 3, 64};
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    cleanup_buf struct buf type = {0};

    if (!line)
        return 0;
    buf_add(&type, data, (size_t)(line - data));
    const char *body = (const char *)line + 1;
    size_t len = size - (size_t)(body - (const char *)data);
    int r = read_all(buf_text(&type), body, len, len ? len : 1, &whole);
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        assert_that(read_all(type.data, body, len, steps[i], &pieces) == r);
        /* What was held back when it went wrong is not told, and that depends on the pieces. */
        if (r == 0)
            assert_that(whole.text.len == pieces.text.len &&
                        (whole.text.len == 0 ||
                         memcmp(whole.text.data, pieces.text.data, whole.text.len) == 0));
        assert_that(whole.parts == pieces.parts);
    }
    return 0;
}
