/* image: see image.h. Runs in the zygote, before its first fork. */
#include "zygote/image.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

void image_open(struct image *i)
{
    *i = (struct image){.fd = memfd_create("retort-zygote", MFD_CLOEXEC)};
}

/* The mappings remain, and nobody can write to the file any more. */
void image_close(struct image *i)
{
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

    return i->fd >= 0 &&
           pwrite(i->fd, (void *)begin, size, i->size + (off_t)at) == (ssize_t)size;
}

bool image_show(struct image *i, uintptr_t begin, uintptr_t end, int rights)
{
    size_t size = end - begin;

    if (mmap((void *)begin, size, rights, MAP_PRIVATE | MAP_FIXED, i->fd, i->size) == MAP_FAILED)
        return false;
    i->size += (off_t)size;
    return true;
}
