/* session: sessions and their cells, for whoever owns them (the CLI, the gate of a server).
 *
 * A vessel is the connection to one keeper. Everything in it hangs on one epoll descriptor with its
 * own timers, so it can be driven alone (vessel_wait) or from inside another loop (vessel_fd and
 * vessel_dispatch). Nothing here blocks, and nothing here trusts a byte from a box: frames are
 * bounded and validated, and a box that breaks the rules loses its own session and nothing else.
 *
 * Life of a session:
 *
 *     session_open ──▶ OPENING ──▶ IDLE ⇄ BUSY ──▶ ENDED ──session_close──▶ freed
 *                          └──────────────────────────┘
 *
 * A session is ENDED when its box failed to start, its interpreter died and nothing was kept of it, or it broke
 * the protocol. An interpreter that dies while no cell runs is replaced meanwhile, and the next cell's stderr
 * begins with a line that says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"

struct vessel;
struct session;

/* ---- the vessel ---- */

/* Take over the socket to a keeper (see keeper.h: keeper_start). NULL: failed, and the socket is
 * still the caller's. */
struct vessel *vessel_new(int keeper_fd, struct err *e);
void vessel_free(struct vessel *v); /* closes the sessions that are left */
/* Readable when vessel_dispatch has something to do. */
int vessel_fd(const struct vessel *v);
/* Handle what is ready. -1 when the keeper is gone: no session can be used any more. */
int vessel_dispatch(struct vessel *v, struct err *e);
/* Dispatch until *flag is true; with timeout_ms ≥ 0 at most that long. 1: *flag is true; 0: time is
 * up; -1: the keeper is gone. */
int vessel_wait(struct vessel *v, const bool *flag, int timeout_ms, struct err *e);

struct vessel_state {
    unsigned boxes, ready, blank;
    int zygote_pid;
    unsigned zygotes_started;
};
int vessel_state(struct vessel *v, struct vessel_state *ret, struct err *e);
/* Without waiting: what the keeper said last (false: nothing yet), and a question that its next answer will
 * be for. One question at a time is enough, and more are not sent. */
bool vessel_last_state(const struct vessel *v, struct vessel_state *ret);
void vessel_ask_state(struct vessel *v);

/* ---- a cell's result: the contract's cell, in C ---- */

enum cell_status { CELL_OK, CELL_FAILED, CELL_LIMIT, CELL_INTERRUPTED, CELL_CRASHED };
enum limit_kind {
    LIMIT_KIND_NONE,
    LIMIT_KIND_WALL,
    LIMIT_KIND_CPU,
    LIMIT_KIND_MEMORY,
    LIMIT_KIND_PIDS,
    LIMIT_KIND_DISK,
    LIMIT_KIND_OUTPUT,
};
const char *cell_status_name(enum cell_status s); /* "ok", "error", … */
const char *limit_kind_name(enum limit_kind k);   /* "wall", … */

struct mime_part {
    char *type; /* "image/png" */
    char *data; /* raw bytes; a NUL follows them */
    size_t len;
    bool text; /* UTF-8 text: the type is text/…, JSON, XML, JavaScript or LaTeX */
};

enum output_kind { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_DISPLAY, OUTPUT_RESULT };

struct output {
    enum output_kind kind;
    char *text; /* stdout, stderr: valid UTF-8 (broken bytes are U+FFFD already) */
    size_t len;
    struct mime_part *parts; /* display, result */
    unsigned n_parts;
    char *metadata; /* a JSON object, or NULL */
};

struct file_note {
    char *path;
    int change; /* enum file_change of proto.h */
    uint64_t size;
    uint8_t sha256[32];
    bool has_sha256;
};

struct cell {
    uint32_t n;
    char *code; /* a NUL follows it */
    size_t code_len;
    enum cell_status status;
    struct output *outputs;
    unsigned n_outputs;
    struct {
        char *name, *value, *traceback; /* all NULL when there is no error */
    } error;
    struct {
        enum limit_kind kind;
        double limit, used; /* seconds, bytes or numbers, as the limit's kind has it; infinite
                               where there is no number (a limit of "none" that was met) */
    } limit;
    struct {
        uint64_t stdout_bytes, stderr_bytes; /* dropped */
        uint64_t displays;                   /* dropped */
    } truncated;
    struct file_note *files;
    unsigned n_files;
    struct {
        double wall_ms, cpu_ms;
        uint64_t peak_memory;
    } receipt;
    int exit_code;      /* of sys.exit or os._exit; 128 + signal when one killed it; else 0 */
    bool left;          /* the code asked to exit (sys.exit) */
    bool session_ended; /* the interpreter is gone with this cell */
    bool restored;      /* or it was, and another has taken its place, with the state after cell: */
    uint32_t restored_to;
    bool undone; /* on purpose, with its files */
};
void cell_free(struct cell *c);
/* It has failed, and this is the cell of going back to before it. */
void cell_undone(struct cell *c, const struct cell *rollback);

/* ---- sessions ---- */

