/* past: see past.h. Runs in init. */
#include "init/past.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "init/files.h"
#include "init/snapshot.h"

/* Contents that were copied at one moment, one after the other. */
struct segment {
    int fd;
    uint64_t size;
    unsigned refs;
};

/* One thing as it was. */
struct version {
    struct entry as; /* and still is, where the workspace has an entry_same */
    unsigned refs;
    struct segment *in; /* a file's contents; NULL: they were not copied */
    uint64_t offset;
    char *target; /* a link's */
};

/* ---- memory ---- */

static void segment_let_go(struct segment *s)
{
    if (!s || --s->refs > 0)
        return;
    fd_close(&s->fd);
    free(s);
}

static void version_let_go(struct version *v)
{
    if (--v->refs > 0)
        return;
    segment_let_go(v->in);
    free(v->as.path);
    free(v->target);
    free(v);
}

void past_done(struct past *p)
{
    for (unsigned i = 0; i < p->n; i++)
        version_let_go(p->list[i]);
    free(p->list);
    *p = (struct past){0};
}

/* Where there is no cgroup to count it, memory that belongs to no process is refused (box/filter.c): then it
 * lies in a file without a name. */
static struct segment *segment_new(struct err *e)
{
    cleanup_fd int fd = memfd_create("past", MFD_CLOEXEC);
    if (fd < 0)
        fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(e, errno, "cannot make room for copies"), NULL;
    struct segment *s = xcalloc(1, sizeof(*s));
    *s = (struct segment){.fd = fd_steal(&fd), .refs = 1};
    return s;
}

/* ---- taking ---- */

/* Up to the size that it had: a file that grows while we read would keep us for ever. False: it is not whole. */
static bool copy_in(struct segment *s, struct version *v)
{
    struct err ignored;
    cleanup_fd int fd = files_open(v->as.path, &ignored);

    if (fd < 0 || lseek(s->fd, (off_t)s->size, SEEK_SET) < 0)
        return false;
    uint64_t left = v->as.size;
    while (left > 0) {
        ssize_t n = sendfile(s->fd, fd, NULL, left < (1u << 30) ? (size_t)left : 1u << 30);
        if (n <= 0)
            return false;
        left -= (uint64_t)n;
    }
    v->in = s;
    v->offset = s->size;
    s->size += v->as.size;
    s->refs++;
    return true;
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

int past_take(struct past *ret, const struct past *before, uint64_t most, struct err *e)
{
    struct snapshot now;

    *ret = (struct past){0};
    if (snapshot_take_all(&now, e) < 0)
        return -1;
    struct segment *s = segment_new(e);
    if (!s) {
        snapshot_done(&now);
        return -1;
    }
    ret->list = xcalloc(now.n + 1, sizeof(*ret->list));
    for (unsigned i = 0; i < now.n; i++) {
        struct version *v = find(before, now.list[i].path);
        if (v && entry_same(&v->as, &now.list[i]) && v->as.mode == now.list[i].mode) {
            v->refs++;
        } else {
            v = version_new(&now.list[i]);
            if (S_ISREG(v->as.mode) && v->as.size <= most - s->size)
                copy_in(s, v);
        }
        ret->list[ret->n++] = v;
    }
    ret->copied = s->size;
    segment_let_go(s);
    snapshot_done(&now);
    return 0;
}

void past_share(struct past *ret, const struct past *before)
{
    *ret = (struct past){.list = xcalloc(before->n + 1, sizeof(*ret->list)), .n = before->n};
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

int past_each(const struct past *p, int (*each)(void *ctx, const struct past_item *x), void *ctx)
{
    for (unsigned i = 0; i < p->n; i++) {
        const struct version *v = p->list[i];
        cleanup_fd int own = S_ISREG(v->as.mode) && !v->in ? open_unchanged(v) : -1;
        const struct past_item x = {.path = v->as.path,
                                    .target = v->target,
                                    .mode = v->as.mode,
                                    .mtime_ns = v->as.mtime_ns,
                                    .size = v->as.size,
                                    .fd = v->in ? v->in->fd : own,
                                    .offset = v->in ? v->offset : 0};
        if (S_ISREG(x.mode) && x.fd < 0)
            continue;
        if (each(ctx, &x) < 0)
            return -1;
    }
    return 0;
}

/* ---- going back ---- */

static int copy_out(const struct version *v, int to, struct err *e)
{
    off_t at = (off_t)v->offset;

    if (ftruncate(to, 0) < 0 || lseek(to, 0, SEEK_SET) < 0)
        return err_set(e, errno, "cannot write %s", v->as.path);
    for (uint64_t left = v->as.size; left > 0;) {
        ssize_t n = sendfile(to, v->in->fd, &at, left < (1u << 30) ? (size_t)left : 1u << 30);
        if (n <= 0)
            return err_set(e, n < 0 ? errno : EIO, "cannot write %s", v->as.path);
        left -= (uint64_t)n;
    }
    return 0;
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
static int restore_file(struct version *v, const struct entry *now, struct err *e)
{
    struct stat st;

    if (!v->in)
        return err_set(e, EFBIG, "%s was too large to be kept, and has changed", v->as.path);
    cleanup_fd int fd = -1;
    if (now && S_ISREG(now->mode) && now->inode == v->as.inode)
        fd = files_open_to_write(v->as.path, e);
    if (fd < 0)
        fd = make_file(v->as.path, e);
    if (fd < 0 || copy_out(v, fd, e) < 0)
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

static int restore_one(struct version *v, const struct entry *now, struct err *e)
{
    if (now && entry_same(&v->as, now))
        return 0;
    return S_ISDIR(v->as.mode)   ? restore_dir(v, now, e)
           : S_ISLNK(v->as.mode) ? restore_link(v, e)
                                 : restore_file(v, now, e);
}

int past_restore(const struct past *p, struct err *e)
{
    struct snapshot now;
    struct err why;
    int result = 0;

    if (snapshot_take_all(&now, e) < 0)
        return -1;
    /* What is too much goes first: the space may be needed. From behind, the contents of a directory come
     * before it. */
    for (unsigned i = now.n; i-- > 0;)
        if (!find(p, now.list[i].path))
            files_delete(now.list[i].path, &why);
    for (unsigned i = 0; i < p->n; i++) {
        struct version *v = p->list[i];
        if (restore_one(v, snapshot_find(&now, v->as.path), &why) == 0)
            continue;
        if (result == 0)
            *e = why;
        result = -1;
    }
    snapshot_done(&now);
    return result;
}
