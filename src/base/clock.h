/* clock: time that only goes on, and the time of day. */
#pragma once

#include <stdint.h>

int64_t clock_now_us(void);
int64_t clock_now_ms(void);
/* Milliseconds since 1970, as the host's clock says: it may jump. */
int64_t clock_wall_ms(void);
