/* syntax: see syntax.h. */
#include "gate/syntax.h"

#include <string.h>

bool syntax_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

size_t syntax_token(const char *text)
{
    size_t n = 0;

    while (syntax_alnum(text[n]) || (text[n] && strchr("!#$%&'*+-.^_`|~", text[n])))
        n++;
    return n;
}

const char *syntax_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

char syntax_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool syntax_same(const char *a, const char *b, size_t len)
{
    size_t i = 0;

    while (i < len && syntax_lower(a[i]) == syntax_lower(b[i]))
        i++;
    return i == len;
}

bool syntax_is(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && syntax_same(text, word, len);
}

/* From behind the opening quote. A backslash keeps the next byte from being the closing one. */
static const char *quoted_end(const char *text)
{
    while (*text && *text != '"')
        text += text[0] == '\\' && text[1] ? 2 : 1;
    return *text ? text : NULL;
}

static int param_value(const char **at, struct param *ret)
{
    const char *end;

    ret->quoted = **at == '"';
    ret->value = ret->quoted ? *at + 1 : *at;
    end = ret->quoted ? quoted_end(ret->value) : ret->value + strcspn(ret->value, "\";, \t");
    if (!end || (!ret->quoted && end == ret->value))
        return -1;
    ret->value_len = (size_t)(end - ret->value);
    *at = end + ret->quoted;
    return 1;
}

int syntax_param(const char **at, struct param *ret)
{
    const char *p = syntax_blanks(*at);
    int r;

    *ret = (struct param){0};
    if (*p == ';') {
        /* Empty ones are allowed: "a; ; b=c;" */
        while (*p == ';')
            p = syntax_blanks(p + 1);
        if (*p && *p != ',') {
            ret->name = p;
            ret->name_len = syntax_token(p);
            p += ret->name_len;
            if (ret->name_len == 0 || *p++ != '=')
                return -1;
            r = param_value(&p, ret);
            *at = p;
            return r;
        }
    }
    *at = p;
    return *p && *p != ',' ? -1 : 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = syntax_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int syntax_percent_decode(struct buf *ret, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < len ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            c = (char)(high << 4 | low);
            i += 2;
        }
        buf_add(ret, &c, 1);
    }
    return 0;
}
