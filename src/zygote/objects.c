/* objects: how 120 shared objects are mapped, and why otherwise than the loader does it.
 *
 * The loader makes five mappings of each, of which two have pages of their own (what was relocated,
 * and the data). A fork copies all 650 mappings and the 4 KiB pages of the latter, the end of the box
 * takes them apart again, and in between every box faults the same code in, page by page. So, once
 * all is loaded:
 *
 *  1. A row of libraries with nothing between them goes into the image (image.h) as it lies there, code and data
 *     in one mapping, which can be written and executed. Keeping those two apart guards a program against its
 *     own bugs. Here the program is the guest's, who can write where he likes in it and have memory
 *     executed as he likes; nothing that holds him lies in his memory.
 *  2. Where that is refused, or a library stands alone: its read-only segments get one set of rights, so that the
 *     kernel makes one mapping of them, and its data goes into the image.
 *  3. The interpreter's own code, which every box uses, goes into huge pages: they are there from the
 *     beginning.
 *
 * 34 mappings are left of 650. Whatever is refused here leaves things as they were.
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

#define OBJECTS_MAX 2048
#define GAP_MAX ((uintptr_t)1 << 20) /* the loader leaves pages free between two objects */

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

/* ---- each for itself ---- */

static void settle_alone(struct image *image, const struct dl_phdr_info *o)
{
    struct range code = code_of(o);

    if (!code.end)
        return; /* an unusual one */
    mprotect((void *)code.begin, code.end - code.begin, PROT_READ | PROT_EXEC);
    if (is_within(code, (uintptr_t)PyObject_CallObject))
        move_code(code);
    move_data(image, o);
}

/* ---- many as one ---- */

struct object {
    struct dl_phdr_info info;
    struct range all;
};

struct objects {
    struct object list[OBJECTS_MAX];
    unsigned n;
};

static struct range extent(const struct dl_phdr_info *o)
{
    struct range all = {UINTPTR_MAX, 0};

    for (int i = 0; i < o->dlpi_phnum; i++) {
        struct range r = segment(o, &o->dlpi_phdr[i]);
        if (o->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        all.begin = r.begin < all.begin ? r.begin : all.begin;
        all.end = r.end > all.end ? r.end : all.end;
    }
    return all;
}

/* In the order of their addresses. */
static int note(struct dl_phdr_info *o, size_t size, void *ctx)
{
    struct objects *objects = ctx;
    struct object new = {.info = *o, .all = extent(o)};
    unsigned at = objects->n;
    (void)size;

    /* The kernel's own stays as it is. */
    if (at == OBJECTS_MAX || o->dlpi_addr == getauxval(AT_SYSINFO_EHDR) || !new.all.end)
        return 0;
    for (; at > 0 && objects->list[at - 1].all.begin > new.all.begin; at--)
        objects->list[at] = objects->list[at - 1];
    objects->list[at] = new;
    objects->n++;
    return 0;
}

/* Nothing lies between them, and nothing will any more. */
static bool follows(const struct object *a, const struct object *b)
{
    uintptr_t gap = b->all.begin - a->all.end;

    if (b->all.begin < a->all.end || gap > GAP_MAX)
        return false;
    return gap == 0 || mmap((void *)a->all.end, gap, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
                            0) == (void *)a->all.end;
}

static bool has_python(const struct object *o)
{
    return is_within(o->all, (uintptr_t)PyObject_CallObject);
}

static bool copy_object(struct image *image, const struct object *o, uintptr_t base)
{
    for (int i = 0; i < o->info.dlpi_phnum; i++) {
        struct range r = segment(&o->info, &o->info.dlpi_phdr[i]);
        if (o->info.dlpi_phdr[i].p_type == PT_LOAD &&
            !image_copy(image, r.begin, r.end, r.begin - base))
            return false;
    }
    return true;
}

/* Whoever may not have memory that is code and can be written (a host may refuse it) has them one by one. */
static void settle_row(struct image *image, const struct object *first, unsigned n)
{
    struct range all = {first->all.begin, first[n - 1].all.end};
    bool copied = n > 1;

    for (unsigned i = 0; copied && i < n; i++)
        copied = copy_object(image, &first[i], all.begin);
    if (copied && image_show(image, all.begin, all.end, PROT_READ | PROT_WRITE | PROT_EXEC))
        return;
    for (unsigned i = 0; i < n; i++)
        settle_alone(image, &first[i].info);
}

void objects_settle(struct image *image)
{
    static struct objects objects;

    dl_iterate_phdr(note, &objects);
    for (unsigned i = 0, n; i < objects.n; i += n) {
        const struct object *first = &objects.list[i];
        for (n = 1; i + n < objects.n && !has_python(first) && !has_python(&first[n]) &&
                    follows(&first[n - 1], &first[n]);)
            n++;
        settle_row(image, first, n);
    }
}
