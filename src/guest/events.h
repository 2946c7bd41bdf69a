/* events: server-sent events, as bytes come in.
 *
 * What the standard says of the format, and no more: lines end with LF, CR or both; "event" and "data" are
 * heard, everything else (comments, ids) is passed over. A server could send one event without end, so
 * there is a bound for what is held.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define EVENT_NAME_MAX 32 /* longer names are those of no event that we know */

struct events {
    size_t max; /* bytes of one event, and of one line */
    /* `data` is followed by a NUL. -1 ends it all. */
    int (*tell)(void *ctx, const char *name, const char *data, size_t len, struct err *e);
    void *ctx;
    struct buf line, data;
    bool has_data;
    char name[EVENT_NAME_MAX];
    bool begun;    /* the first line is over */
    bool after_cr; /* an LF now belongs to it */
};

void events_init(struct events *ev, size_t max,
                 int (*tell)(void *ctx, const char *name, const char *data, size_t len,
                             struct err *e),
                 void *ctx);
void events_done(struct events *ev);

/* Bytes in any pieces. -1: too much, or `tell` said so; no more can follow. */
int events_feed(struct events *ev, const char *data, size_t len, struct err *e);
