/* keyvalue: files with lines of the form "key = value".
 *
 * '#' begins a comment at the start of a line or after a blank; empty lines mean nothing. Keys and values come without
 * the blanks around them.
 */
#pragma once

#include "base/err.h"

/* One of them. 0, or -1 with a reason, which ends the reading. */
typedef int keyvalue_take(void *ctx, unsigned line, const char *key, char *value, struct err *e);

/* All of `text`, which is written to. The error begins with "path:line". */
int keyvalue_each(const char *path, char *text, keyvalue_take *take, void *ctx, struct err *e);
