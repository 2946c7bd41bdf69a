/* pages: the zygote's memory in huge pages, for the sake of its forks. */
#pragma once

#include <stdint.h>

#include "zygote/image.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define PAGES_HUGE ((uintptr_t)2 << 20)

static inline uintptr_t pages_round_up(uintptr_t address)
{
    return (address + PAGES_HUGE - 1) & ~(PAGES_HUGE - 1);
}

/* Before the imports: Python's arenas come from one place from now on. */
void pages_gather(void);

/* After the warm-up: arenas come from where they came before, what lies together is put into huge pages,
 * and what is left over into the image. */
void pages_settle(struct image *image);
