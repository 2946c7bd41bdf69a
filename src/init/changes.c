/* changes: see changes.h. Runs in init, on the box's own time and memory: hashing a huge file costs
 * the session that made it and nobody else. */
#include "init/changes.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "init/files.h"
#include "wire/proto.h"

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

/* Who is told. */
struct teller {
    struct changes *all;
    change_tell *tell;
    void *ctx;
};

static void tell_one(const struct teller *t, const struct entry *x, int kind)
{
    struct change c = {.kind = kind, .path = x->path, .size = x->size, .mtime_ns = x->mtime_ns};

    if (kind == FILE_DELETED)
        c.size = 0;
    else
        c.has_sha256 = hash(t->all, x->path, c.sha256);
    t->tell(t->ctx, &c);
}

/* The walk did not see it. It has been deleted, unless its directory could not be read: then it stays
 * known, because a directory that is opened again has not been filled anew. */
static void look_again(const struct teller *t, struct snapshot *now, const struct entry *old)
{
    struct stat st;
    int error = now->shut ? files_stat(old->path, &st) : ENOENT;

    if (now->shut && now->n >= SNAPSHOT_FILES) /* hidden ones count too */
        now->cut = true;
    if (now->cut) /* missing may mean not looked at */
        return;
    if (error != EACCES && (error || !S_ISREG(st.st_mode))) {
        tell_one(t, old, FILE_DELETED);
        return;
    }
    struct entry fresh = *old;
    if (!error)
        entry_fill(&fresh, &st);
    if (!entry_same(old, &fresh))
        tell_one(t, &fresh, FILE_CHANGED);
    snapshot_append(now, &fresh);
}

/* Tell how `now` differs from what is known. Both are sorted: walk them side by side. */
static void compare(const struct teller *t, const struct snapshot *known, struct snapshot *now)
{
    unsigned i = 0, k = 0, seen = now->n;

    while (i < known->n || k < seen) {
        int order = i == known->n ? 1
                    : k == seen   ? -1
                                  : strcmp(known->list[i].path, now->list[k].path);
        if (order < 0) {
            look_again(t, now, &known->list[i++]);
        } else if (order > 0) {
            tell_one(t, &now->list[k++], FILE_CREATED);
        } else {
            if (!entry_same(&known->list[i++], &now->list[k]))
                tell_one(t, &now->list[k], FILE_CHANGED);
            k++;
        }
    }
    if (now->n > seen)
        snapshot_sort(now);
}

int changes_report(struct changes *c, change_tell *tell, void *ctx, struct err *e)
{
    const struct teller t = {c, tell, ctx};
    struct snapshot now;

    if (snapshot_take(&now, NULL, NULL, e) < 0)
        return -1;
    c->hash_left = CHANGES_HASHED;
    compare(&t, &c->known, &now);
    snapshot_done(&c->known);
    c->known = now;
    if (now.cut)
        return err_set(e, E2BIG, "the workspace has more files than retort looks at (%d, %d deep)",
                       SNAPSHOT_FILES, SNAPSHOT_DEPTH);
    return 0;
}

void changes_accept(struct changes *c, const char *path)
{
    struct stat st;

    if (files_stat(path, &st) == 0 && S_ISREG(st.st_mode))
        snapshot_set(&c->known, path, &st);
}

void changes_forget(struct changes *c, const char *path)
{
    struct entry *x = snapshot_find(&c->known, path);
    char below[FILES_PATH + 1];
    struct stat st;

    if (x && files_stat(path, &st) != 0)
        snapshot_remove(&c->known, x);
    snprintf(below, sizeof(below), "%s/", path);
    size_t len = strlen(below);
    for (unsigned i = snapshot_place(&c->known, below); i < c->known.n;) {
        x = &c->known.list[i];
        if (strncmp(x->path, below, len) != 0)
            return;
        if (files_stat(x->path, &st) != 0)
            snapshot_remove(&c->known, x);
        else
            i++;
    }
}
