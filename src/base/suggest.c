/* suggest: see suggest.h. */
#include "base/suggest.h"

#include <string.h>

#define WORD 32 /* longer words get no suggestion */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* How many letters must be put in, left out, changed or swapped to make b from a. */
static unsigned distance_of(const char *a, const char *b)
{
    unsigned d[WORD + 1][WORD + 1];
    size_t la = strlen(a), lb = strlen(b);

    if (la > WORD || lb > WORD)
        return WORD;
    for (size_t i = 0; i <= la; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= lb; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        for (size_t j = 1; j <= lb; j++) {
            unsigned change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(change, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[la][lb];
}

void suggest_offer(const char *word, const char *candidate, const char **best, unsigned *distance)
{
    unsigned d = distance_of(word, candidate);
    size_t len = strlen(word);

    /* The beginning of a name is a likely word too: "doc" for "doctor". */
    if (len >= 2 && strncmp(word, candidate, len) == 0)
        d = 1;
    if (d > 2 || d >= strlen(candidate))
        return;
    if (*best && *distance <= d)
        return;
    *best = candidate;
    *distance = d;
}
