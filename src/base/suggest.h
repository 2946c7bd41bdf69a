/* suggest: "did you mean …?" */
#pragma once

/* Offer `candidate` for `word`; *best and *distance keep the nearest so far. Start with NULL and 0.
 * Candidates that are no likely slip of the finger are not taken. */
void suggest_offer(const char *word, const char *candidate, const char **best, unsigned *distance);
