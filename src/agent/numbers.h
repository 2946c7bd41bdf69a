/* numbers: which numbers of an answer stand in no output.
 *
 * A number is founded when one in the evidence rounds to it, at the digits that the answer gives: 12.3 by 12.3456,
 * "1.2 million" by 1234567, 45 % by 0.4512 and by 45. After "about" and the like, zeros at the end of a
 * whole number are not digits that are given. What follows from founded numbers (a difference, a share) is not
 * founded: that is what is pointed out.
 *
 * Each of these readings is tried, and one that is founded is enough:
 *     1,234.5  1 234,5  1_234  1'234  1.234,5  1e6  1.2 × 10^6  12 k  1.5 MB
 * A number without a sign is founded by a negative one as well, since "fell by" is a sign too. A day is founded by the
 * same day, a time by the same time, however either is written.
 *
 * Not taken for a number that is claimed:
 *   - whole numbers from 0 to 10 without a sign, a currency, a percent sign or "million" ("the 5 cities"), and words ("three");
 *   - what counts: "1." and "1)" at a line's start, the first column of a table that counts its rows, 3rd, #3, [3];
 *   - what is in code spans and blocks, links' addresses, names and identifiers (sales_2023.csv, Q3, GPT-4, 1.2.3);
 *   - what statistics say by habit: p < 0.05, a 95 % confidence interval.
 *
 * Takes time in proportion to n log m for n bytes of evidence and m of the answer, and memory for the answer's numbers only.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define NUMBERS_ANSWER_MAX (1u << 20)    /* bytes that are looked at */
#define NUMBERS_EVIDENCE_MAX (64u << 20) /* … of all of it together */

/* Texts as they stand in the answer, each once, in their order. The evidence is what was put out, the question,
 * the names of files. */
json_t *numbers_unfounded(const char *answer, const char *const *evidence, size_t n);
