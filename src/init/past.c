/* past: see past.h. Runs in init. */
#include "init/past.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "init/files.h"
#include "init/snapshot.h"
#include "init/copies.h"

#define MISSING_MOST 2000 /* bytes of names */

/* One thing as it was. */
struct version {
    struct entry as; /* and still is, where the workspace has an entry_same */
    unsigned refs;
    struct piece contents; /* a file's; none: they were not copied */
    char *target;          /* a link's */
};

/* ---- memory ---- */

static void version_let_go(struct version *v, struct copies *s)
{
    if (--v->refs > 0)
        return;
    copies_drop(s, &v->contents);
    free(v->as.path);
    free(v->target);
    free(v);
}

void past_done(struct past *p)
{
    for (unsigned i = 0; i < p->n; i++)
        version_let_go(p->list[i], p->copies);
    free(p->list);
    *p = (struct past){0};
}

/* ---- taking ---- */

static void copy_in(struct copies *copies, struct version *v)
{
    struct err ignored;
    cleanup_fd int fd = files_open(v->as.path, &ignored);

    if (fd >= 0)
        copies_put(copies, fd, v->as.size, &v->contents);
}

static char *read_target(const char *path)
{
    char target[FILES_PATH];
    ssize_t n = readlinkat(files_root(), path, target, sizeof(target) - 1);

    if (n < 0)
        return NULL;
    target[n] = '\0';
    return xstrdup(target);
}

static struct version *find(const struct past *p, const char *path)
{
    unsigned low = 0, high = p ? p->n : 0;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = strcmp(p->list[middle]->as.path, path);
        if (order == 0)
            return p->list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static struct version *version_new(const struct entry *x)
{
    struct version *v = xcalloc(1, sizeof(*v));

    *v = (struct version){.as = *x, .refs = 1};
    v->as.path = xstrdup(x->path);
    if (S_ISLNK(x->mode))
        v->target = read_target(x->path);
    return v;
}

/* As it was at the moment before, with contents that are still to be had. */
static struct version *unchanged(const struct past *before, const struct entry *now)
{
    struct version *v = find(before, now->path);

