/* image: see image.h. Runs in the zygote, before its first fork; image_forget in forks. */
#include "zygote/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "zygote/pages.h"

#define NAME "retort-zygote"

void image_open(struct image *i)
{
    *i = (struct image){.fd = memfd_create(NAME, MFD_CLOEXEC)};
}

/* In huge pages: whoever touches one of its small ones finds those around it at once, and a fork that copies
 * entries counts them together. Best effort, and never the last piece. */
static void collapse(const struct image *i)
{
    size_t size = (size_t)i->size & ~(PAGES_HUGE - 1);
    void *room = mmap(NULL, size + PAGES_HUGE, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED)
        return;
    void *all = (void *)pages_round_up((uintptr_t)room);
    if (size > 0 &&
        mmap(all, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, i->fd, 0) == all)
        for (size_t at = 0; at < size; at += PAGES_HUGE)
            madvise((char *)all + at, PAGES_HUGE, MADV_COLLAPSE);
    munmap(room, size + PAGES_HUGE);
}

/* The mappings remain, and nobody can write to the file any more. */
void image_close(struct image *i)
{
    if (i->fd >= 0)
        collapse(i);
    fd_close(&i->fd);
}

/* Nothing is written to between the copy and the mapping: even the heap, the C library's data and our
 * own can be taken. */
bool image_take(struct image *i, uintptr_t begin, uintptr_t end)
{
    return image_copy(i, begin, end, 0) && image_show(i, begin, end, PROT_READ | PROT_WRITE);
}

bool image_copy(struct image *i, uintptr_t begin, uintptr_t end, uintptr_t at)
{
    size_t size = end - begin;

    return i->fd >= 0 && pwrite(i->fd, (void *)begin, size, i->size + (off_t)at) == (ssize_t)size;
}

bool image_show(struct image *i, uintptr_t begin, uintptr_t end, int rights)
{
    size_t size = end - begin;

    if (mmap((void *)begin, size, rights, MAP_PRIVATE | MAP_FIXED, i->fd, i->size) == MAP_FAILED)
        return false;
    i->size += (off_t)size;
    return true;
}

/* Those that were written to are no longer the file's, and stay. */
static bool forget(void *ctx, uintptr_t address, uint64_t entry)
{
    uintptr_t *run = ctx; /* where a row of the file's begins; 0: nowhere */
    const uint64_t files = PAGES_PRESENT | PAGES_OF_FILE;

    if ((entry & files) == files) {
        *run = *run ? *run : address;
    } else if (*run) {
        madvise((void *)*run, address - *run, MADV_DONTNEED);
        *run = 0;
    }
    return true;
}

static void forget_between(int pagemap, uintptr_t begin, uintptr_t end)
{
    uintptr_t run = 0;

    if (pages_walk(pagemap, begin, end, forget, &run))
        forget(&run, end, 0);
}

void image_forget(int pagemap)
{
    char line[512];
    FILE *maps = pagemap < 0 ? NULL : fopen("/proc/self/maps", "re");

    while (maps && fgets(line, sizeof(line), maps)) {
        uintptr_t begin, end;
        char rights[5];
        if (strstr(line, "/memfd:" NAME) &&
            sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, rights) == 3 &&
            rights[3] == 'p')
            forget_between(pagemap, begin, end);
    }
    if (maps)
        fclose(maps);
}
