/* inner: calls of our own API that another part of the gate makes, as a client would.
 *
 * An inner call is a request without a connection: it goes to the same handler, with the same holder, quotas, queues
 * and errors, and is counted as one that is under way. What it is told is told from one place of the loop, never from
 * inside inner_call, so that whoever asks need not fear to be called while he does.
 *
 *     inner_call ─▶ handler ─▶ reply_… ─▶ due ──inner_turn──▶ answered, freed
 *                      └──── inner_cancel ─▶ due ──inner_turn──▶ freed
 *
 * For calls that answer with an object or with nothing, and for the contents of a file; not for pages of the journal,
 * archives and notebooks.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "gate/inside.h"

struct inner;

struct inner_answer {
    unsigned status;
    json_t *body; /* an object, or NULL */
    /* Contents, where they were asked for: those that lie in the range and within the bound. */
    const char *bytes;
    size_t len;
    uint64_t size; /* of the whole file */
};

/* What whoever asks wants to hear. All of it is borrowed. */
struct inner_events {
    /* Of a cell: what it writes, as it does. From inside the session's own work: take it and do nothing else. Or
     * NULL. */
    void (*wrote)(void *ctx, const char *text, size_t len);
    /* Once, and the call is gone then. NULL: nobody wants to know. */
    void (*answered)(void *ctx, const struct inner_answer *a);
};

/* `method` is a constant; `path` is raw, with its query. `body` is taken over, or NULL. */
struct inner *inner_call(struct gate *g, struct holder *h, const char *method, const char *path,
                         json_t *body, const struct inner_events *events, void *ctx);
/* A PUT of these contents, which are taken over. */
struct inner *inner_put(struct gate *g, struct holder *h, const char *path, struct buf *contents,
                        const struct inner_events *events, void *ctx);
/* A GET of a file's contents: at most `max` of them, from this offset on. */
struct inner *inner_get(struct gate *g, struct holder *h, const char *path, uint64_t offset,
                        uint64_t max, const struct inner_events *events, void *ctx);
/* As a client that goes away: a cell that runs is interrupted, and its session stays. Nothing is told any more, and the
 * call is not to be named again. Not from `wrote`. What it was asked for may have been done all the same: then there is
 * an answer that was not told yet. */
void inner_cancel(struct inner *i);
/* That answer, or NULL. */
const struct inner_answer *inner_untold(const struct inner *i);

/* ---- for the gate ---- */

/* Work off what is due; once in each turn of the loop. */
void inner_turn(struct gate *g);
/* All that are left are given up. */
void inner_close(struct gate *g);

/* What an inner request is, to those who take it for one of HTTP. */
const char *inner_header(const struct request *r, const char *name);
const char *inner_query(const struct request *r, const char *name);
void inner_resume(struct request *r);
/* Its answer; `body` (or NULL) is taken over. */
void inner_reply(struct request *r, unsigned status, json_t *body);
/* The same with a file's contents. The descriptor is taken over. */
void inner_reply_file(struct request *r, json_t *file, int fd, uint64_t size);
void inner_wrote(struct request *r, const char *text, size_t len);
