/* snapshot: the regular files of the workspace at one moment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

/* How many files are looked at. A workspace with more of them is told as far as that goes. */
#define SNAPSHOT_FILES 20000
#define SNAPSHOT_DEPTH 64

struct entry {
    char *path;
    uint64_t size, mtime_ns, ctime_ns, inode;
    uint32_t mode; /* st_mode */
};

struct snapshot {
    struct entry *list; /* sorted by the paths' bytes */
    unsigned n, cap;
    bool cut;    /* there was more than we look at */
    bool shut;   /* a directory could not be read */
    bool linked; /* a file has more than one name */
};

/* Called for each directory before it is read; `path` is "" or ends in a slash. */
typedef void snapshot_enter(void *ctx, int dir, const char *path);

/* `enter` may be NULL. -1: the workspace cannot be read at all. */
int snapshot_take(struct snapshot *ret, snapshot_enter *enter, void *ctx, struct err *e);
/* The directories and links too; each directory is before what is in it. */
int snapshot_take_all(struct snapshot *ret, struct err *e);
void snapshot_done(struct snapshot *s);

/* Where this path is, or NULL. */
struct entry *snapshot_find(const struct snapshot *s, const char *path);
/* The first that is not before this path: all that begin with it follow each other from there. */
unsigned snapshot_place(const struct snapshot *s, const char *path);
/* Note what this path is now, in its place. */
void snapshot_set(struct snapshot *s, const char *path, const struct stat *st);
/* Add a copy at the end; then sort. */
void snapshot_append(struct snapshot *s, const struct entry *x);
void snapshot_sort(struct snapshot *s);
void snapshot_remove(struct snapshot *s, struct entry *x);
void entry_fill(struct entry *x, const struct stat *st);
bool entry_same(const struct entry *a, const struct entry *b);
