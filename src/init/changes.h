/* changes: what happened to the files of the workspace since the last time somebody asked.
 *
 * What is told is what differs in inode, size, time of writing or time of change. What is written
 * through a shared mapping alone leaves none of these in a tmpfs, and is not told.
 *
 * Small workspaces are walked for each report. In larger ones only the names that inotify tells of are
 * looked at (watch.h), as long as there is no doubt.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "init/snapshot.h"
#include "init/watch.h"

/* How many bytes are hashed for one report: a sparse file may claim to have a terabyte. What is over
 * it is told without a hash. */
#define CHANGES_HASHED (1ULL << 30)

/* So many files can be walked in less time than it takes to think of something better. Instances of
 * inotify are few, where all boxes are one user of the host. */
#define CHANGES_WATCHED 200
#define CHANGES_OWN 256

struct changes {
    struct snapshot known;
    struct watch watch;
    int64_t reported_us;       /* when it was last asked */
    uint64_t own[CHANGES_OWN]; /* inodes of uploads since the last report */
    unsigned n_own;
    unsigned walks;     /* how often everything was looked at */
    uint64_t hash_left; /* of CHANGES_HASHED, in this report */
    /* Called now and then while a report takes its time; may be NULL. */
    void (*meanwhile)(void *ctx);
    void *ctx;
};

struct change {
    int kind; /* enum file_change */
    const char *path;
    uint64_t size;
    uint8_t sha256[32];
    bool has_sha256;
};

/* Tell every change, in the order of paths, and remember what is there now. -1 with a reason when not
 * all could be seen. */
typedef void change_tell(void *ctx, const struct change *c);
int changes_report(struct changes *c, change_tell *tell, void *ctx, struct err *e);
/* This file is known as it is now: the next report does not tell it. */
void changes_accept(struct changes *c, const char *path);
/* Everything is known as it is now. */
void changes_accept_all(struct changes *c);
/* Nobody asks any more? Called now and then while c->watch.started. */
void changes_idle(struct changes *c);
/* What is gone at this path, or below it, is not told either. */
void changes_forget(struct changes *c, const char *path);
