/* past: the workspace as it was at some moment, to make it so again.
 *
 * What a file held is copied when it is first seen, or was changed since the moment before; moments that
 * follow each other share what did not change. Where the copies are no guest can reach them (copies.h).
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct copies;
struct version;

struct past {
    struct version **list; /* sorted by the paths' bytes: a directory is before what is in it */
    unsigned n;
    uint64_t copied; /* bytes, at this moment */
    struct copies *copies;
    uint32_t life; /* theirs */
};

/* The workspace now. `before` may be NULL. What has no room among the copies, or is lost when memory was short, can be
 * brought back only as long as nobody changes it. */
int past_take(struct past *ret, const struct past *before, struct copies *copies, struct err *e);
/* Nothing has changed since. */
void past_share(struct past *ret, const struct past *before);
void past_done(struct past *p);
/* The bytes that were copied at this moment, if they are still there. */
uint64_t past_weight(const struct past *p);

/* One thing of it. */
struct past_item {
    const char *path, *target; /* a link's */
    uint32_t mode;
    uint64_t mtime_ns, size;
    int fd; /* a regular file's contents are in it, from here on: */
    uint64_t offset;
};
/* Each in turn, until one returns -1. What cannot be had any more is left out. */
int past_each(const struct past *p, int (*each)(void *ctx, const struct past_item *x), void *ctx);

/* Make the workspace what it was. Nobody else may be at work in it. What could not be brought back is named, a
 * line each. */
int past_restore(const struct past *p, struct buf *missing, struct err *e);
