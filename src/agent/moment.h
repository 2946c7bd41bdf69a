/* moment: days and times of day, in the ways they are written. */
#pragma once

#include <stdbool.h>

/* A day or a time of day as a number that no other thing has: the same moment has the same number, however it
 * is written. */
struct moment {
    const char *at, *end; /* with the month's name, where it has one */
    double codes[2];      /* the second where day and month could be each other */
    unsigned n_codes;
    double lasts; /* the moments of one code go on so far: a minute has 60 seconds */
    double
        as_number; /* as programs write it without separators: 20260315; an hour alone; or a negative */
};
/* Whether the digit at `at` begins one, or stands in one behind a month's name. */
bool moment_scan(const char *begin, const char *at, const char *end, struct moment *ret);
