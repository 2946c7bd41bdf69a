/* utf8: see utf8.h. */
#include "session/utf8.h"

#include <stdint.h>
#include <string.h>

/* How many bytes a sequence has that begins with c (0: none begins so), and which second byte it
 * may have: that is where overlong forms, surrogates and too high numbers show. */
static unsigned begins(uint8_t c, uint8_t *ret_low, uint8_t *ret_high)
{
    *ret_low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    *ret_high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (c < 0x80)
        return 1;
    if (c < 0xC2 || c > 0xF4)
        return 0;
    return c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

enum utf8_kind utf8_next(const char *text, size_t len, size_t *ret_n)
{
    const uint8_t *p = (const uint8_t *)text;
    uint8_t low, high;
    unsigned want = begins(p[0], &low, &high);
    unsigned good = 1;

    while (good < want && good < len && p[good] >= low && p[good] <= high) {
        good++;
        low = 0x80;
        high = 0xBF;
    }
    *ret_n = good;
    if (good == want)
        return UTF8_WHOLE;
    return good < want && good == len ? UTF8_CUT : UTF8_BROKEN;
}

/* Most text is ASCII: go over it eight bytes at a time. */
static size_t skip_ascii(const char *text, size_t at, size_t len)
{
    uint64_t eight;

    while (len - at >= sizeof(eight)) {
        memcpy(&eight, text + at, sizeof(eight));
        if (eight & 0x8080808080808080u)
            break;
        at += sizeof(eight);
    }
    while (at < len && (uint8_t)text[at] < 0x80)
        at++;
    return at;
}

size_t utf8_valid(const char *text, size_t len)
{
    size_t at = 0, n;

    while ((at = skip_ascii(text, at, len)) < len) {
        if (utf8_next(text + at, len - at, &n) != UTF8_WHOLE)
            break;
        at += n;
    }
    return at;
}

size_t utf8_whole(const char *text, size_t len)
{
    size_t n;

    for (size_t back = 1; back <= 3 && back <= len; back++) {
        uint8_t c = (uint8_t)text[len - back];
        if ((c & 0xC0) == 0x80)
            continue;
        if (utf8_next(text + len - back, back, &n) == UTF8_CUT)
            return len - back;
        break;
    }
    return len;
}

size_t utf8_fit(const char *text, size_t len, size_t max)
{
    if (max >= len)
        return len;
    while (max > 0 && ((uint8_t)text[max] & 0xC0) == 0x80)
        max--;
    return max;
}

size_t utf8_repaired_len(const char *text, size_t len)
{
    size_t total = 0, n;

    while (len > 0) {
        size_t valid = utf8_valid(text, len);
        total += valid;
        text += valid;
        len -= valid;
        if (len == 0)
            break;
        utf8_next(text, len, &n);
        total += strlen(UTF8_REPLACEMENT);
        text += n;
        len -= n;
    }
    return total;
}

void utf8_repair(struct buf *b, const char *text, size_t len)
{
    size_t n;

    while (len > 0) {
        size_t valid = utf8_valid(text, len);
        buf_add(b, text, valid);
        text += valid;
        len -= valid;
        if (len == 0)
            break;
        utf8_next(text, len, &n);
        buf_add_text(b, UTF8_REPLACEMENT);
        text += n;
        len -= n;
    }
}

char *utf8_repaired(const char *text, size_t len)
{
    struct buf b = {0};

    buf_room(&b, len + 1);
    for (;;) {
        const char *nul = len ? memchr(text, '\0', len) : NULL;
        size_t part = nul ? (size_t)(nul - text) : len;
        utf8_repair(&b, text, part);
        if (!nul)
            return buf_steal(&b);
        buf_add_text(&b, UTF8_REPLACEMENT);
        text += part + 1;
        len -= part + 1;
    }
}
