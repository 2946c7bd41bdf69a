/* inherit: what init need not inherit. Runs in the keeper, once, before its first fork.
 *
 * retort is one program, and brings along the libraries of all its verbs: 280 mappings, of which the keeper
 * and init use forty. Every box would copy the others and take them apart again, a tenth of what a box costs.
 * So they are left out of the keeper's forks. In the keeper itself they stay, though nobody calls them; in
 * its forks nothing is where they were. Hence two rules:
 *
 *  1. A function that the loader binds at its first call is looked up in one library after the other.
 *     Those that init uses come first in the program's own list (meson.build).
 *  2. A library may have registered handlers for fork(), which would run in the fork: the keeper's forks are
 *     made without them, by _Fork() and clone3.
 */
#include "keeper/inherit.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OBJECTS_MAX 256

struct object {
    const char *name; /* of its file, without directories */
    struct dl_phdr_info info;
    bool needed;
};

struct objects {
    struct object list[OBJECTS_MAX];
    unsigned n;
};

/* What the other verbs use, and nothing that runs in a fork of the keeper. */
static bool is_of_other_verbs(const char *name)
{
    static const char *const begin[] = {"libarchive.so", "libcurl",          "libedit.so",
                                        "libmd4c.so",    "libmicrohttpd.so", "libsqlite3.so"};

    for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

static int note(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct objects *o = ctx;
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;

    if (o->n == OBJECTS_MAX)
        return 1;
    o->list[o->n++] = (struct object){.name = slash ? slash + 1 : info->dlpi_name, .info = *info};
    return 0;
}

static const ElfW(Dyn) * dynamic_of(const struct object *x)
{
    for (int i = 0; i < x->info.dlpi_phnum; i++)
        if (x->info.dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(x->info.dlpi_addr + x->info.dlpi_phdr[i].p_vaddr);
    return NULL;
}

static const char *names_of(const struct object *x, const ElfW(Dyn) * dynamic)
{
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag ==
            DT_STRTAB) /* the loader has added the address, but to the kernel's own object */
            return (const char *)(dynamic->d_un.d_ptr > x->info.dlpi_addr
                                      ? dynamic->d_un.d_ptr
                                      : x->info.dlpi_addr + dynamic->d_un.d_ptr);
    return NULL;
}

/* The objects that this one asks for. */
static void each_needed(struct objects *o, const struct object *x,
                        void (*act)(struct objects *, const struct object *, struct object *))
{
    const ElfW(Dyn) *dynamic = dynamic_of(x);
    const char *names = names_of(x, dynamic);

    for (; names && dynamic->d_tag != DT_NULL; dynamic++)
        for (unsigned i = 0; dynamic->d_tag == DT_NEEDED && i < o->n; i++)
            if (strcmp(o->list[i].name, names + dynamic->d_un.d_val) == 0)
                act(o, x, &o->list[i]);
}

static void need(struct objects *o, const struct object *by, struct object *x)
{
    if (x->needed || (by == &o->list[0] && is_of_other_verbs(x->name)))
        return;
    x->needed = true;
    each_needed(o, x, need);
}

static void note_asked_for(struct objects *o, const struct object *by, struct object *x)
{
    (void)o;
    (void)by;
    x->needed = false;
}

static void leave_out(const struct object *x)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = UINTPTR_MAX, end = 0;

    for (int i = 0; i < x->info.dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &x->info.dlpi_phdr[i];
        uintptr_t from = x->info.dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        begin = from < begin ? from : begin;
        end = from + p->p_memsz > end ? from + p->p_memsz : end;
    }
    begin &= ~(page - 1);
    end = (end + page - 1) & ~(page - 1);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTFORK);
}

void inherit_little(void)
{
    static struct objects o;

    o.n = 0;
    if (dl_iterate_phdr(note, &o) != 0)
        return; /* more than we know: then init inherits everything */
    /* Whatever nobody asks for was put there by somebody outside (LD_PRELOAD), and stays, like the program. */
    for (unsigned i = 0; i < o.n; i++)
        o.list[i].needed = true;
    for (unsigned i = 0; i < o.n; i++)
        each_needed(&o, &o.list[i], note_asked_for);
    for (unsigned i = 0; i < o.n; i++)
        if (o.list[i].needed)
            each_needed(&o, &o.list[i], need);
    for (unsigned i = 0; i < o.n; i++)
        if (!o.list[i].needed)
            leave_out(&o.list[i]);
}
