/* words: sizes and limits as a sentence has them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "session/session.h"

/* "12.3 kB", as a person reads a size. */
#define WORDS_SIZE 24
char *words_size(uint64_t bytes, char ret[WORDS_SIZE]);
/* "64 MiB" for a limit that is a round number, else the same. */
char *words_limit_size(uint64_t bytes, char ret[WORDS_SIZE]);

/* The limit that a cell met: "wall time limit of 2 s". `limits` are the session's, where they are known. Returns
 * the name of the limit. */
const char *words_limit(const struct cell *c, const struct limits *limits, char *ret, size_t size);
