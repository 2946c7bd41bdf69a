/* claims: the numbers that an answer names, each as what would found it. See numbers.h for the rules. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

#define CLAIM_INTERVALS 6u /* two readings at most, in three units */

/* A number in the evidence that lies in one of the intervals founds it. */
struct interval {
    double lo, hi;
};

struct claim {
    const char *at;
    size_t len;
    struct interval intervals[CLAIM_INTERVALS];
    unsigned n_intervals;
};

/* All of them, in their order: *ret holds an array of struct claim, whose texts are the answer's own. */
void claims_read(const char *answer, size_t len, struct buf *ret);
