/* clock: monotonic time. */
#pragma once

#include <stdint.h>

int64_t clock_now_us(void);
int64_t clock_now_ms(void);
