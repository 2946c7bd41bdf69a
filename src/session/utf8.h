/* utf8: telling text from bytes that only look like it.
 *
 * What a box writes is bytes; what leaves us is UTF-8. Broken bytes become U+FFFD one for each
 * maximal part of a sequence, as Python's errors="replace" and the browsers do it. Overlong forms,
 * surrogates and what lies above U+10FFFF are broken.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

#define UTF8_REPLACEMENT "\xEF\xBF\xBD"

enum utf8_kind {
    UTF8_WHOLE,  /* one character */
    UTF8_CUT,    /* right so far, but the text ends within it */
    UTF8_BROKEN, /* stands for one U+FFFD */
};

/* What the text begins with, and how many bytes that is. len is at least 1. */
enum utf8_kind utf8_next(const char *text, size_t len, size_t *ret_n);

/* How many bytes from the start are valid, in whole characters. */
size_t utf8_valid(const char *text, size_t len);

/* How many bytes there are before a character that the end cuts off. */
size_t utf8_whole(const char *text, size_t len);

/* The largest n ≤ max at which valid text can be cut without cutting a character. */
size_t utf8_fit(const char *text, size_t len, size_t max);

/* How long it is once repaired. */
size_t utf8_repaired_len(const char *text, size_t len);

/* Add it with every broken part replaced. */
void utf8_repair(struct buf *b, const char *text, size_t len);

/* A repaired copy as a string: a NUL within it becomes U+FFFD as well. */
char *utf8_repaired(const char *text, size_t len);
