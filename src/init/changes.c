/* changes: see changes.h. Runs in init, on the box's own time and memory: hashing a huge file costs
 * the session that made it and nobody else. */
#include "init/changes.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "init/files.h"
#include "wire/proto.h"

#define IDLE_US 10000000 /* after that the next report walks */

static bool hash(struct changes *c, const char *path, uint8_t ret[32])
{
    static uint8_t chunk[128 << 10];
    struct sha256_ctx sha;
    struct stat st;
    struct err ignored;
    ssize_t n;

    cleanup_fd int fd = files_open(path, &ignored);
    if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size > c->hash_left)
        return false;
    c->hash_left -= (uint64_t)st.st_size;
    sha256_init(&sha);
    /* Up to the size it had: a file that grows while we read would keep us for ever. */
    for (uint64_t left = (uint64_t)st.st_size; left > 0; left -= (uint64_t)n) {
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
    struct change c = {.kind = kind, .path = x->path, .size = x->size};

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

/* Walk, and tell. */
static int walk(struct changes *c, const struct teller *t, struct err *e)
{
    bool watching = c->known.n > CHANGES_WATCHED && watch_begin(&c->watch);
    struct snapshot now;

    c->walks++;
    if (snapshot_take(&now, watching ? watch_enter : NULL, &c->watch, e) < 0) {
        if (watching)
            watch_end(&c->watch, false);
        return -1;
    }
    compare(t, &c->known, &now);
    /* A file that is written under one of its names is changed under the others too, and events tell
     * only the first. */
    if (watching)
        watch_end(&c->watch, !now.cut && !now.shut && !now.linked);
    snapshot_done(&c->known);
    c->known = now;
    if (now.cut)
        return err_set(e, E2BIG, "the workspace has more files than retort looks at (%d, %d deep)",
                       SNAPSHOT_FILES, SNAPSHOT_DEPTH);
    return 0;
}

/* An upload's contents are written before it has a name; the kernel calls it by its number then. */
static bool is_own(const struct changes *c, const char *path)
{
    char name[32];

    for (unsigned i = 0; i < c->n_own; i++) {
        snprintf(name, sizeof(name), "#%llu", (unsigned long long)c->own[i]);
        if (strcmp(path, name) == 0)
            return true;
    }
    return false;
}

/* What has this name now; st->st_mode is 0 where there is no file. False: there is a doubt. */
static bool look_at(const struct changes *c, const struct touched *x, struct stat *st)
{
    const struct entry *known = snapshot_find(&c->known, x->path);
    int error = files_stat(x->path, st);

    if (error && error != ENOENT)
        return false;
    if (!error && (S_ISDIR(st->st_mode) || (S_ISREG(st->st_mode) && st->st_nlink > 1)))
        return false;
    if (error || !S_ISREG(st->st_mode))
        st->st_mode = 0;
    /* Written under a name that is not there, or is another file's by now: through a descriptor that
     * was opened by a name since removed, or by none. Which file it was, only walking tells. */
    if (!x->written || x->named)
        return true;
    if (!st->st_mode)
        return known || is_own(c, x->path);
    struct entry fresh = {0};
    entry_fill(&fresh, st);
    return !known || !entry_same(known, &fresh);
}

/* Tell what the events are about. False: there is a doubt; what was told until then is known. */
static bool catch_up(struct changes *c, const struct teller *t)
{
    static struct stat now[WATCH_NAMES];
    const struct watch *w = &c->watch;

    for (unsigned i = 0; i < w->n; i++)
        if (!look_at(c, &w->list[i], &now[i]))
            return false;
    for (unsigned i = 0; i < w->n; i++) {
        struct entry *known = snapshot_find(&c->known, w->list[i].path);
        struct entry fresh = {.path = w->list[i].path};
        entry_fill(&fresh, &now[i]);
        if (now[i].st_mode && !(known && entry_same(known, &fresh))) {
            tell_one(t, &fresh, known ? FILE_CHANGED : FILE_CREATED);
            snapshot_set(&c->known, fresh.path, &now[i]);
        } else if (!now[i].st_mode && known) {
            tell_one(t, known, FILE_DELETED);
            snapshot_remove(&c->known, known);
        }
    }
    return c->known.n <= SNAPSHOT_FILES;
}

int changes_report(struct changes *c, change_tell *tell, void *ctx, struct err *e)
{
    const struct teller t = {c, tell, ctx};

    c->hash_left = CHANGES_HASHED;
    int result = watch_read(&c->watch) && catch_up(c, &t) ? 0 : walk(c, &t, e);
    c->n_own = 0;
    c->reported_us = clock_now_us();
    return result;
}

void changes_idle(struct changes *c)
{
    if (clock_now_us() - c->reported_us > IDLE_US)
        watch_rest(&c->watch);
}

void changes_accept(struct changes *c, const char *path)
{
    struct stat st;

    if (files_stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    snapshot_set(&c->known, path, &st);
    if (c->n_own < CHANGES_OWN)
        c->own[c->n_own++] = st.st_ino;
}

static void tell_nobody(void *ctx, const struct change *c)
{
    (void)ctx, (void)c;
}

void changes_accept_all(struct changes *c)
{
    const struct teller t = {c, tell_nobody, NULL};
    struct err ignored;

    c->hash_left = 0; /* nobody wants to know */
    walk(c, &t, &ignored);
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
