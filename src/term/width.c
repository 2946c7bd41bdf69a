/* width: see width.h. libc knows the widths of Unicode, but only in a locale that has them: one is made for this, so
 * that the process' own, which is nobody's business here, stays what it is. */
#include "term/width.h"

#include <locale.h>
#include <stdbool.h>
#include <wchar.h>

#include "session/utf8.h"

static locale_t unicode(void)
{
    static locale_t made;

    if (!made)
        made = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return made;
}

uint32_t width_decode(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;

    switch (n) {
    case 1:
        return p[0];
    case 2:
        return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    case 3:
        return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    default:
        return (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    }
}

/* What makes text look like other text: marks and overrides of direction, lines within lines, invisible letters. */
static bool deceives(uint32_t c)
{
    static const uint32_t ranges[][2] = {{0x061c, 0x061c},  {0x200e, 0x200f}, {0x2028, 0x202e},
                                         {0x2060, 0x206f},  {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
                                         {0xe0000, 0xe0fff}};

    for (unsigned i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    }
    return false;
}

int width_of(uint32_t c)
{
    if (c < 0x7f)
        return c < 0x20 ? -1 : 1;
    if (c < 0xa0 || deceives(c))
        return -1;
    locale_t ours = unicode(), before = ours ? uselocale(ours) : (locale_t)0;
    int width = wcwidth((wchar_t)c);
    if (ours)
        uselocale(before);
    return ours || width >= 0 ? width : 1;
}

unsigned width_text(const char *text, size_t len)
{
    unsigned width = 0;
    size_t n;

    for (size_t at = 0; at < len; at += n) {
        utf8_next(text + at, len - at, &n);
        int one = width_of(width_decode(text + at, n));
        width += one > 0 ? (unsigned)one : 0;
    }
    return width;
}
