/* err: see err.h. */
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;

    e->code = code;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (code && n >= 0 && (size_t)n < sizeof(e->text))
        snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", strerror(code));
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char inner[sizeof(e->text)];
    va_list ap;

    memcpy(inner, e->text, sizeof(inner));
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(e->text))
        snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", inner);
    return -1;
}

void bug(const char *fmt, ...)
{
    va_list ap;

    fputs("retort: bug: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}
