/* clock: time that only goes on, and the time of day. */
#pragma once

#include <stdint.h>

int64_t clock_now_us(void);
int64_t clock_now_ms(void);
/* Milliseconds since 1970, as the host's clock says: it may jump. */
int64_t clock_wall_ms(void);
/* The same as RFC 3339 has it, in UTC: "2026-11-16T12:00:00.000Z". Returns ret. */
#define CLOCK_TEXT 48
char *clock_text(int64_t wall_ms, char ret[CLOCK_TEXT]);
/* -1: it is not written so. */
int clock_from_text(const char *text, int64_t *ret_wall_ms);