/* From `opened` and `done` everything may be called, also what drives the vessel; from the others
 * only session_interrupt and session_close. */
struct session_events {
    /* The box stands (e is NULL), or could not be made. Once per session. */
    void (*opened)(void *ctx, struct session *s, const struct err *e);
    /* As it happens. Text is valid UTF-8 in whole characters; what the output limit drops never
     * comes, and the tail that it keeps comes at the end. Displays and results come complete. What
     * background threads wrote since the last cell comes first. Any of these may be NULL. */
    void (*text)(void *ctx, struct session *s, enum output_kind kind, const char *text, size_t len);
    void (*display)(void *ctx, struct session *s, const struct output *o);
    void (*error)(void *ctx, struct session *s, const struct cell *c);
    /* The cell is finished; it is the receiver's now. */
    void (*done)(void *ctx, struct session *s, struct cell *c);
    /* It came to its end while no cell ran: the interpreter died and nothing of it was kept, or it broke the
     * protocol. */
    void (*ended)(void *ctx, struct session *s);
};

struct session *session_open(struct vessel *v, unsigned environment, const struct limits *limits,
                             const struct session_events *events, void *ctx);

/* Where a branch leaves: the state after this cell, which must be one that is kept. */
struct session_departure {
    uint32_t n;
    bool present;  /* with the files of now, and not those of then */
    uint32_t last; /* its next cell comes after this number too: it goes on in the other's place */
};
/* A session that begins as another one was; its first cell is n + 1. */
struct session *session_branch(struct session *from, const struct session_departure *at,
                               const struct limits *limits, const struct session_events *events,
                               void *ctx);
/* How many of its earlier states are kept, if not CHECKPOINTS_DEFAULT. To be said before it is open. */
void session_keep(struct session *s, unsigned checkpoints);
/* From the next cell on, PNG and JPEG pictures are scaled down, in the box, to so many pixels on their longer side, and
 * to 1 MiB. 0: they are shown as they are. A box may do otherwise: who counts on it looks at them. */
#define PICTURES_LEAST 64
#define PICTURES_MOST 8192
void session_pictures(struct session *s, unsigned side);
/* It is one of n whose cells are held at the same time: theirs together may show what one may, and have 64 MiB
 * of text. With 1 it stands alone again; what it wrote between two cells is still bound as before. */
void session_share(struct session *s, unsigned n);
/* End it, in whatever state; the box is destroyed. *s is freed and no event comes any more. */
void session_close(struct session *s);
/* The same, and hear when the keeper has said that nothing of the box is left (or the keeper itself is
 * gone): from the vessel's loop, or at once where there was no box. */
void session_close_then(struct session *s, void (*gone)(void *ctx), void *ctx);

bool session_busy(const struct session *s);
bool session_ended(const struct session *s);
/* The last cell that is over and was not undone: a branch of now leaves after it. */
uint32_t session_state_n(const struct session *s);
/* The number of the last cell; those that were undone count. */
uint32_t session_last_n(const struct session *s);
/* From now on it is told to somebody else. */
void session_give(struct session *s, const struct session_events *events, void *ctx);
bool session_from_pool(const struct session *s);

/* Run a cell. The session must be open and idle. timeout_ms 0 takes the session's limit, LIMIT_NONE
 * lifts it. */
int session_run(struct session *s, const char *code, size_t len, uint64_t timeout_ms,
                struct err *e);
/* The same, and the state before it is kept: session_rollback to the cell before it works. */
int session_run_undoable(struct session *s, const char *code, size_t len, uint64_t timeout_ms,
                         struct err *e);
/* The same in a branch whose other session keeps the state before it: should it die, it is gone. */
int session_run_at_once(struct session *s, const char *code, size_t len, uint64_t timeout_ms,
                        struct err *e);
/* Stop the running cell as Ctrl-C would: it ends as "interrupted"; what does not yield within the
 * grace of 2 s is killed. Does nothing when idle. */
void session_interrupt(struct session *s);

/* Is this a complete piece of Python? Asked while no cell runs. The answer comes from the vessel's loop
 * within a second, exactly once, or never when it was cancelled or the session closed meanwhile. NULL (with
 * an error): could not even be asked; EBUSY: a cell runs, 16 questions have no answer yet, or the last
 * one was not even read. From `done` what does not drive the vessel may be called. */
struct check_request;

struct check_answer {
    const struct err *e; /* NULL: there is an answer */
    int state;           /* enum check_state of proto.h */
    const char *indent;  /* blanks that the next line may begin with */
};
typedef void check_answered(void *ctx, const struct check_answer *a);

struct check_request *session_ask_check(struct session *s, const char *code, size_t len,
                                        check_answered *done, void *ctx, struct err *e);
/* No answer is wanted any more. */
void session_check_cancel(struct check_request *r);
/* The same, waiting: drives the vessel until it is answered. */
int session_check(struct session *s, const char *code, size_t len, int *ret_state,
                  char **ret_indent, struct err *e);

