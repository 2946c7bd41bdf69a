/* guest: one session as a verb holds it: opened, given files and cells, waited for, closed.
 *
 * Where its box is does not matter to a verb: with a keeper of ours (guest_local.c), or on a server
 * (guest_remote.c). The owner knows.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "guest/owner.h"
#include "session/session.h"

/* Who looks on while a cell runs. */
struct guest_view {
    void (*text)(void *ctx, enum output_kind kind, const char *text, size_t len);
    void (*display)(void *ctx, const struct output *o);
    void *ctx;
};

struct guest;

/* The calls below, for one kind of place. They say the same, and `close` frees what they hold. */
struct guest_ways {
    int (*open)(struct guest *g, struct err *e);
    int (*fork)(struct guest *g, struct guest *from, uint32_t n, struct err *e);
    void (*leave)(struct guest *g); /* NULL: `close` takes no time */
    void (*close)(struct guest *g);
    int (*start)(struct guest *g, const char *code, size_t len, uint64_t timeout_ms, struct err *e);
    void (*interrupt)(struct guest *g);
    bool (*ended)(const struct guest *g);
    int (*put)(struct guest *g, const char *name, int fd, struct err *e);
    int (*get)(struct guest *g, const char *path, int scratch, uint64_t max, int *ret_fd,
               struct err *e);
    int (*list)(struct guest *g, file_listed *entry, void *ctx, struct err *e);
    int (*describe)(struct guest *g, char **ret, struct err *e);
    int (*check)(struct guest *g, const char *code, size_t len, int *ret_state, char **ret_indent,
                 struct err *e);
    int (*points)(struct guest *g, point_listed *point, void *ctx, struct err *e);
    int (*rollback)(struct guest *g, uint32_t n, struct err *e);
};
extern const struct guest_ways guest_local, guest_remote;

struct guest {
    const struct guest_ways *ways; /* NULL: closed */
    struct owner *owner;
    const struct guest_view *view; /* NULL: nobody */
    struct limits limits;          /* that were asked for, and then those that it has */
    struct session *session;       /* guest_local's */
    struct remote *remote;         /* guest_remote's */
    struct cell *cell;             /* the finished one, until it is taken */
    bool undo;                     /* for whoever holds it: a cell that fails leaves no trace */
    struct cell *undoing;          /* one that has failed, until nothing is left of it */
    uint32_t at;                   /* its state is that after this cell */
    uint32_t next;                 /* the number of its next one */
    bool opened, failed;
    struct err err; /* why it failed */
};

/* Start a session and wait until its box stands. 0; a set of enum turn that said to stop; or -1. */
int guest_open(struct guest *g, struct owner *o, const struct limits *limits,
               const struct guest_view *view, struct err *e);
/* Start one that begins as another was after cell n, and has nothing in common with it from then on. It returns
 * the same, and -1 with ENOENT where that state is not kept. */
int guest_fork(struct guest *g, struct guest *from, uint32_t n, struct err *e);
/* Its end, without waiting for it: guest_close is all that it is good for then. Makes the end of many quicker. */
void guest_leave(struct guest *g);
/* Also right for one that was never opened. A cell that was not taken is freed. */
void guest_close(struct guest *g);

/* Give it a cell; it is finished when g->cell is there. timeout_ms 0 takes the session's limit. */
int guest_start(struct guest *g, const char *code, size_t len, uint64_t timeout_ms, struct err *e);
/* Stop the running cell as Ctrl-C would. */
void guest_interrupt(struct guest *g);
/* Did the interpreter die? */
bool guest_ended(const struct guest *g);

/* Copy what can be read from fd into the workspace. 0; a set of enum turn that said to stop; or -1. */
int guest_put(struct guest *g, const char *name, int fd, struct err *e);
/* A descriptor of a regular file with the contents of one in the workspace. Returns the same; -1 is also
 * for what the guest did to it, unless g->failed or the owner is lost. More than `max` bytes are not fetched (EFBIG).
 * `scratch` is a directory where it may lie without a name. */
int guest_get(struct guest *g, const char *path, int scratch, uint64_t max, int *ret_fd,
              struct err *e);

/* `entry` for each regular file of the workspace, in the order of their paths. 0; a set of enum turn that said to
 * stop; or -1. */
int guest_list(struct guest *g, file_listed *entry, void *ctx, struct err *e);

/* Is this a complete piece of Python? See session_check. */
int guest_check(struct guest *g, const char *code, size_t len, int *ret_state, char **ret_indent,
                struct err *e);

/* `point` for each state that is kept, the oldest first. */
int guest_points(struct guest *g, point_listed *point, void *ctx, struct err *e);
/* Make it what it was after cell n. 0; a set of enum turn that said to stop; or -1: ENOENT where that state is
 * not kept, which changes nothing. */
int guest_rollback(struct guest *g, uint32_t n, struct err *e);

/* Give it a cell and wait, without a view: for our own questions. -1 where it came to nothing, or a
 * signal said to stop. The cell is the caller's. */
int guest_ask(struct guest *g, const char *code, struct cell **ret, struct err *e);

/* What there is in its environment (see cell_environment_json), asked in a cell. `brief`: for its description. */
int guest_environment(struct guest *g, bool brief, json_t **ret, struct err *e);

/* The paragraph that tells a model what it can use, without a cell of the guest's own. 0 and a text, the caller's; a
 * set of enum turn that said to stop; or -1. */
int guest_describe(struct guest *g, char **ret, struct err *e);
/* Its id on a server; NULL: it is in a box of ours. */
const char *guest_id(const struct guest *g);

struct cell *guest_take(struct guest *g);
