/* pages: why huge ones.
 *
 * A fork copies an entry of the page table for every 4 KiB that the zygote has written, and the end of
 * the box takes it back: 25,000 entries with pandas and matplotlib, which is most of what a box costs.
 * One entry stands for 2 MiB where the page is huge. A box that writes there has the entry split and
 * copies 4 KiB as ever, so its private memory stays as small.
 *
 * CPython takes arenas of 1 MiB wherever the kernel finds room, between the libraries: too small and
 * too scattered for huge pages. So we lend it a region for them while it warms up. What does not fill a
 * huge page goes into the image (image.h). Where anything here is not to be had (another allocator, a
 * kernel before 6.1), boxes work and cost more.
 */
#include "zygote/pages.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEFTOVER_MIN ((uintptr_t)64 << 10) /* below this a mapping more costs more than its pages */
#define LEFTOVERS_MAX 64
#define REGION ((size_t)1 << 30) /* reserved, not used: what is left goes back */

/* From Python's documented C API; not part of the stable ABI, hence looked up, and declared here. */
struct arena_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *arena, size_t size);
};
typedef void arena_access(struct arena_allocator *);

/* An arena that Python has given back: kept for the next, so that no hole appears in the region. */
struct free_arena {
    struct free_arena *next;
    size_t size;
};

static struct arena_allocator former;
static uintptr_t region_begin, region_next, region_end;
static struct free_arena *free_arenas;

static void *arena_alloc(void *ctx, size_t size)
{
    (void)ctx;
    struct free_arena *arena = free_arenas;
    if (arena && arena->size == size) {
        free_arenas = arena->next;
        return arena;
    }
    if (size > region_end - region_next)
        return former.alloc(former.ctx, size);
    region_next += size;
    return (void *)(region_next - size);
}

static void arena_free(void *ctx, void *address, size_t size)
{
    (void)ctx;
    if ((uintptr_t)address < region_begin || (uintptr_t)address >= region_end) {
        former.free(former.ctx, address, size);
        return;
    }
    struct free_arena *arena = address;
    *arena = (struct free_arena){.next = free_arenas, .size = size};
    free_arenas = arena;
}

static void set_allocator(const char *how, struct arena_allocator *allocator)
{
    arena_access *access = (arena_access *)(uintptr_t)dlsym(RTLD_DEFAULT, how);
    if (access)
        access(allocator);
}

void pages_gather(void)
{
    set_allocator("PyObject_GetArenaAllocator", &former);
    if (!former.alloc)
        return;
    void *region = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
        return;
    region_begin = region_next = pages_round_up((uintptr_t)region);
    region_end = (uintptr_t)region + REGION;
    set_allocator("PyObject_SetArenaAllocator",
                  &(struct arena_allocator){.alloc = arena_alloc, .free = arena_free});
}

/* CPython's own arenas are mappings too: from now on it unmaps ours as it does its own. */
static void give_back_region(void)
{
    if (region_end) {
        set_allocator("PyObject_SetArenaAllocator", &former);
        munmap((void *)region_next, region_end - region_next);
    }
    for (struct free_arena *arena; (arena = free_arenas);) {
        free_arenas = arena->next;
        munmap(arena, arena->size);
    }
}

struct leftovers {
    struct {
        uintptr_t begin, end;
    } list[LEFTOVERS_MAX];
    unsigned n;
};

static void note_leftover(struct leftovers *l, uintptr_t begin, uintptr_t end)
{
    if (end - begin < LEFTOVER_MIN || l->n == LEFTOVERS_MAX)
        return;
    l->list[l->n].begin = begin;
    l->list[l->n++].end = end;
}

static void collapse(uintptr_t begin, uintptr_t end, struct leftovers *l)
{
    uintptr_t first = pages_round_up(begin), last = end & ~(PAGES_HUGE - 1);

    if (first >= last) {
        note_leftover(l, begin, end);
        return;
    }
    for (uintptr_t page = first; page < last; page += PAGES_HUGE)
        madvise((void *)page, PAGES_HUGE, MADV_COLLAPSE);
    note_leftover(l, begin, first);
    note_leftover(l, last, end);
}

void pages_settle(struct image *image)
{
    struct leftovers leftovers = {.n = 0};
    char line[512];

    give_back_region();
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return;
    while (fgets(line, sizeof(line), maps)) {
        uintptr_t begin, end;
        char rights[5], name[8] = "";
        int n = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %7s", &begin, &end, rights,
                       name);
        /* Writable, private, and of no file: the arenas, and the C library's heap. */
        if (n >= 3 && rights[1] == 'w' && rights[3] == 'p' && name[0] != '/' &&
            strcmp(name, "[stack]") != 0)
            collapse(begin, end, &leftovers);
    }
    fclose(maps);
    for (unsigned i = 0; i < leftovers.n; i++)
        image_take(image, leftovers.list[i].begin, leftovers.list[i].end);
}

bool pages_walk(int pagemap, uintptr_t begin, uintptr_t end,
                bool (*see)(void *ctx, uintptr_t address, uint64_t entry), void *ctx)
{
    uint64_t entries[512]; /* on the stack: static memory may be what is looked at */

    for (uintptr_t at = begin; at < end;) {
        size_t left = (end - at) / PAGES_SIZE, want = left < 512 ? left : 512;
        ssize_t got = pread(pagemap, entries, want * 8, (off_t)(at / PAGES_SIZE * 8));
        if (got < 8)
            return false;
        for (size_t i = 0; i < (size_t)got / 8; i++, at += PAGES_SIZE)
            if (!see(ctx, at, entries[i]))
                return false;
    }
    return true;
}
