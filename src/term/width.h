/* width: characters and the columns that they take. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The character that valid UTF-8 of n bytes is. */
uint32_t width_decode(const char *text, size_t n);
/* How many columns a character takes: 0, 1 or 2. -1: it may not be shown, because it is a control character, or
 * changes the order in which others are shown, or is nothing that anybody could see. */
int width_of(uint32_t c);
/* Of valid UTF-8 that can be shown. */
unsigned width_text(const char *text, size_t len);
