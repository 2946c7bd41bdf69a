/* highlight: see highlight.h. */
#include "term/highlight.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KEYWORD STYLE_MAGENTA
#define CONSTANT STYLE_CYAN
#define STRING STYLE_GREEN
#define COMMENT (STYLE_DIM | STYLE_ITALIC)
#define NAMED STYLE_BOLD /* what def and class name */
#define MAGIC (STYLE_BOLD | STYLE_MAGENTA)

/* Both in the order of strcmp. */
static const char *const keywords[] = {
    "and",    "as",   "assert", "async",  "await",  "break",   "class",    "continue",
    "def",    "del",  "elif",   "else",   "except", "finally", "for",      "from",
    "global", "if",   "import", "in",     "is",     "lambda",  "nonlocal", "not",
    "or",     "pass", "raise",  "return", "try",    "while",   "with",     "yield",
};
static const char *const constants[] = {
    "Ellipsis", "False", "None", "NotImplemented", "True", "cls", "self",
};

static int compare(const void *key, const void *element)
{
    return strcmp(key, *(const char *const *)element);
}

static bool among(const char *word, size_t len, const char *const *list, size_t n)
{
    char key[16];

    if (len >= sizeof(key))
        return false;
    memcpy(key, word, len);
    key[len] = '\0';
    return bsearch(key, list, n, sizeof(*list), compare) != NULL;
}
#define AMONG(word, len, list) among(word, len, list, sizeof(list) / sizeof(*(list)))

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* A line as it is read. */
struct reading {
    struct highlight *h;
    const char *text;
    size_t len, at;
    bool name_follows; /* the word before was def or class */
    struct rich out;
};

static void take(struct reading *r, size_t to, unsigned style)
{
    rich_add(&r->out, style, r->text + r->at, to - r->at);
    r->at = to;
}

/* From within a string to behind its end, or to the end of the line. */
static void take_string(struct reading *r, size_t from)
{
    struct highlight *h = r->h;
    size_t need = h->triple ? 3 : 1, run = 0, i = from;

    for (; i < r->len && run < need; i++) {
        if (r->text[i] == '\\' && i + 1 < r->len) {
            run = 0;
            i++; /* also in raw strings, where it stays but the quote does not end it */
        } else {
            run = r->text[i] == h->quote ? run + 1 : 0;
        }
    }
    bool goes_on = run < need && (h->triple || (r->len > 0 && r->text[r->len - 1] == '\\'));
    if (!goes_on)
        h->quote = '\0';
    take(r, i, STRING);
}

/* How many letters before a quote belong to a string that begins here; -1: none does. */
static int string_prefix(const struct reading *r)
{
    size_t i = r->at;

    while (i < r->len && i - r->at < 3 && strchr("rRbBuUfF", r->text[i]))
        i++;
    return i < r->len && (r->text[i] == '"' || r->text[i] == '\'') ? (int)(i - r->at) : -1;
}

static void begin_string(struct reading *r, size_t prefix)
{
    size_t at = r->at + prefix;
    char quote = r->text[at];

    r->h->quote = quote;
    r->h->triple = at + 2 < r->len && r->text[at + 1] == quote && r->text[at + 2] == quote;
    take_string(r, at + (r->h->triple ? 3 : 1));
}

static void take_word(struct reading *r)
{
    size_t end = r->at;
    bool attribute = r->at > 0 && r->text[r->at - 1] == '.';

    while (end < r->len && is_word(r->text[end]))
        end++;
    const char *word = r->text + r->at;
    size_t len = end - r->at;
    bool keyword = !attribute && AMONG(word, len, keywords);
    bool constant = !attribute && AMONG(word, len, constants);
    take(r, end, r->name_follows ? NAMED : keyword ? KEYWORD : constant ? CONSTANT : 0);
    r->name_follows = keyword && ((len == 3 && memcmp(word, "def", 3) == 0) ||
                                  (len == 5 && memcmp(word, "class", 5) == 0));
}

static void take_number(struct reading *r)
{
    size_t end = r->at;

    while (end < r->len &&
           (is_word(r->text[end]) || r->text[end] == '.' ||
            ((r->text[end] == '+' || r->text[end] == '-') && tolower(r->text[end - 1]) == 'e' &&
             tolower(r->text[r->at + 1 < end ? r->at + 1 : r->at]) != 'x')))
        end++;
    take(r, end, CONSTANT);
}

static void take_decorator(struct reading *r)
{
    size_t end = r->at + 1;

    while (end < r->len && (is_word(r->text[end]) || r->text[end] == '.'))
        end++;
    take(r, end, KEYWORD);
}

static void take_next(struct reading *r, size_t indent)
{
    char c = r->text[r->at], after = r->at + 1 < r->len ? r->text[r->at + 1] : '\0';
    int prefix = string_prefix(r);

    if (c == '#')
        take(r, r->len, COMMENT);
    else if (prefix >= 0)
        begin_string(r, (size_t)prefix);
    else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)after)))
        take_number(r);
    else if (is_word(c))
        take_word(r);
    else if (c == '@' && r->at == indent)
        take_decorator(r);
    else
        take(r, r->at + 1, 0);
}

/* %%time and the like are about Python; others are the name of what follows. */
static bool begins_foreign(const char *line, size_t len)
{
    static const char *const python[] = {"%%time", "%%capture", "%%prun"};

    if (len < 2 || memcmp(line, "%%", 2) != 0)
        return false;
    for (unsigned i = 0; i < sizeof(python) / sizeof(*python); i++) {
        if (len >= strlen(python[i]) && memcmp(line, python[i], strlen(python[i])) == 0)
            return false;
    }
    return true;
}

static void read_line(struct highlight *h, const char *text, size_t len)
{
    struct reading r = {.h = h, .text = text, .len = len};
    size_t indent = 0;

    while (indent < len && (text[indent] == ' ' || text[indent] == '\t'))
        indent++;
    if (h->foreign) {
        take(&r, len, 0);
    } else if (h->quote) {
        take_string(&r, 0);
    } else if (indent < len && (text[indent] == '!' || (text[indent] == '%' && indent == 0))) {
        h->foreign = !h->later && begins_foreign(text, len);
        take(&r, len, MAGIC);
    }
    while (r.at < len)
        take_next(&r, indent);
    h->later = true;
    h->line(h->ctx, &r.out);
    rich_done(&r.out);
}

void highlight_init(struct highlight *h, void (*line)(void *ctx, const struct rich *line),
                    void *ctx)
{
    *h = (struct highlight){.line = line, .ctx = ctx};
}

void highlight_done(struct highlight *h)
{
    buf_done(&h->pending);
}

void highlight_feed(struct highlight *h, const char *text, size_t len)
{
    for (const char *newline; len > 0 && (newline = memchr(text, '\n', len));) {
        size_t n = (size_t)(newline - text);
        buf_add(&h->pending, text, n);
        if (h->pending.len > 0 && h->pending.data[h->pending.len - 1] == '\r')
            h->pending.len--;
        read_line(h, buf_text(&h->pending), h->pending.len);
        h->pending.len = 0;
        text += n + 1;
        len -= n + 1;
    }
    buf_add(&h->pending, text, len);
}

void highlight_end(struct highlight *h)
{
    if (h->pending.len > 0)
        highlight_feed(h, "\n", 1);
    h->quote = '\0';
    h->foreign = h->later = false;
}
