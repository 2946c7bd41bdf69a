/* objects: how 120 shared objects are mapped, and why otherwise than the loader does it.
 *
 * The loader makes five mappings of each, of which two have pages of their own (what was relocated,
 * and the data). A fork copies all 650 mappings and the 4 KiB pages of the latter, the end of the box
 * takes them apart again, and in between every box faults the same code in, page by page. So, once
 * all is loaded:
 *
 *  1. The read-only segments get one set of rights, so that the kernel makes one mapping of them.
 *  2. Data goes into the image (image.h), in one mapping with what the loader made read-only after it
 *     had relocated it. That guards a program's tables against its own bugs. Here the program is
 *     the guest's, who can write where he likes in it; nothing that holds him lies in his memory.
 *  3. The interpreter's own code, which every box uses, goes into huge pages: they are there from the
 *     beginning.
 *
 * A fork and its end take half the time. Whatever is refused here leaves things as they were.
 */
#include "zygote/objects.h"

#include <Python.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "zygote/pages.h"

struct range {
    uintptr_t begin, end; /* whole pages */
};

static uintptr_t page_down(uintptr_t address)
{
    return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static uintptr_t page_up(uintptr_t address)
{
    return page_down(address + (uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static struct range segment(const struct dl_phdr_info *o, const ElfW(Phdr) * p)
{
    uintptr_t begin = o->dlpi_addr + p->p_vaddr;
    return (struct range){page_down(begin), page_up(begin + p->p_memsz)};
}

/* The read-only segments, if one of them is code and they lie one after the other in memory and in
 * the file. */
static struct range code_of(const struct dl_phdr_info *o)
{
    struct range all = {0, 0};
    uintptr_t shift = 0;
    bool runs = false;

    for (int i = 0; i < o->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &o->dlpi_phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        struct range r = segment(o, p);
        uintptr_t its_shift = p->p_vaddr - p->p_offset;
        if ((p->p_flags & PF_W) || (all.end && (r.begin != all.end || its_shift != shift)))
            break;
        if (!all.end)
            all.begin = r.begin;
        all.end = r.end;
        shift = its_shift;
        runs |= p->p_flags & PF_X;
    }
    return runs ? all : (struct range){0, 0};
}

static bool is_data(const ElfW(Phdr) * p)
{
    return p->p_type == PT_LOAD && (p->p_flags & (PF_W | PF_X)) == PF_W;
}

static void move_data(struct image *image, const struct dl_phdr_info *o)
{
    for (int i = 0; i < o->dlpi_phnum; i++) {
        struct range r = segment(o, &o->dlpi_phdr[i]);
        if (is_data(&o->dlpi_phdr[i]))
            image_take(image, r.begin, r.end);
    }
}

/* The part that fills huge pages. The code that runs here may be among it: it is the same before and
 * after, and is exchanged in one step. */
static void move_code(struct range code)
{
    uintptr_t begin = pages_round_up(code.begin), end = code.end & ~(PAGES_HUGE - 1);

    if (begin >= end)
        return;
    size_t size = end - begin, reserved = size + PAGES_HUGE;
    char *room = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return;
    char *copy = (char *)pages_round_up((uintptr_t)room);
    memcpy(copy, (void *)begin, size);
    /* In small pages it would cost more than it does as a file. */
    if (madvise(copy, size, MADV_COLLAPSE) == 0 && mprotect(copy, size, PROT_READ | PROT_EXEC) == 0)
        mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)begin);
    munmap(room, reserved); /* what is left of it */
}

static bool is_within(struct range r, uintptr_t address)
{
    return address >= r.begin && address < r.end;
}

static int settle(struct dl_phdr_info *o, size_t size, void *ctx)
{
    struct range code = code_of(o);
    (void)size;

    if (!code.end || o->dlpi_addr == getauxval(AT_SYSINFO_EHDR))
        return 0; /* an unusual one, or the kernel's own */
    mprotect((void *)code.begin, code.end - code.begin, PROT_READ | PROT_EXEC);
    if (is_within(code, (uintptr_t)PyObject_CallObject))
        move_code(code);
    move_data(ctx, o);
    return 0;
}

void objects_settle(struct image *image)
{
    dl_iterate_phdr(settle, image);
}
