/* snapshot: see snapshot.h. Runs in init. The guest may change everything while we walk: each step is
 * relative to a descriptor, and follows no link. */
#include "init/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "init/files.h"

static uint64_t ns(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void snapshot_done(struct snapshot *s)
{
    for (unsigned i = 0; i < s->n; i++)
        free(s->list[i].path);
    free(s->list);
    *s = (struct snapshot){0};
}

void entry_fill(struct entry *x, const struct stat *st)
{
    x->size = (uint64_t)st->st_size;
    x->mtime_ns = ns(st->st_mtim);
    x->ctime_ns = ns(st->st_ctim);
    x->inode = st->st_ino;
    x->mode = st->st_mode;
}

bool entry_same(const struct entry *a, const struct entry *b)
{
    return a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

/* ---- one path ---- */

unsigned snapshot_place(const struct snapshot *s, const char *path)
{
    unsigned low = 0, high = s->n;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (strcmp(s->list[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct entry *snapshot_find(const struct snapshot *s, const char *path)
{
    unsigned i = snapshot_place(s, path);

    return i < s->n && strcmp(s->list[i].path, path) == 0 ? &s->list[i] : NULL;
}

static struct entry *insert(struct snapshot *s, unsigned at, const struct entry *x)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->list = realloc(s->list, s->cap * sizeof(*s->list));
        if (!s->list)
            bug("out of memory");
    }
    memmove(&s->list[at + 1], &s->list[at], (s->n - at) * sizeof(*s->list));
    s->n++;
    s->list[at] = *x;
    s->list[at].path = xstrdup(x->path);
    return &s->list[at];
}

void snapshot_append(struct snapshot *s, const struct entry *x)
{
    insert(s, s->n, x);
}

void snapshot_set(struct snapshot *s, const char *path, const struct stat *st)
{
    const struct entry fresh = {.path = (char *)(uintptr_t)path};
    struct entry *x = snapshot_find(s, path);

    entry_fill(x ? x : insert(s, snapshot_place(s, path), &fresh), st);
}

void snapshot_remove(struct snapshot *s, struct entry *x)
{
    size_t after = (size_t)(s->list + s->n - (x + 1));

    free(x->path);
    memmove(x, x + 1, after * sizeof(*x));
    s->n--;
}

/* ---- all of them ---- */

struct walk {
    struct snapshot *to;
    snapshot_enter *enter;
    void *ctx;
    bool all;
    char path[FILES_PATH];
};

static void walk_in(struct walk *w, int dir, size_t len, unsigned depth);

static void note(struct walk *w, const struct stat *st)
{
    struct entry x = {.path = w->path};

    entry_fill(&x, st);
    snapshot_append(w->to, &x);
}

/* What has this name, whose path is w->path[0..len). Vanished meanwhile: not there. */
static void walk_entry(struct walk *w, int dir, const struct dirent *d, size_t len, unsigned depth)
{
    struct stat st;
    bool known_dir = d->d_type == DT_DIR && !w->all;

    if (!w->all && d->d_type != DT_DIR && d->d_type != DT_REG && d->d_type != DT_UNKNOWN)
        return;
    if (!known_dir && fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (!known_dir && S_ISREG(st.st_mode)) {
        note(w, &st);
        w->to->linked |= st.st_nlink > 1;
        return;
    }
    if (w->all && (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode)))
        note(w, &st);
    if (!known_dir && !S_ISDIR(st.st_mode))
        return;
    int below = openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    w->to->shut |= below < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
    if (below < 0)
        return;
    memcpy(w->path + len, "/", 2);
    walk_in(w, below, len + 1, depth - 1);
}

/* Below `dir` (taken over), whose path is w->path[0..len). */
static void walk_in(struct walk *w, int dir, size_t len, unsigned depth)
{
    if (w->enter)
        w->enter(w->ctx, dir, w->path);
    DIR *d = fdopendir(dir);
    if (!d) {
        close(dir);
        w->to->shut = true;
        return;
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        size_t n = strlen(entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (w->to->n >= SNAPSHOT_FILES || len + n + 2 > FILES_PATH || depth == 0) {
            w->to->cut = true;
            break;
        }
        memcpy(w->path + len, entry->d_name, n + 1);
        walk_entry(w, dirfd(d), entry, len + n, depth);
    }
    closedir(d);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

void snapshot_sort(struct snapshot *s)
{
    if (s->n > 1)
        qsort(s->list, s->n, sizeof(*s->list), by_path);
}

static int take(struct snapshot *ret, snapshot_enter *enter, void *ctx, bool all, struct err *e)
{
    static struct walk w;
    int dir = openat(files_root(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_set(e, errno, "cannot read the workspace");
    *ret = (struct snapshot){0};
    w = (struct walk){.to = ret, .enter = enter, .ctx = ctx, .all = all};
    walk_in(&w, dir, 0, SNAPSHOT_DEPTH);
    snapshot_sort(ret);
    return 0;
}

int snapshot_take(struct snapshot *ret, snapshot_enter *enter, void *ctx, struct err *e)
{
    return take(ret, enter, ctx, false, e);
}

int snapshot_take_all(struct snapshot *ret, struct err *e)
{
    return take(ret, NULL, NULL, true, e);
}
