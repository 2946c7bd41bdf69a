/* parts: see parts.h. */
#include "session/parts.h"

#include <string.h>

const struct mime_part *part_find(const struct output *o, const char *type)
{
    for (unsigned i = 0; i < o->n_parts; i++)
        if (strcmp(o->parts[i].type, type) == 0)
            return &o->parts[i];
    return NULL;
}

const struct mime_part *part_picture(const struct output *o)
{
    const struct mime_part *png = part_find(o, "image/png");

    for (unsigned i = 0; !png && i < o->n_parts; i++)
        if (strncmp(o->parts[i].type, "image/", 6) == 0)
            return &o->parts[i];
    return png;
}

const struct mime_part *part_text(const struct output *o)
{
    static const char *const other[] = {"text/markdown", "text/latex", "application/json",
                                        "text/html",     "text/plain", NULL};
    static const char object[] = "<IPython.core.display.";
    const struct mime_part *plain = part_find(o, "text/plain"), *p = plain;

    if (plain &&
        (plain->len < sizeof(object) || memcmp(plain->data, object, sizeof(object) - 1) != 0))
        return plain;
    for (unsigned i = 0; other[i]; i++)
        if ((p = part_find(o, other[i])))
            return p;
    return NULL;
}

static unsigned big_endian(const char *data, unsigned bytes)
{
    unsigned value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | (unsigned char)data[i];
    return value;
}

bool part_picture_size(const struct mime_part *p, unsigned *ret_w, unsigned *ret_h)
{
    if (p->len >= 24 && memcmp(p->data, "\x89PNG\r\n\x1a\n", 8) == 0) {
        *ret_w = big_endian(p->data + 16, 4);
        *ret_h = big_endian(p->data + 20, 4);
        return true;
    }
    if (p->len >= 10 && memcmp(p->data, "GIF8", 4) == 0) {
        *ret_w = (unsigned char)p->data[6] | (unsigned)(unsigned char)p->data[7] << 8;
        *ret_h = (unsigned char)p->data[8] | (unsigned)(unsigned char)p->data[9] << 8;
        return true;
    }
    /* JPEG: segments until one that starts a frame. */
    for (size_t at = 2; p->len >= 4 && memcmp(p->data, "\xff\xd8", 2) == 0 && at + 9 <= p->len;) {
        unsigned char marker = (unsigned char)p->data[at + 1];
        if ((unsigned char)p->data[at] != 0xff)
            break;
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
            marker != 0xcc) {
            *ret_h = big_endian(p->data + at + 5, 2);
            *ret_w = big_endian(p->data + at + 7, 2);
            return true;
        }
        at += 2 + big_endian(p->data + at + 2, 2);
    }
    return false;
}
