/* pages: the zygote's memory in huge pages, for the sake of its forks. */
#pragma once

#include <stdbool.h>
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

/* A page's entry in /proc/self/pagemap. */
#define PAGES_SIZE ((uintptr_t)4096)
#define PAGES_PRESENT (UINT64_C(1) << 63)
#define PAGES_OF_FILE (UINT64_C(1) << 61)
#define PAGES_ONLY_HERE (UINT64_C(1) << 56)

/* See each page of a range; false, and no further, where `see` says so or the file does. */
bool pages_walk(int pagemap, uintptr_t begin, uintptr_t end,
                bool (*see)(void *ctx, uintptr_t address, uint64_t entry), void *ctx);

/* Before the imports: Python's arenas come from one place from now on. */
void pages_gather(void);

/* After the warm-up: arenas come from where they came before, what lies together is put into huge pages,
 * and what is left over into the image. */
void pages_settle(struct image *image);
