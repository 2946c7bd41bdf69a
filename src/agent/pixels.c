/* pixels: see pixels.h. */
#include "agent/pixels.h"

#include <nettle/base64.h>
#include <string.h>

#include "base/buf.h"
#include "session/words.h"

/* Jupyter breaks base64 into lines. */
static int decode(const json_t *text, struct buf *ret)
{
    size_t len = json_string_length(text), size = BASE64_DECODE_LENGTH(len);
    struct base64_decode_ctx ctx;

    base64_decode_init(&ctx);
    char *to = buf_room(ret, size + 1);
    if (!base64_decode_update(&ctx, &size, (uint8_t *)to, len, json_string_value(text)) ||
        !base64_decode_final(&ctx))
        return -1;
    ret->len = size;
    return 0;
}

static uint32_t read_u32(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

#define PNG_MAGIC "\x89PNG\r\n\x1a\n"

static bool is_png(const struct buf *b)
{
    return b->len >= 33 && memcmp(b->data, PNG_MAGIC, 8) == 0;
}

/* What makes its pixels: not the program's name, nor the time. */
static void essence_of_png(const struct buf *b, struct buf *ret)
{
    static const char *const made_of[] = {"IHDR", "PLTE", "IDAT", "tRNS",
                                          "gAMA", "sRGB", "fcTL", "fdAT"};
    size_t at = 8;

    while (b->len - at >= 12) {
        size_t len = read_u32(b->data + at);
        if (len > b->len - at - 12)
            break;
        for (size_t i = 0; i < sizeof(made_of) / sizeof(made_of[0]); i++)
            if (memcmp(b->data + at + 4, made_of[i], 4) == 0)
                buf_add(ret, b->data + at + 4, len + 4);
        at += 12 + len;
    }
    buf_add(ret, b->data + at, b->len - at);
}

static bool same_bytes(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

bool pixels_same(const json_t *a, const json_t *b)
{
    cleanup_buf struct buf x = {0}, y = {0}, of_x = {0}, of_y = {0};

    if (json_equal(a, b))
        return true;
    if (decode(a, &x) < 0 || decode(b, &y) < 0)
        return false;
    if (!is_png(&x) || !is_png(&y))
        return same_bytes(&x, &y);
    essence_of_png(&x, &of_x);
    essence_of_png(&y, &of_y);
    return same_bytes(&of_x, &of_y);
}

json_t *pixels_words(const json_t *picture)
{
    cleanup_buf struct buf b = {0};
    char size[WORDS_SIZE];

    if (decode(picture, &b) < 0)
        return json_string("a picture");
    words_size(b.len, size);
    return is_png(&b) ? json_sprintf("a picture of %u \xc3\x97 %u pixels, %s",
                                     read_u32(b.data + 16), read_u32(b.data + 20), size)
                      : json_sprintf("a picture of %s", size);
}
