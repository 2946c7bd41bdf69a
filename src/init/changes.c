/* changes: see changes.h. Runs in init, on the box's own time and memory: hashing a huge file costs
 * the session that made it and nobody else. */
#include "init/changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "init/files.h"
#include "wire/proto.h"

static uint64_t ns(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void snapshot_done(struct snapshot *s)
{
    for (unsigned i = 0; i < s->n; i++)
        free(s->list[i].path);
    free(s->list);
    *s = (struct snapshot){0};
}

static void snapshot_add(struct snapshot *s, const char *path, const struct stat *st)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->list = realloc(s->list, s->cap * sizeof(*s->list));
        if (!s->list)
            bug("out of memory");
    }
    s->list[s->n++] = (struct entry){.path = xstrdup(path),
                                     .size = (uint64_t)st->st_size,
                                     .mtime_ns = ns(st->st_mtim),
                                     .ctime_ns = ns(st->st_ctim),
                                     .inode = st->st_ino};
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* Walk below `dir` (taken over), whose name is path[0..len). Regular files only; links are not
 * followed, and what vanishes meanwhile is not there. */
static void walk(struct snapshot *s, int dir, char *path, size_t len, unsigned depth)
{
    struct stat st;
    DIR *d = fdopendir(dir);

    if (!d) {
        close(dir);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        size_t n = strlen(entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (s->n >= CHANGES_FILES || len + n + 2 > FILES_PATH || depth == 0) {
            s->cut = true;
            break;
        }
        if (fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        memcpy(path + len, entry->d_name, n + 1);
        if (S_ISREG(st.st_mode)) {
            snapshot_add(s, path, &st);
        } else if (S_ISDIR(st.st_mode)) {
            int below =
                openat(dirfd(d), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            memcpy(path + len + n, "/", 2);
            if (below >= 0)
                walk(s, below, path, len + n + 1, depth - 1);
        }
    }
    closedir(d);
}

static int take_snapshot(struct snapshot *ret, struct err *e)
{
    static char path[FILES_PATH];
    int dir = openat(files_root(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *ret = (struct snapshot){0};
    if (dir < 0)
        return err_set(e, errno, "cannot read the workspace");
    path[0] = '\0';
    walk(ret, dir, path, 0, CHANGES_DEPTH);
    if (ret->n > 1)
        qsort(ret->list, ret->n, sizeof(*ret->list), by_path);
    return 0;
}

static bool hash(struct changes *c, const char *path, uint8_t ret[32])
{
    static uint8_t chunk[128 << 10];
    struct sha256_ctx sha;
    struct file_facts facts;
    struct err ignored;
    ssize_t n;

    cleanup_fd int fd = files_open(path, &facts, &ignored);
    if (fd < 0 || facts.size > c->hash_left)
        return false;
    c->hash_left -= facts.size;
    sha256_init(&sha);
    /* Up to the size it had: a file that grows while we read would keep us for ever. */
    for (uint64_t left = facts.size; left > 0; left -= (uint64_t)n) {
        n = read(fd, chunk, left < sizeof(chunk) ? (size_t)left : sizeof(chunk));
        if (n <= 0)
            return false; /* it shrank, or cannot be read: no hash is better than a wrong one */
        sha256_update(&sha, (size_t)n, chunk);
        if (c->meanwhile && left % (sizeof(chunk) * 64) < sizeof(chunk))
            c->meanwhile(c->ctx);
    }
    sha256_digest(&sha, 32, ret);
    return true;
}

static bool same(const struct entry *a, const struct entry *b)
{
    return a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

static void tell_one(struct changes *all, const struct entry *x, int kind,
                     void (*tell)(void *, const struct change *), void *ctx)
{
    struct change c = {.kind = kind, .path = x->path, .size = x->size, .mtime_ns = x->mtime_ns};

    if (kind == FILE_DELETED)
        c.size = 0;
    else
        c.has_sha256 = hash(all, x->path, c.sha256);
    tell(ctx, &c);
}

int changes_report(struct changes *c, void (*tell)(void *ctx, const struct change *), void *ctx,
                   struct err *e)
{
    struct snapshot now;
    unsigned i = 0, k = 0;

    if (take_snapshot(&now, e) < 0)
        return -1;
    c->hash_left = CHANGES_HASHED;
    /* Both are sorted: walk them side by side. */
    while (i < c->known.n || k < now.n) {
        int order = i == c->known.n ? 1
                    : k == now.n    ? -1
                                    : by_path(&c->known.list[i], &now.list[k]);
        if (order < 0) {
            if (!now.cut) /* with a cut list, missing may mean not looked at */
                tell_one(c, &c->known.list[i], FILE_DELETED, tell, ctx);
            i++;
        } else if (order > 0) {
            tell_one(c, &now.list[k++], FILE_CREATED, tell, ctx);
        } else {
            if (!same(&c->known.list[i++], &now.list[k]))
                tell_one(c, &now.list[k], FILE_CHANGED, tell, ctx);
            k++;
        }
    }
    bool cut = now.cut;
    snapshot_done(&c->known);
    c->known = now;
    if (cut)
        return err_set(e, E2BIG, "the workspace has more files than retort looks at (%d, %d deep)",
                       CHANGES_FILES, CHANGES_DEPTH);
    return 0;
}

void changes_accept(struct changes *c, const char *path)
{
    struct entry key = {.path = (char *)(uintptr_t)path};
    struct entry *known = NULL;
    struct stat st;

    if (fstatat(files_root(), path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return;
    if (c->known.n > 0)
        known = bsearch(&key, c->known.list, c->known.n, sizeof(key), by_path);
    if (known) {
        free(known->path);
        *known = c->known.list[--c->known.n];
    }
    snapshot_add(&c->known, path, &st);
    qsort(c->known.list, c->known.n, sizeof(*c->known.list), by_path);
}
