/* shared: see shared.h. Runs in forks of an interpreter, which have one thread. */
#include "zygote/shared.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"

/* Of system files there is nothing to be said: nobody writes to them. */
static bool is_of_box(const char *path)
{
    static const char *const places[] = {BOX_WORKSPACE "/", BOX_HOME "/", "/tmp/", "/dev/shm/"};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0)
            return true;
    return false;
}

static void note_mapping(struct shared_list *l, const char *line)
{
    unsigned long start, end, offset;
    char perms[5], path[PATH_MAX] = "";

    if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %4095[^\n]", &start, &end, perms, &offset, path) <
            4 ||
        perms[3] != 's')
        return;
    bool named = is_of_box(path) && !strstr(path, " (deleted)");
    if (!named && perms[1] != 'w')
        return;
    l->list = realloc(l->list, (l->n + 1) * sizeof(*l->list));
    if (!l->list)
        _exit(1);
    l->list[l->n++] = (struct shared){
        .start = (char *)start, /* NOLINT: an address as the kernel writes it */
        .len = end - start,
        .prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
                (perms[2] == 'x' ? PROT_EXEC : 0),
        .offset = (off_t)offset,
        .path = named ? xstrdup(path) : NULL};
}

int shared_note(struct shared_list *l)
{
    char *line = NULL;
    size_t size = 0;
    FILE *maps = fopen("/proc/self/maps", "re");

    *l = (struct shared_list){0};
    if (!maps)
        return -1;
    setvbuf(maps, NULL, _IOFBF, 1 << 16); /* each call begins with a search */
    while (getline(&line, &size, maps) > 0)
        note_mapping(l, line);
    bool all = feof(maps);
    free(line);
    fclose(maps);
    return all ? 0 : -1;
}

size_t shared_left_behind(const struct shared_list *l)
{
    size_t sum = 0;

    for (unsigned i = 0; i < l->n; i++)
        sum += l->list[i].prot & PROT_WRITE ? l->list[i].len : 0;
    return sum;
}

void shared_done(struct shared_list *l)
{
    for (unsigned i = 0; i < l->n; i++)
        free(l->list[i].path);
    free(l->list);
}

/* The branch's own file of that name, if it reaches as far. */
static bool map_own_file(const struct shared *x)
{
    struct stat st;
    cleanup_fd int fd =
        x->path ? open(x->path, (x->prot & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC) : -1;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > x->offset &&
           mmap(x->start, x->len, x->prot, MAP_SHARED | MAP_FIXED, fd, x->offset) != MAP_FAILED;
}

/* Else what is in it now, for itself alone. */
static bool map_copy(const struct shared *x)
{
    void *copy = mmap(NULL, x->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return false;
    if (x->prot & PROT_READ)
        memcpy(copy, x->start, x->len);
    return mprotect(copy, x->len, x->prot) == 0 &&
           mremap(copy, x->len, x->len, MREMAP_MAYMOVE | MREMAP_FIXED, x->start) != MAP_FAILED;
}

void shared_split(const struct shared_list *l)
{
    for (unsigned i = 0; i < l->n; i++) {
        if (!map_own_file(&l->list[i]) && !map_copy(&l->list[i]))
            _exit(1); /* better none than one that writes into the other's memory */
    }
}
