/* progress: one line that says what is waited for, and since when.
 *
 *     ⠹ thinking  12 s  …the five cities that sell
 *
 * Here is only what the line says; drawing it over and taking it away is the outlet's (outlet_transient).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "term/rich.h"
#include "term/term.h"

struct progress {
    int64_t since_ms;
    const char *what; /* NULL: nothing is waited for */
};

/* From now on this is waited for. The same again goes on. */
void progress_begin(struct progress *p, const char *what, int64_t now_ms);
void progress_stop(struct progress *p);
/* The line as it is now, with the end of a foreign text; always narrower than the terminal. */
void progress_line(const struct progress *p, const struct term *t, int64_t now_ms, const char *tail,
                   size_t len, struct buf *out);
