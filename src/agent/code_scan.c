/* code_scan: see code_scan.h. */
#include "agent/code_scan.h"

#include <string.h>

#include "session/utf8.h"

#define KEY "code"
#define KEY_NOT (sizeof(KEY)) /* matched: it is another */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Its number as UTF-8; what is none becomes U+FFFD. */
static void add_character(struct buf *out, unsigned number)
{
    if (number > 0x10ffff || (number >= 0xd800 && number < 0xe000)) {
        buf_add_text(out, UTF8_REPLACEMENT);
        return;
    }
    char utf8[4];
    size_t n = number < 0x80 ? 1 : number < 0x800 ? 2 : number < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--, number >>= 6)
        utf8[i] = (char)(0x80 | (number & 0x3f));
    utf8[0] = (char)(first[n] | number);
    buf_add(out, utf8, n);
}

/* ---- the code itself ---- */

/* The second half of a pair did not come. */
static void give_up_pair(struct code_scan *s, struct buf *out)
{
    if (s->high)
        add_character(out, s->high);
    s->high = 0;
}

static void take_unit(struct code_scan *s, unsigned unit, struct buf *out)
{
    if (s->high && unit >= 0xdc00 && unit < 0xe000) {
        add_character(out, 0x10000 + ((s->high - 0xd800) << 10) + (unit - 0xdc00));
        s->high = 0;
        return;
    }
    give_up_pair(s, out);
    if (unit >= 0xd800 && unit < 0xdc00)
        s->high = unit;
    else if (unit == 0)
        s->state = SCAN_LOST; /* no code has it */
    else
        add_character(out, unit);
}

static void take_digit(struct code_scan *s, char c, struct buf *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    if (!at) {
        s->state = SCAN_LOST;
        return;
    }
    s->unit = s->unit << 4 | ((unsigned)(at - digits) & 15);
    if (--s->escape > 1)
        return;
    s->escape = 0;
    take_unit(s, s->unit, out);
}

static void take_escape(struct code_scan *s, char c, struct buf *out)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *at = c ? strchr(names, c) : NULL;

    s->escape = 0;
    if (c == 'u') {
        s->escape = 5;
        s->unit = 0;
    } else if (at) {
        take_unit(s, (unsigned char)meanings[at - names], out);
    } else {
        s->state = SCAN_LOST;
    }
}

static void take_code(struct code_scan *s, char c, struct buf *out)
{
    if (s->escape == 1) {
        take_escape(s, c, out);
    } else if (s->escape) {
        take_digit(s, c, out);
    } else if (c == '\\') {
        s->escape = 1;
    } else if (c == '"') {
        give_up_pair(s, out);
        s->found = true;
        s->state = SCAN_AFTER_VALUE;
    } else if (c == '\0') {
        s->state = SCAN_LOST;
    } else {
        give_up_pair(s, out);
        buf_add(out, &c, 1);
    }
}

/* ---- what is around it ---- */

static void take_key(struct code_scan *s, char c)
{
    if (s->escaped || c == '\\') {
        s->escaped = !s->escaped;
        s->matched = KEY_NOT;
    } else if (c == '"') {
        s->state = SCAN_AFTER_KEY;
    } else if (s->matched < strlen(KEY) && KEY[s->matched] == c) {
        s->matched++;
    } else {
        s->matched = KEY_NOT;
    }
}

static void begin_value(struct code_scan *s, char c)
{
    bool is_code = s->matched == strlen(KEY);

    if (is_space(c))
        return;
    if (is_code && (s->found || c != '"')) /* twice, or no text: which it is is not for us to say */
        s->state = SCAN_LOST;
    else if (c == '"')
        s->state = is_code ? SCAN_CODE : SCAN_STRING;
    else if (c == '{' || c == '[')
        s->state = SCAN_NEST;
    else
        s->state = SCAN_SCALAR;
    s->depth = 1;
}

static void end_value(struct code_scan *s, char c)
{
    if (c == ',')
        s->state = SCAN_BEFORE_KEY;
    else if (c == '}')
        s->state = SCAN_END;
    else if (!is_space(c) && s->state != SCAN_SCALAR)
        s->state = SCAN_LOST;
}

static void pass_string(struct code_scan *s, char c, bool nested)
{
    if (s->escaped || c == '\\')
        s->escaped = !s->escaped;
    else if (c == '"')
        s->state = nested ? SCAN_NEST : SCAN_AFTER_VALUE;
}

static void pass_nest(struct code_scan *s, char c)
{
    if (c == '"')
        s->state = SCAN_NEST_STRING;
    else if (c == '{' || c == '[')
        s->depth++;
    else if ((c == '}' || c == ']') && --s->depth == 0)
        s->state = SCAN_AFTER_VALUE;
}

static void expect(struct code_scan *s, char c, char wanted, int next)
{
    if (c == wanted)
        s->state = next;
    else if (!is_space(c))
        s->state = SCAN_LOST;
}

static void take(struct code_scan *s, char c, struct buf *out)
{
    switch (s->state) {
    case SCAN_BEGIN:
        expect(s, c, '{', SCAN_BEFORE_KEY);
        break;
    case SCAN_BEFORE_KEY:
        s->matched = 0;
        expect(s, c, '"', SCAN_KEY);
        break;
    case SCAN_KEY:
        take_key(s, c);
        break;
    case SCAN_AFTER_KEY:
        expect(s, c, ':', SCAN_BEFORE_VALUE);
        break;
    case SCAN_BEFORE_VALUE:
        begin_value(s, c);
        break;
    case SCAN_SCALAR:
    case SCAN_AFTER_VALUE:
        end_value(s, c);
        break;
    case SCAN_STRING:
    case SCAN_NEST_STRING:
        pass_string(s, c, s->state == SCAN_NEST_STRING);
        break;
    case SCAN_NEST:
        pass_nest(s, c);
        break;
    case SCAN_CODE:
        take_code(s, c, out);
        break;
    case SCAN_END:
        if (!is_space(c))
            s->state = SCAN_LOST;
        break;
    case SCAN_LOST:
        break;
    }
}

void code_scan(struct code_scan *s, const char *text, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len && s->state != SCAN_LOST; i++)
        take(s, text[i], out);
}

bool code_scan_whole(const struct code_scan *s)
{
    return s->state == SCAN_END && s->found;
}
