/* A model's answer on any bytes: the first says how wide the terminal is and in which pieces it comes. What must hold:
 * the pieces make no difference to the blocks' text, and what comes out is characters that can be shown, newlines, and
 * colours as ours are written. */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "session/utf8.h"
#include "term/markdown.h"
#include "term/picture.h"
#include "term/width.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_harmless(const char *text, size_t len)
{
    size_t n;

    for (size_t at = 0; at < len; at += n) {
        if (len - at > 3 && memcmp(text + at, "\033[0", 3) == 0) {
            n = 4 + strspn(text + at + 3, ";0123456789");
            assert_that(text[at + n - 1] == 'm');
            continue;
        }
        assert_that(utf8_next(text + at, len - at, &n) == UTF8_WHOLE);
        assert_that(text[at] == '\n' || width_of(width_decode(text + at, n)) >= 0);
    }
}

static void flow(const char *text, size_t len, size_t piece, struct buf *whole)
{
    struct flow f = {0};

    for (size_t at = 0; at < len; at += piece)
        flow_feed(&f, text + at, len - at < piece ? len - at : piece, whole);
    flow_end(&f, whole);
    flow_done(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_buf struct buf whole = {0}, out = {0};

    if (size < 2)
        return 0;
    const char *text = (const char *)data + 1;
    struct paper paper = {.columns = 20 + data[0] % 100, .colours = data[0] & 1};
    flow(text, size - 1, 1 + data[0] % 16, &whole);
    assert_that(whole.len == size - 1 && memcmp(whole.data, text, whole.len) == 0);
    markdown_render(&paper, text, size - 1, &out);
    check_harmless(buf_text(&out), out.len);
    for (int kind = PICTURES_BLOCKS; kind <= PICTURES_KITTY; kind++)
        drawn_check((enum term_pictures)kind, text, size - 1, 80, 24);
    return 0;
}