/* Ask for the variables: runs like a cell, with its limits and interrupts, but is not numbered and not
 * in the history. `done` gets a cell with n = 0 and, when all went well, a display whose part
 * VARIABLES_TYPE is a JSON array as in the contract; cell_variables_json reads it. What threads wrote
 * and which files changed meanwhile is told by the next cell. */
/* A chart as data: see docs/OUTPUTS.md. */
#define CHART_TYPE "application/vnd.retort.chart+json"
#define VARIABLES_TYPE "application/vnd.retort.variables+json"
int session_variables(struct session *s, uint64_t timeout_ms, struct err *e);

/* What there is in an environment: this code, as a cell of a fresh session, shows a part ENVIRONMENT_TYPE, and
 * cell_environment_json reads it. */
#define ENVIRONMENT_TYPE "application/vnd.retort.environment+json"
#define ENVIRONMENT_CODE "import retort_kernel.inventory\nretort_kernel.inventory.show()"
/* The same, quickly: for "description" alone. */
#define ENVIRONMENT_BRIEF_CODE "import retort_kernel.inventory\nretort_kernel.inventory.show(True)"

/* ---- states that are kept ---- */

/* Go back: the interpreter is ended, and one takes its place that has the state after cell n; the workspace is
 * what it was then. Runs like a cell, but is not numbered: `done` gets a cell with n = 0 that is restored; or
 * an error, NO_POINT, that says which states there are, and nothing has happened; or the session has ended. */
#define NO_POINT "NoCheckpoint"
int session_rollback(struct session *s, uint32_t n, struct err *e);

/* ---- files, by descriptor ---- */

/* They work between cells, during one, and after the session ended for as long as its box stands. A
 * path is relative to the workspace.
 *
 * Asked without waiting: the answer comes from the vessel's loop, exactly once, or never when it was
 * cancelled or the session closed meanwhile. NULL (with an error): could not even be asked; EBUSY: 64
 * requests are under way in this session. The request is gone when its answer is told. A box that does
 * not answer for 30 s is told as ETIMEDOUT.
 *
 * From `done` everything may be called; from `entry` what does not drive the vessel. */
struct file_request;

struct file_answer {
    const struct err *e; /* NULL: done. e->code is an errno: ENOENT, EISDIR, ENOSPC, EINVAL, … */
    int fd; /* get: a read-only descriptor of a regular file, the receiver's; else -1 */
    uint64_t size, mtime_ns;         /* get */
    uint64_t used_bytes, used_files; /* space */
};
typedef void file_answered(void *ctx, const struct file_answer *a);

struct file_request *session_ask_get(struct session *s, const char *path, file_answered *done,
                                     void *ctx, struct err *e);
/* *ret_pipe: where the contents go; non-blocking, the caller's. The file appears whole after
 * session_put_all. An answer that comes earlier is a refusal (no space; EBUSY: 16 uploads are under
 * way); the pipe says EPIPE from then on. Nothing limits the time until session_put_all: how long a box
 * that does not read is waited for is the caller's business. */
struct file_request *session_ask_put(struct session *s, const char *path, int *ret_pipe,
                                     file_answered *done, void *ctx, struct err *e);
/* All of it is in the pipe: so many bytes. UINT64_MAX: it takes no more (EPIPE), and the answer is to say
 * why. */
void session_put_all(struct file_request *r, uint64_t size);
/* `entry` for each regular file, in the order of their paths (bytes), then `done`. E2BIG: there are more
 * than are told. */
typedef void file_listed(void *ctx, const char *path, uint64_t size, uint64_t mtime_ns);
struct file_request *session_ask_list(struct session *s, file_listed *entry, file_answered *done,
                                      void *ctx, struct err *e);
/* Removes a file, or a directory with all that is in it. */
struct file_request *session_ask_delete(struct session *s, const char *path, file_answered *done,
                                        void *ctx, struct err *e);
struct file_request *session_ask_space(struct session *s, file_answered *done, void *ctx,
                                       struct err *e);
/* `point` for each state that is kept, the oldest first, then `done`. */
struct session_point {
    uint32_t n, up_to;               /* the state after these cells */
    uint32_t undone_from, undone_to; /* but for these; 0: none */
    int64_t taken_ms;                /* since 1970 */
    uint64_t memory;                 /* bytes that nothing else of the session shares */
    const char *lost;                /* what it does not have, a line each */
};
typedef void point_listed(void *ctx, const struct session_point *p);
struct file_request *session_ask_points(struct session *s, point_listed *point, file_answered *done,
                                        void *ctx, struct err *e);
/* No answer is wanted any more. An upload leaves nothing behind, unless session_put_all came before: then
 * it may be complete already. */
void session_file_cancel(struct file_request *r);

/* The same, waiting: these drive the vessel until they are done. */
/* Copy what can be read from fd into the workspace; whole or not at all. */
int session_put(struct session *s, const char *path, int fd, struct err *e);
/* A read-only descriptor of a regular file in the workspace. Its contents are the guest's. */
int session_get(struct session *s, const char *path, int *ret_fd, struct err *e);