    if (!v || !entry_same(&v->as, now) || v->as.mode != now->mode)
        return NULL;
    bool whole = !S_ISREG(now->mode) || copies_has(before->copies, &v->contents);
    return whole ? v : NULL;
}

int past_take(struct past *ret, const struct past *before, struct copies *copies, struct err *e)
{
    struct snapshot now;

    *ret = (struct past){.copies = copies};
    if (snapshot_take_all(&now, e) < 0)
        return -1;
    ret->list = xcalloc(now.n + 1, sizeof(*ret->list));
    for (unsigned i = 0; i < now.n; i++) {
        struct version *v = unchanged(before, &now.list[i]);
        if (v) {
            v->refs++;
        } else {
            v = version_new(&now.list[i]);
            if (S_ISREG(v->as.mode))
                copy_in(copies, v);
        }
        ret->list[ret->n++] = v;
    }
    copies_settle(copies);
    for (unsigned i = 0; i < ret->n; i++)
        ret->copied += ret->list[i]->refs == 1 ? ret->list[i]->contents.size : 0;
    ret->life = copies->life;
    snapshot_done(&now);
    return 0;
}

uint64_t past_weight(const struct past *p)
{
    return p->copied > 0 && p->life == p->copies->life ? p->copied : 0;
}

void past_share(struct past *ret, const struct past *before)
{
    *ret = (struct past){.list = xcalloc(before->n + 1, sizeof(*ret->list)),
                         .n = before->n,
                         .copies = before->copies};
    for (unsigned i = 0; i < before->n; i++) {
        ret->list[i] = before->list[i];
        ret->list[i]->refs++;
    }
}

/* ---- for others ---- */

/* Contents that nobody copied are in the file itself, as long as it is the same. */
static int open_unchanged(const struct version *v)
{
    struct err ignored;
    struct stat st;
    struct entry now = {0};

    cleanup_fd int fd = files_open(v->as.path, &ignored);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    entry_fill(&now, &st);
    return entry_same(&v->as, &now) ? fd_steal(&fd) : -1;
}

static int open_contents(const struct version *v, struct copies *copies, uint64_t *ret_offset)
{
    struct err ignored;
    int fd = copies_open(copies, &v->contents, ret_offset, &ignored);

    if (fd >= 0)
        return fd;
    *ret_offset = 0;
    return open_unchanged(v);
}

int past_each(const struct past *p, int (*each)(void *ctx, const struct past_item *x), void *ctx)
{
    uint64_t offset = 0;

    for (unsigned i = 0; i < p->n; i++) {
        const struct version *v = p->list[i];
        cleanup_fd int fd = S_ISREG(v->as.mode) ? open_contents(v, p->copies, &offset) : -1;
        const struct past_item x = {.path = v->as.path,
                                    .target = v->target,
                                    .mode = v->as.mode,
                                    .mtime_ns = v->as.mtime_ns,
                                    .size = v->as.size,
                                    .fd = fd,
                                    .offset = offset};
        if (S_ISREG(x.mode) && x.fd < 0)
            continue;
        if (each(ctx, &x) < 0)
            return -1;
    }
    return 0;
}

/* ---- going back ---- */

static int copy_out(const struct version *v, struct copies *copies, int to, struct err *e)
{
    if (ftruncate(to, 0) < 0 || lseek(to, 0, SEEK_SET) < 0)
        return err_set(e, errno, "cannot write %s", v->as.path);
    return copies_get(copies, &v->contents, to, e);
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

static int make_file(const char *path, struct err *e)
{
    struct err ignored;
    const char *name;

    files_delete(path, &ignored);
    cleanup_fd int dir = files_parent(path, &name, e);
    if (dir < 0)
        return -1;
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? err_set(e, errno, "cannot make %s", path) : fd;
}

/* The same inode where the name still has it: who has the file open finds in it what was there. */
static int restore_file(struct version *v, struct copies *copies, const struct entry *now,
                        struct err *e)
{
    struct stat st;

    if (!copies_has(copies, &v->contents))
        return err_set(e, EFBIG, "%s has changed, and was not kept", v->as.path);
    cleanup_fd int fd = -1;
    if (now && S_ISREG(now->mode) && now->inode == v->as.inode)
        fd = files_open_to_write(v->as.path, e);
    if (fd < 0)
        fd = make_file(v->as.path, e);
    if (fd < 0 || copy_out(v, copies, fd, e) < 0)
        return -1;
    const struct timespec times[2] = {time_of(v->as.mtime_ns), time_of(v->as.mtime_ns)};
    if (fchmod(fd, v->as.mode & 07777) < 0 || futimens(fd, times) < 0 || fstat(fd, &st) < 0)
        return err_set(e, errno, "cannot write %s", v->as.path);
    entry_fill(&v->as, &st); /* for the moments to come */
    return 0;
}

static int restore_dir(const struct version *v, const struct entry *now, struct err *e)
{
    struct err ignored;
    const char *name;

    if (now && S_ISDIR(now->mode))
        return 0;
    if (now)
        files_delete(v->as.path, &ignored);
    cleanup_fd int dir = files_parent(v->as.path, &name, e);
    if (dir < 0)
        return -1;
    if (mkdirat(dir, name, v->as.mode & 07777) < 0)
        return err_set(e, errno, "cannot make %s", v->as.path);
    return 0;
}

static int restore_link(const struct version *v, struct err *e)
{
    struct err ignored;
    const char *name;

    files_delete(v->as.path, &ignored);
    cleanup_fd int dir = files_parent(v->as.path, &name, e);
    if (dir < 0)
        return -1;
    if (!v->target || symlinkat(v->target, dir, name) < 0)
        return err_set(e, errno, "cannot make the link %s", v->as.path);
    return 0;
}

static int restore_one(struct version *v, struct copies *copies, const struct entry *now,
                       struct err *e)
{
    if (now && entry_same(&v->as, now))
        return 0;
    return S_ISDIR(v->as.mode)   ? restore_dir(v, now, e)
           : S_ISLNK(v->as.mode) ? restore_link(v, e)
                                 : restore_file(v, copies, now, e);
}

static void note_missing(struct buf *missing, const char *path)
{
    if (missing->len > MISSING_MOST)
        return;
    buf_add_fmt(missing, "%s%s", missing->len ? "\n" : "", path);
}

int past_restore(const struct past *p, struct buf *missing, struct err *e)
{
    struct snapshot now;
    struct err why;

    if (snapshot_take_all(&now, e) < 0)
        return -1;
    /* What is too much goes first: the space may be needed. From behind, the contents of a directory come
     * before it. */
    for (unsigned i = now.n; i-- > 0;)
        if (!find(p, now.list[i].path))
            files_delete(now.list[i].path, &why);
    for (unsigned i = 0; i < p->n; i++) {
        struct version *v = p->list[i];
        if (restore_one(v, p->copies, snapshot_find(&now, v->as.path), &why) < 0)
            note_missing(missing, v->as.path);
    }
    snapshot_done(&now);
    return 0;
}
