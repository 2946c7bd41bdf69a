/* suggest: "did you mean …?" */
#pragma once

/* How many letters must be put in, left out, changed or swapped to make b from a. */
unsigned suggest_distance(const char *a, const char *b);

/* Offer `candidate` for `word`; *best and *distance keep the nearest so far. Start with NULL and 0.
 * Candidates that are no likely slip of the finger are not taken. */
void suggest_offer(const char *word, const char *candidate, const char **best, unsigned *distance);
