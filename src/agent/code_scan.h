/* code_scan: the code in a call's arguments, while they come in.
 *
 * Arguments are JSON, {"code":"import pandas…"}, and come in pieces that are cut anywhere: within an escape,
 * between two halves of a surrogate pair. What of the code is certain is given out at once, so that it can be seen
 * while it is written. It is also more lenient than JSON, because models are: line feeds may stand in a string as
 * they are, and half a pair is U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct code_scan {
    enum {
        SCAN_BEGIN,
        SCAN_BEFORE_KEY,
        SCAN_KEY,
        SCAN_AFTER_KEY,
        SCAN_BEFORE_VALUE,
        SCAN_SCALAR, /* values that are not looked for */
        SCAN_STRING,
        SCAN_NEST,
        SCAN_NEST_STRING,
        SCAN_CODE,
        SCAN_AFTER_VALUE,
        SCAN_END,
        SCAN_LOST /* it is nothing that we understand */
    } state;
    unsigned depth;   /* of brackets, in a nest */
    bool escaped;     /* a backslash was last, in a string that is passed over */
    unsigned matched; /* of the key: how much of "code" it is so far */
    bool found;       /* the code is whole */
    /* in the code: */
    unsigned
        escape; /* 0: none; 1: after its backslash; 2 to 5: digits that are still to come, and one */
    unsigned unit; /* of UTF-16, as far as its digits go */
    unsigned high; /* the first half of a pair; 0: none */
};

/* More of the arguments, in UTF-8; what of them is code is added to `out`. */
void code_scan(struct code_scan *s, const char *text, size_t len, struct buf *out);
/* Was that all, and is it an object with one code in it? */
bool code_scan_whole(const struct code_scan *s);
