/* multipart: multipart/form-data as it comes, in pieces of any size.
 *
 * A push parser that holds at most one part's header block and one delimiter: never a body. Names are
 * what browsers and curl send: quoted, with backslash escapes or %22, %0D, %0A; filename* (RFC 8187) wins
 * where it is present. Everything is hostile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define MULTIPART_HEADER_MAX 8192
#define MULTIPART_PARTS_MAX 1000

struct multipart_events {
    /* A part begins. filename is NULL for a plain field, and "" where a browser's file field was left
     * empty. Both are raw bytes as text; slashes and dots are still in them. -1 stops. */
    int (*begin)(void *ctx, const char *name, const char *filename);
    int (*data)(void *ctx, const char *data, size_t len);
    /* It was whole: a sound boundary followed. 1: go no further for now. */
    int (*end)(void *ctx);
};

struct multipart; /* opaque */

/* From the request's Content-Type. NULL with an error when it is not multipart/form-data with a sound
 * boundary. */
struct multipart *multipart_new(const char *content_type, const struct multipart_events *events,
                                void *ctx, struct err *e);
void multipart_free(struct multipart *m);
/* The next piece: how much of it was read, all unless `end` said to pause. -1: malformed, or a callback
 * stopped it (its own error is then not touched). */
ssize_t multipart_feed(struct multipart *m, const char *data, size_t len, struct err *e);
/* The body is over: was it whole? */
int multipart_finish(const struct multipart *m, struct err *e);
