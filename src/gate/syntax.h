/* syntax: the grammar that header values have in common (RFC 9110, 5.6; RFC 8187).
 *
 * ASCII whatever the locale says. Texts end with a NUL; nothing is allocated but what a buffer takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

bool syntax_alnum(char c);
char syntax_lower(char c);
/* How many bytes of a token the text begins with. */
size_t syntax_token(const char *text);
/* Past spaces and tabs. */
const char *syntax_blanks(const char *text);
/* Are these len bytes the same, but for the case of letters? (strncasecmp asks the locale: in Turkish,
 * "I" is no "i".) */
bool syntax_same(const char *a, const char *b, size_t len);
/* Is this text of len bytes the word, in any case? */
bool syntax_is(const char *text, size_t len, const char *word);

struct param {
    const char *name,
        *value; /* slices of the header; the value is without its quotes, not unescaped */
    size_t name_len, value_len;
    bool quoted;
};

/* The next "; name=value" at *at, which moves behind it. 1: there is one; 0: the end, or a comma, at which
 * *at stands; -1: malformed. */
int syntax_param(const char **at, struct param *ret);

/* Decode %XX, once. -1 where a % is not followed by two hexadecimal digits. */
int syntax_percent_decode(struct buf *ret, const char *text, size_t len);
