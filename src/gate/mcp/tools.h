/* tools: what the files of the tools share.
 *
 * A tool at work is a struct work, which hangs on its call: it asks one inner call after the other, and answers with
 * the last. A client that goes away takes it along.
 *
 *     work_new ──work_ask──▶ then ──work_ask──▶ then … ─▶ work_result, or work_refused: the call is answered, it is freed
 *         └───────────────── abandoned ──────────▶ freed, and a session that it has made is ended: nobody knows it
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "gate/inner.h"
#include "gate/mcp/mcp.h"

/* ---- arguments (tools.c) ---- */

/* Do they fit the schema of an object (type, required, additionalProperties; of a member type, minimum,
 * exclusiveMinimum, maximum, minLength of 1)? A member that is null counts as left out. -1 with a sentence for the model. */
int tool_check(const json_t *schema, const json_t *arguments, struct err *e);
/* A text among them, or NULL. */
const char *tool_text(const json_t *arguments, const char *name);
/* A path as models write it: also with /mnt/data before it. The part of it that counts. */
const char *tool_path(const char *path);

/* ---- a tool at work (tools.c) ---- */

struct work {
    struct mcp_call *call;
    const json_t *arguments; /* the call's */
    struct inner *asked;     /* under way, or NULL */
    void (*then)(struct work *w, const struct inner_answer *a);
    char *session; /* in which it works */
    bool made;     /* by this call */
    void (*ready)(struct work *w);
    void (*free)(struct work *w); /* what it holds besides, but not itself; or NULL */
};

/* Begin: `size` bytes for whatever it is, a struct work first. */
void *work_new(struct mcp_call *c, const json_t *arguments, size_t size,
               void (*free)(struct work *w));
/* Have `ready` called with a session: the one that was named, or a new one. */
void work_in_session(struct work *w, void (*ready)(struct work *w));
/* Make one, with what a POST of /v1/sessions takes (or NULL), which is taken over. */
void work_make_session(struct work *w, json_t *body,
                       void (*then)(struct work *w, const struct inner_answer *a));
/* Ask; `then` hears the answer. `path` is what follows "/v1/sessions/SESSION". `body` is taken over. */
void work_ask(struct work *w, const char *method, const char *path, json_t *body,
              void (*then)(struct work *w, const struct inner_answer *a));
/* The same with one's own events, of which `answered` is work_answered. */
void work_ask_with(struct work *w, const char *method, const char *path, json_t *body,
                   const struct inner_events *events,
                   void (*then)(struct work *w, const struct inner_answer *a));
void work_answered(void *work, const struct inner_answer *a);
/* Contents of a file, from here on and at most so many. */
void work_get(struct work *w, const char *path, uint64_t offset, uint64_t max,
              void (*then)(struct work *w, const struct inner_answer *a));
/* The contents are taken over. */
void work_put(struct work *w, const char *path, struct buf *contents,
              void (*then)(struct work *w, const struct inner_answer *a));
/* The answer. Everything is taken over; the work is gone. */
void work_result(struct work *w, json_t *content, json_t *structured, bool is_error);
/* It is over: free it, and have the call, which is to be answered. */
struct mcp_call *work_end(struct work *w);
/* The same where an inner call was refused: what it says, and what to do about it. */
void work_refused(struct work *w, const struct inner_answer *a);
/* The same in our words. */
void work_failed(struct work *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The sentence of an answer that is an error. */
const char *answer_message(const struct inner_answer *a);

/* ---- the tools ---- */

void tool_run_python(struct mcp_call *c, const json_t *arguments);
void tool_list_files(struct mcp_call *c, const json_t *arguments);
void tool_read_file(struct mcp_call *c, const json_t *arguments);
void tool_write_file(struct mcp_call *c, const json_t *arguments);
void tool_rollback(struct mcp_call *c, const json_t *arguments);
void tool_fork(struct mcp_call *c, const json_t *arguments);
void tool_end_session(struct mcp_call *c, const json_t *arguments);

/* ---- content (content.c) ---- */

#define PICTURE_SIDE 1568        /* pixels: models look at no more */
#define PICTURE_BYTES (1u << 20) /* what a client takes without harm */
#define PICTURES_MAX 4
#define LINKS_MAX 20
#define FILES_MAX 100 /* of structured content */

json_t *content_text(const char *text, size_t len);
json_t *content_picture(const char *type, const char *bytes, size_t len);
/* A link to a file; `size` is NULL where it is not known. */
json_t *content_link(const char *session, const char *path, const json_t *size);
/* Has the client's revision of the protocol links? */
bool content_has_links(const struct mcp_call *c);
/* Contents of a resource: a text where it is one, else a blob. */
json_t *content_resource(const char *uri, const char *type, const char *bytes, size_t len);
/* Is it text that can be shown as such: UTF-8 without control characters? The end may cut a character. */
bool content_is_text(const char *bytes, size_t len);
/* Width and height of a PNG or JPEG as its header says, and its type; NULL: it is neither. */
const char *content_picture_type(const char *bytes, size_t len, unsigned *ret_width,
                                 unsigned *ret_height);
/* A cell: what a model reads and sees, and what a program does. `made`: the session is new, and is to be named. */
json_t *content_cell(const struct mcp_call *c, const json_t *cell, const char *session, bool made);
json_t *content_cell_structured(const json_t *cell, const char *session);

/* ---- paths and URIs (resources.c) ---- */

/* Bytes of a cursor: one of ours has a path in it. What comes in is bounded before it is encoded, which takes three times
 * the room and a while: nobody else is served meanwhile. */
#define CURSOR_LONGEST 16384

/* Everything but letters, digits and -._~ as %XX; with `slashes`, also a slash stays. */
void uri_add(struct buf *ret, const char *text, size_t len, bool slashes);
/* A URI of ours taken apart; both are the caller's. -1: it is none. */
int uri_parse(const char *uri, char **ret_session, char **ret_path);
