/* hot: why pages are pinned.
 *
 * A box writes to three hundred pages of the zygote's merely by counting references, and they are the same in every box.
 * Each is a page fault: the processor stops, the kernel looks for the mapping and the page, copies it, and
 * makes the processor forget the old one. That was a quarter of what a box costs, most of it not the copying.
 *
 * A fork never shares a page that is pinned in memory, since a device may be writing to it: it copies such a
 * page at once, in one go with its tables. So the pages that a rehearsal writes to are pinned here, as buffers
 * that are registered with a ring of io_uring's. The ring is never used. A box has its descriptor until it
 * closes all that it is not meant to have (kernel-descriptors), which is before any user code, and its filter knows no io_uring.
 *
 * A huge page is pinned as a whole, and would be copied as a whole. So those with hot parts go into an image first
 * (image.h), of which a fork copies nothing but what is hot; and a second rehearsal tells what that is.
 *
 * Those go there too that only sessions write to which work with the libraries. A huge page that is written to falls
 * into 512 small ones, and whenever such a session is forked, to be kept or as a branch, each is an entry to copy: with
 * pandas at work they were twelve thousand. They are not pinned: most boxes end before they come to it.
 *
 * What a fork copies in this way counts as the zygote's memory, not the box's: the same few pages for each
 * box, which are gone with it.
 */
#define PY_SSIZE_T_CLEAN
#include "zygote/hot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "zygote/image.h"
#include "zygote/pages.h"

#define PAGE PAGES_SIZE
#define HOT_MAX 8192    /* pages */
#define PINNED_MAX 1536 /* of them: 6 MiB, within what an ordinary user may pin */
#define RANGES_MAX 128
#define REHEARSAL_S 10 /* then it is ended */

struct range {
    uintptr_t begin, end;
    bool may_be_huge;
};

/* Shared with the rehearsal, and nothing that a box has. */
struct notes {
    struct range ranges[RANGES_MAX];
    unsigned n_ranges;
    struct {
        uintptr_t address;
        unsigned range;
    } hot[HOT_MAX];
    unsigned n_hot;
    bool complete;
    struct iovec runs[PINNED_MAX];
};

/* What a box could write to, as it is now. */
static void note_ranges(struct notes *n)
{
    char line[512];

    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && n->n_ranges < RANGES_MAX && fgets(line, sizeof(line), maps)) {
        uintptr_t begin, end;
        char rights[5], name[8] = "";
        int found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %7s", &begin, &end,
                           rights, name);
        if (found < 3 || rights[1] != 'w' || rights[3] != 'p')
            continue;
        n->ranges[n->n_ranges].begin = begin;
        n->ranges[n->n_ranges].end = end;
        n->ranges[n->n_ranges++].may_be_huge =
            name[0] != '/' && strcmp(name, "[stack]") != 0 && end - begin >= PAGES_HUGE;
    }
    if (maps)
        fclose(maps);
}

/* ---- in the rehearsal ---- */

struct looking {
    struct notes *notes;
    unsigned range;
};

/* False: these are no longer few. */
static bool note_page(void *ctx, uintptr_t address, uint64_t entry)
{
    const struct looking *l = ctx;
    struct notes *n = l->notes;

    if ((entry & (PAGES_PRESENT | PAGES_OF_FILE | PAGES_ONLY_HERE)) !=
        (PAGES_PRESENT | PAGES_ONLY_HERE))
        return true; /* it shares it with the zygote */
    if (n->n_hot == HOT_MAX)
        return false;
    n->hot[n->n_hot].address = address;
    n->hot[n->n_hot++].range = l->range;
    return true;
}

static void note_pages(struct notes *n)
{
    cleanup_fd int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    for (unsigned r = 0; r < n->n_ranges; r++) {
        struct looking l = {n, r};
        if (!pages_walk(pagemap, n->ranges[r].begin, n->ranges[r].end, note_page, &l))
            return;
    }
    n->complete = true;
}

static bool learn(struct notes *n, PyObject *rehearse)
{
    n->n_ranges = n->n_hot = 0;
    n->complete = false;
    note_ranges(n);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(REHEARSAL_S); /* nobody has a handler for it here */
        PyOS_AfterFork_Child();
        if (PyObject_CallObject(rehearse, NULL))
            note_pages(n);
        _exit(0);
    }
    if (pid < 0)
        return false;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return n->complete;
}

/* ---- in the zygote ---- */

/* The huge pages with something hot in them, each row of them at once. */
static void move_huge(const struct notes *n, struct image *image)
{
    uintptr_t begin = 0, end = 0;

    for (unsigned i = 0; i < n->n_hot; i++) {
        const struct range *r = &n->ranges[n->hot[i].range];
        uintptr_t huge = n->hot[i].address & ~(PAGES_HUGE - 1);
        if (!r->may_be_huge || huge < r->begin || huge + PAGES_HUGE > r->end)
            continue; /* it is in small pages already */
        if (huge != end && huge + PAGES_HUGE != end) {
            if (begin < end)
                image_take(image, begin, end);
            begin = huge;
        }
        end = huge + PAGES_HUGE;
    }
    if (begin < end)
        image_take(image, begin, end);
}

static void pin(int ring, struct notes *n)
{
    unsigned runs = 0;

    for (unsigned i = 0; i < n->n_hot && i < PINNED_MAX; i++) {
        struct iovec *last = runs > 0 ? &n->runs[runs - 1] : NULL;
        if (n->ranges[n->hot[i].range].may_be_huge)
            continue;
        if (last && (uintptr_t)last->iov_base + last->iov_len == n->hot[i].address)
            last->iov_len += PAGE;
        else
            n->runs[runs++] = (struct iovec){(void *)n->hot[i].address, PAGE};
    }
    syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, n->runs, runs);
}

void hot_settle(PyObject *rehearse, PyObject *more)
{
    struct io_uring_params none = {0};

    if ((uintptr_t)sysconf(_SC_PAGESIZE) != PAGE)
        return;
    /* Stays open as long as the zygote lives. */
    int ring = (int)syscall(SYS_io_uring_setup, 1, &none);
    if (ring < 0)
        return;
    struct notes *n =
        mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n == MAP_FAILED)
        return;
    struct image image;
    image_open(&image);
    if (learn(n, more))
        move_huge(n, &image);
    if (learn(n, rehearse))
        move_huge(n, &image);
    image_close(&image);
    if (learn(n, rehearse))
        pin(ring, n);
    munmap(n, sizeof(*n));
}
