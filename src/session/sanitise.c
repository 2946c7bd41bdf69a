/* sanitise: see sanitise.h.
 *
 *            ESC            [
 *     PLAIN ─────▶ ESCAPE ─────▶ CSI ── final byte ──▶ PLAIN   (kept only when it is a colour)
 *       ▲            │ ] P X ^ _
 *       │            ▼
 *       ├─ BEL ── STRING ── ESC ──▶ STRING_ESCAPE ── \ ──▶ PLAIN
 *       └─ \n ──────┘
 *
 * C1 controls (U+0080 to U+009F, in UTF-8 C2 80 to C2 9F) do the same as ESC and a letter in some
 * terminals, so they take the same ways. A terminal would read a string beyond the end of the line;
 * ours has seen nothing of it, and a string without an end must not swallow what follows.
 */
#include "session/sanitise.h"

#include <string.h>

#include "session/utf8.h"

static void enter(struct sanitiser *s, unsigned char introducer)
{
    if (introducer == '[') {
        s->state = TEXT_CSI;
        s->csi_len = 0;
    } else if (introducer && strchr("]PX^_", introducer)) {
        s->state = TEXT_STRING;
    } else if (introducer >= 0x20 && introducer <= 0x2f) {
        s->state = TEXT_ESCAPE; /* an intermediate byte: the final one is still to come */
    } else {
        s->state = TEXT_PLAIN;
    }
}

static void end_csi(struct sanitiser *s, unsigned char final, struct buf *out)
{
    s->state = TEXT_PLAIN;
    if (final != 'm' || s->csi_len > sizeof(s->csi) || s->no_colours)
        return;
    buf_add_text(out, "\033[");
    buf_add(out, s->csi, s->csi_len);
    buf_add_text(out, "m");
    s->coloured = s->csi_len > 0 && !(s->csi_len == 1 && s->csi[0] == '0');
}

static void in_csi(struct sanitiser *s, unsigned char c, struct buf *out)
{
    if (c >= 0x40 && c <= 0x7e) {
        end_csi(s, c, out);
    } else if (c < 0x20 || c > 0x7e) {
        s->state = TEXT_PLAIN; /* broken off */
        if (c == '\n')
            buf_add(out, &c, 1);
    } else if (s->csi_len < sizeof(s->csi) && ((c >= '0' && c <= '9') || c == ';' || c == ':')) {
        s->csi[s->csi_len++] = (char)c;
    } else {
        s->csi_len = sizeof(s->csi) + 1; /* too long, or private: not a colour */
    }
}

static void in_plain(struct sanitiser *s, unsigned char c, struct buf *out)
{
    if (c == 0x1b)
        s->state = TEXT_ESCAPE;
    else if (c == 0xc2)
        s->state = TEXT_C2; /* perhaps a C1 control */
    else if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t' || c == '\r' || c == '\b')
        buf_add(out, &c, 1);
}

static void in_string(struct sanitiser *s, unsigned char c, struct buf *out)
{
    bool ends = c == 0x07 || c == '\n' || (s->state == TEXT_STRING_ESCAPE && c == '\\') ||
                (s->state == TEXT_STRING_C2 && c == 0x9c);

    s->state = ends        ? TEXT_PLAIN
               : c == 0x1b ? TEXT_STRING_ESCAPE
               : c == 0xc2 ? TEXT_STRING_C2
                           : TEXT_STRING;
    if (c == '\n')
        buf_add(out, &c, 1);
}

static void in_c2(struct sanitiser *s, unsigned char c, struct buf *out)
{
    if (c >= 0x80 && c <= 0x9f) {
        enter(s, c - 0x40);
        return;
    }
    s->state = TEXT_PLAIN;
    buf_add(out, "\xc2", 1);
    in_plain(s, c, out);
}

void sanitise(struct sanitiser *s, const char *text, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        switch (s->state) {
        case TEXT_PLAIN:
            in_plain(s, c, out);
            break;
        case TEXT_ESCAPE:
            enter(s, c);
            break;
        case TEXT_CSI:
            in_csi(s, c, out);
            break;
        case TEXT_STRING:
        case TEXT_STRING_ESCAPE:
        case TEXT_STRING_C2:
            in_string(s, c, out);
            break;
        case TEXT_C2:
            in_c2(s, c, out);
            break;
        }
    }
}

void sanitise_end(struct sanitiser *s, struct buf *out)
{
    if (s->coloured)
        buf_add_text(out, "\033[0m");
    *s = (struct sanitiser){.no_colours = s->no_colours};
}

char *sanitise_name(const char *name, char *ret, size_t size)
{
    size_t len = strlen(name), n = 0, wide;

    for (size_t at = 0; at < len; at += wide) {
        bool whole = utf8_next(name + at, len - at, &wide) == UTF8_WHOLE;
        unsigned char c = (unsigned char)name[at];
        bool control = c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)name[at + 1] < 0xa0);
        bool shown = whole && !control;
        if (n + (shown ? wide : 1) >= size)
            break;
        if (shown)
            memcpy(ret + n, name + at, wide);
        else
            ret[n] = '?';
        n += shown ? wide : 1;
    }
    ret[n] = '\0';
    return ret;
}
