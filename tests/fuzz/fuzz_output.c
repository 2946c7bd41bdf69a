/* The collector and the repair of UTF-8, on any bytes in any pieces.
 *
 * What must hold: text that leaves is valid UTF-8 and within the limit; kept and dropped add up;
 * what was told piece by piece is what the cell has; and where nothing is dropped the pieces make
 * no difference: the text is the repair of the whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "session/cell.h"
#include "session/output.h"
#include "session/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct buf told[2], written[2];

static void tell_text(void *ctx, enum output_kind kind, const char *text, size_t len)
{
    (void)ctx;
    assert_that(len > 0 && utf8_valid(text, len) == len);
    buf_add(&told[kind], text, len);
}

static void tell_display(void *ctx, const struct output *o)
{
    (void)ctx;
    assert_that(o->n_parts == 1);
}

static void show(struct collector *c)
{
    struct output o = {.kind = OUTPUT_DISPLAY, .n_parts = 1};

    o.parts = xcalloc(1, sizeof(*o.parts));
    o.parts[0] = (struct mime_part){xstrdup("a/b"), xstrdup("x"), 1, true};
    output_display(c, &o);
}

static unsigned feed(struct collector *c, const uint8_t *data, size_t size)
{
    unsigned displays = 0;

    while (size >= 2) {
        unsigned what = data[0];
        size_t len = data[1];
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        if (what & 0x80) {
            show(c);
            displays++;
        } else if ((what & 0x70) == 0x70) {
            c->live = false;
            told[0].len = told[1].len = 0;
            output_go_live(c);
        }
        output_text(c, what & 1, (const char *)data, len);
        buf_add(&written[what & 1], data, len);
        data += len;
        size -= len;
    }
    return displays;
}

static void check(const struct cell *c, uint64_t limit, unsigned displays)
{
    static struct buf kept[2];
    uint64_t dropped[2] = {c->truncated.stdout_bytes, c->truncated.stderr_bytes};
    unsigned shown = 0;

    kept[0].len = kept[1].len = 0;
    for (unsigned i = 0; i < c->n_outputs; i++) {
        const struct output *o = &c->outputs[i];
        if (o->kind == OUTPUT_DISPLAY)
            shown++;
        else
            buf_add(&kept[o->kind], o->text, o->len);
    }
    assert_that(shown + c->truncated.displays == displays);
    assert_that(kept[0].len + kept[1].len <= limit);
    for (unsigned s = 0; s < 2; s++) {
        assert_that(dropped[s] <= written[s].len);
        assert_that(kept[s].len == told[s].len);
        assert_that(kept[s].len == 0 || memcmp(kept[s].data, told[s].data, kept[s].len) == 0);
        cleanup_buf struct buf whole = {0};
        utf8_repair(&whole, written[s].data, written[s].len);
        assert_that(whole.len == utf8_repaired_len(written[s].data, written[s].len));
        if (dropped[s] == 0 && whole.len > 0)
            assert_that(whole.len == kept[s].len &&
                        memcmp(whole.data, kept[s].data, whole.len) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct output_sink sink = {.text = tell_text, .display = tell_display};
    struct collector c;

    if (size < 1)
        return 0;
    uint64_t limit = 16 + data[0] * 3u;
    told[0].len = told[1].len = written[0].len = written[1].len = 0;
    output_init(&c, limit, OUTPUT_DISPLAY_BYTES, &sink);
    output_go_live(&c);
    struct cell *cell = cell_new(1, "", 0);
    unsigned displays = feed(&c, data + 1, size - 1);
    output_finish(&c, cell);
    check(cell, limit, displays);
    cell_free(cell);
    return 0;
}
