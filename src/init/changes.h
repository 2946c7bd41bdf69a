/* changes: what happened to the files of the workspace since the last time somebody asked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* How many files are looked at. A workspace with more of them is told as far as that goes. */
#define CHANGES_FILES 20000
#define CHANGES_DEPTH 64
/* How many bytes are hashed for one report: a sparse file may claim to have a terabyte. What is over
 * it is told without a hash. */
#define CHANGES_HASHED (1ULL << 30)

struct entry {
    char *path;
    uint64_t size, mtime_ns, ctime_ns, inode;
};

struct snapshot {
    struct entry *list; /* sorted by path */
    unsigned n, cap;
    bool cut; /* there was more than we look at */
};

struct changes {
    struct snapshot known;
    uint64_t hash_left; /* of CHANGES_HASHED, in this report */
    /* Called now and then while a report takes its time; may be NULL. */
    void (*meanwhile)(void *ctx);
    void *ctx;
};

struct change {
    int kind; /* enum file_change */
    const char *path;
    uint64_t size, mtime_ns;
    uint8_t sha256[32];
    bool has_sha256;
};

/* Tell every change, and remember what is there now. -1 with a reason when not all could be seen. */
int changes_report(struct changes *c, void (*tell)(void *ctx, const struct change *), void *ctx,
                   struct err *e);
/* This file is known as it is now: the next report does not tell it. */
void changes_accept(struct changes *c, const char *path);
