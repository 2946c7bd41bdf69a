/* image: memory of the zygote's as a file, for the sake of its forks.
 *
 * A fork copies an entry for every page of anonymous memory, and none for pages of a file: whoever
 * touches those finds them there. Writing copies the page in either case. So what most boxes leave alone
 * is cheaper as a private mapping of a file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct image {
    int fd; /* -1: it cannot be had, and everything stays as it is */
    off_t size;
};

void image_open(struct image *i);
void image_close(struct image *i);

/* Put these pages, as they are now, into the file, and have them from there, writable. False: they are
 * where they were. */
bool image_take(struct image *i, uintptr_t begin, uintptr_t end);

/* The same in two steps, for pages with holes between them: copy each range to where it will be, so far behind
 * the beginning of what is shown in the end. */
bool image_copy(struct image *i, uintptr_t begin, uintptr_t end, uintptr_t at);
bool image_show(struct image *i, uintptr_t begin, uintptr_t end, int rights);

/* In a fork that only waits: forget which pages of the file were looked at. They are where they were, and whoever is
 * forked from it finds what it needs; but a fork copies the entries of all that were, where some were written to.
 * `pagemap` is its own /proc/self/pagemap. */
void image_forget(int pagemap);
