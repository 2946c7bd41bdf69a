/* inside: what the files of the gate share; nobody else includes it.
 *
 *   gate.c      the loop: HTTP, the vessel, timers, signals; draining
 *   http.c      requests: from libmicrohttpd to a handler and back
 *   clients.c   connections that take too much time or memory
 *   routes.c    the table of calls
 *   reply.c     answers: JSON, errors, times
 *   ask.c       reading what a client asked: members of JSON, limits, pages
 *   live.c      sessions that are alive; their idle time and their end
 *   jobs.c      cells and other turns of a session, one at a time
 *   journal.c   what of a cell is kept
 *   stream.c    a cell as server-sent events
 *   inner.c     calls of our own API that other parts of the gate make (inner.h)
 *   calls_ask.c questions for a model, which another process answers
 *   calls_*.c   the handlers, by subject
 *   mcp/        the same for agents, as the Model Context Protocol has it (mcp/mcp.h)
 *   given.c     files that every new session begins with
 *   holder.c    what each token has in use, and may
 *   metrics.c   counters
 *   store…      what outlives a session (store.h)
 *
 * One thread, one loop; nothing waits. A request goes through these states:
 *
 *     headers ──begin──▶ body ──handle──▶ waiting ──answer──▶ sent, freed
 *                 └──────── answer ────────────────▲
 *
 * Whoever works for a request that waits registers in it (request_work), so that he hears when the client
 * has gone away. Invariants:
 *  1. A request is freed in libmicrohttpd's completion callback and nowhere else, and libmicrohttpd runs
 *     only at one place of the loop; an inner one is freed at another (inner_turn). So pointers to requests stay good while events are handled.
 *  2. A request is answered at most once; afterwards `work` is empty.
 *  3. A live session's jobs and transfers point to their requests and the other way round; whoever
 *     ends first unhooks both.
 */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "gate/config.h"
#include "gate/gate.h"
#include "gate/store.h"
#include "session/session.h"

struct gate;
struct request;
struct live;
struct job;

/* ---- the loop (gate.c) ---- */

/* Something in the loop's epoll set; lies inside the thing that waits. */
struct watch {
    int fd; /* -1: not watched */
    void (*ready)(struct watch *w, uint32_t events);
};
void watch_set(struct gate *g, struct watch *w, int fd, uint32_t events);
void watch_clear(struct gate *g, struct watch *w);
/* Have everything looked at that is due at this time (clock_wall_ms), or earlier. */
#define TOKENS_MS 1000 /* how often revoked tokens are looked for */
void gate_arm(struct gate *g, int64_t at_ms);
/* Something was forgotten: what is left of it on the disk goes now, and not within a minute. */
void gate_expire_soon(struct gate *g);

/* ---- tokens in use (holder.c, metrics.c) ---- */

#define CELL_STATUSES (CELL_CRASHED + 1)
#define TIME_BUCKETS 10

struct histogram {
    uint64_t buckets[TIME_BUCKETS + 1];
    uint64_t count;
    double sum;
};

struct counters {
    uint64_t sessions;
    uint64_t cells[CELL_STATUSES];
    uint64_t requests[6]; /* by the first digit of their status */
    struct histogram cell_seconds, request_seconds;
};

struct holder {
    struct holder *next;
    struct token token;
    unsigned sessions;
    uint64_t memory;   /* of its sessions' limits */
    uint64_t held;     /* of ours, for its requests; see request_holds */
    double cells_left; /* of this minute's quota */
    int64_t cells_at_ms;
    struct counters counters;
};

struct holder *holder_get(struct gate *g, const struct token *t);
/* May it have one more session with this memory? 0, or -1 and the request is answered. */
int holder_admits(struct request *r, uint64_t memory);
void holder_add(struct holder *h, uint64_t memory);
void holder_remove(struct holder *h, uint64_t memory);

/* What a box is counted with: a session of its token's and, of the server's boxes and the token's memory, one as
 * long as it or a branch of it is there: memory that they share stays where it was first touched, and so does the
 * box. */
struct charge;
/* `under`: of the box that it is a branch of, or NULL. */
struct charge *charge_new(struct gate *g, struct holder *h, uint64_t memory, struct charge *under);
/* The session is over; its branches may go on. */
void charge_end(struct charge *c);
/* One more cell; 0, or -1 and the request is answered. */
int holder_begins_cell(struct request *r);

void count_request(struct request *r, unsigned status);
void count_cell(struct holder *h, const struct cell *c);
void metrics_text(struct gate *g, const struct holder *h, struct buf *ret);

/* ---- the gate ---- */

struct gate {
    const struct config *config;
    const char *const *environments;
    int state_fd; /* locked */
    struct store *store;
    struct vessel *vessel;
    int asker_fd; /* -1: there is no model */
    struct MHD_Daemon *http;
    int epoll;
    struct watch http_watch, vessel_watch, signal_watch, timer_watch;
    int64_t armed_ms;
    struct live *lives;         /* newest first */
    unsigned n_lives;           /* boxes that are charged */
    unsigned n_runs, n_waiting; /* one-shot runs: under way, and before their turn */
    struct client *clients;
    struct request *yielding;
    struct mcp_server *mcp;
    const struct gate_file *files; /* that every new session begins with */
    unsigned n_files;
    struct inner *inners, *inner_due; /* all, and those that have something to do */
    struct holder *holders;
    struct counters counters; /* of all tokens, also those that are gone */
    unsigned n_requests;      /* not completed yet */
    uint64_t held;            /* for requests; see request_holds */
    int64_t token_check_ms, expire_ms;
    unsigned idle_turns; /* one after the other in which nothing happened */
    bool draining, stopping;
    int64_t drain_until_ms;
    char keeper_gone[256]; /* why, when it is */
};

/* gate_serve in its parts, for the fuzzer. A turn: 1, go on; 0, all is drained. */
int gate_open(struct gate *g, const struct gate_start *start, struct err *e);
int gate_turn(struct gate *g, int most_ms, struct err *e);
void gate_close(struct gate *g);

/* ---- requests (http.c) ---- */

enum body_kind {
    BODY_NONE,   /* one that comes is read and forgotten */
    BODY_JSON,   /* collected whole, within a bound */
    BODY_STREAM, /* given to the handler as it comes */
};

/* What a call with BODY_STREAM does with its body. */
struct body_sink {
    /* Headers are there. Answer to refuse the body before it is sent. */
    void (*begin)(struct request *r);
    /* A piece; how much of it was taken. Less than all: set r->stalled; request_resume goes on. */
    size_t (*piece)(struct request *r, const char *data, size_t len);
    /* That was all. */
    void (*end)(struct request *r);
};

struct route {
    const char *method;
    const char *path; /* {sid}, {n}: one part; {path}: the rest, at least one part */
    bool open;        /* no token needed */
    enum body_kind body;
    uint64_t body_max;
    void (*handle)(struct request *r); /* headers and body are there */
    const struct body_sink *sink;
    bool says_json; /* a body must be called JSON by whoever sends it */
};

#define PARAMS 2

/* A connection. */
struct client {
    struct client *next, **at;
    struct gate *gate;
    struct watch socket;
    struct request *request; /* that it brings or waits for; or NULL */
    int64_t idle_ms;         /* since when there is none (clock_now_ms) */
    int64_t hung_up_ms;      /* 0: not, or it was seen to */
};

struct request {
    struct gate *gate;
    struct inner *inner; /* NULL: it came over a connection: */
    struct client *client;
    struct MHD_Connection *connection;
    char *uri; /* raw, with its query */
    const char *method;
    const struct route *route;
    char *params[PARAMS];
    struct holder *holder; /* NULL: the call is open */
    const char *origin;    /* of the page that sent it, when it may; or NULL */
    int64_t began_us;

    bool started;  /* begin was called */
    bool in_begin; /* and has suspended the connection */
    bool suspended;
    bool stalled; /* the sink cannot take more */
    bool body_over;
    uint64_t discarded;
    struct buf body;
    uint64_t held;        /* memory that it takes, all in all: */
    uint64_t body_held;   /* its body, in whatever form it is kept */
    uint64_t answer_held; /* an answer in one piece */
    int64_t answered_us;  /* since when an answer is under way that ends by itself; 0: none */

    struct MHD_Response *response;
    unsigned status;
    bool queued;
    bool gone; /* the client */
    struct request *next_yielding;

    /* Who works for it: called once when nobody wants the answer any more. */
    void (*abandon)(void *work);
    void *work;
};

int http_start(struct gate *g, int listen_fd, struct err *e);
/* Let libmicrohttpd do its work; how long it can wait then, in ms, or -1. */
int http_turn(struct gate *g);
/* Is an answer on its way whose client takes more at once? */
bool http_is_sending(const struct gate *g);
void http_stop_accepting(struct gate *g);
void http_stop(struct gate *g);
/* Shut connections that never come to the end of what they ask for, or closed their side in the middle of it;
 * when to look again. */
#define CLIENT_IDLE_S 75    /* of a connection without a request */
#define CLIENT_ASK_MS 30000 /* for its headers, and for a body, which has more where it is long */
#define HANGUP_MS 1000      /* from the end of its side until we give it up */
int64_t clients_tick(struct gate *g, int64_t now_ms);

/* ---- the memory that requests take (holder.c, clients.c) ---- */

/* Whatever is held for a request by the will of its client is counted: bodies, runs that wait, lists, answers
 * that are not read. All requests together have max_buffers, and those of one token a part of it. Above that
 * new bodies and archives are refused (503), and an answer takes the place of older ones, whose connections are
 * shut. What a request has itself does not count against it, so that one that is alone always passes; and so
 * do small ones, of which there are at most as many as connections. */
#define SMALL_REQUEST (64u << 10)
bool request_has_room(const struct request *r);
/* The same for its token's part alone. */
bool holder_has_room(const struct request *r);
/* One thing that is held takes `now` bytes; *held is what it was counted with before. */
void request_holds(struct request *r, uint64_t *held, uint64_t now);
void request_holds_nothing(struct request *r);
/* The same for an answer that is under way. */
void request_answer_holds(struct request *r, uint64_t *held, uint64_t now);

/* A header, or NULL. */
const char *request_header(struct request *r, const char *name);
/* How many headers of this name there are: two of what there is one of are a way to tell two of us different
 * things. */
unsigned request_count_headers(struct request *r, const char *name);
/* The token that it came with, as text; or NULL. */
const char *request_token(struct request *r);
/* A query parameter, decoded, or NULL. */
const char *request_query(struct request *r, const char *name);
void request_work(struct request *r, void (*abandon)(void *work), void *work);
/* The work is done, or given up: nobody is to be told. */
void request_unwork(struct request *r);
/* Nobody wants the answer any more: whoever works for it is told. */
void request_abandon(struct request *r);
/* It is over, and so is whatever was done for it; all that it holds is freed, but not *r. */
void request_done(struct request *r);
/* Take the answer; whoever waits is woken. */
void request_reply(struct request *r, unsigned status, struct MHD_Response *response);
/* The sink can go on, or an answer's reader has more to give. */
void request_resume(struct request *r);
/* From an answer's reader: there is nothing now. */
void request_pause(struct request *r);
/* From an answer's reader: there may be more, but others come first. */
void request_yield(struct request *r);
/* They had their turn: some of those who wait go on. */
void requests_go_on(struct gate *g);
/* End the connection at once, whatever is under way. */
void request_kick(struct request *r);

extern const struct route routes[];
extern const unsigned n_routes;
/* The route of this method and raw path; NULL with the methods there are (a text for "Allow", or "" for no
 * such path). Parameters are decoded; a bad one is NULL. */
const struct route *route_find(const char *method, const char *path, char *ret_params[PARAMS],
                               struct buf *ret_allow);

/* ---- answers (reply.c) ---- */

void reply_json(struct request *r, unsigned status, json_t *body); /* takes it over */
/* The same with a Location. */
void reply_json_at(struct request *r, unsigned status, const char *location, json_t *body);
void reply_text(struct request *r, unsigned status, const char *type, struct buf *body);
void reply_empty(struct request *r, unsigned status);
/* A browser asks beforehand what a page of another origin may do. */
void reply_preflight(struct request *r, const char *methods);
void reply_error(struct request *r, unsigned status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with Retry-After. */
void reply_later(struct request *r, unsigned status, unsigned seconds, const char *code,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* What a store's failure is to a client; the details go to the log. */
void reply_store_failed(struct request *r, const struct err *e);
struct MHD_Response *response_buffer(struct request *r, struct buf *body, const char *type);
/* What every answer has: nobody may guess at its type, keep it, or show it in a frame of his page. */
void response_begin(struct MHD_Response *response, const char *type);
void response_header(struct MHD_Response *response, const char *name, const char *value);
json_t *time_json(int64_t ms);
/* Any bytes, as text. */
json_t *text_json(const char *text);
char *json_text(const json_t *j);              /* compact; the caller's */
void json_add(struct buf *b, const json_t *j); /* the same, behind what is there */
json_t *page_json(json_t *data, json_t *next);

/* ---- what was asked (ask.c) ---- */

/* The body as a JSON object with no members but these (NULL-terminated); an empty body is {}. NULL, and the
 * request is answered, where it is anything else. */
json_t *ask_object(struct request *r, const char *const *members);
/* Read "limits" over the defaults, and check them against the server's maxima. */
int ask_limits(struct request *r, const json_t *limits, struct limits *ret);
/* Bytes that the summary of a cell may have. */
int ask_summary(struct request *r, const json_t *summary, unsigned *ret);
/* Pixels that the longer side of a picture may have; 0 when absent. */
int ask_pictures(struct request *r, const json_t *pictures, unsigned *ret);
/* "timeout" of a cell in ms: 0 when absent. */
int ask_timeout(struct request *r, const json_t *timeout, uint64_t max_ms, uint64_t *ret);
int ask_code(struct request *r, const json_t *body, const char **ret, size_t *ret_len);
/* ?limit= */
int ask_page(struct request *r, unsigned *ret_limit);
json_t *limits_json(const struct limits *l);
int ask_environment(struct request *r, const json_t *name, unsigned *ret);
/* Is there room for one more session? */
int ask_room(struct request *r, const struct limits *l);

/* ---- live sessions (live.c) ---- */

struct live {
    struct live *next;
    struct gate *gate;
    struct holder *holder;
    struct session *session; /* NULL: waits for its turn, or the box is going */
    char id[SESSION_ID_MAX];
    uint64_t number; /* among its token's */
    unsigned environment;
    struct limits limits;
    json_t *metadata;
    double idle_timeout_s;
    unsigned checkpoints;
    int64_t created_ms, active_ms;
    bool open;
    bool once; /* a one-shot run: no record, ends with its cell */
    struct charge *charge;
    bool listed;        /* in `lives` */
    const char *ending; /* the reason, once it is to end */
    uint32_t cells;
    uint64_t journal; /* bytes of it in the store */
    struct job *running, *queue;
    unsigned n_queue;
    struct transfer *transfers;  /* uploads, downloads, lists under way */
    char parent[SESSION_ID_MAX]; /* of a branch, else "" */
    uint32_t parent_n;
    struct forking *forking; /* it is being made, with others */
    struct request *creator; /* waits for the box */
    struct given *given;     /* files that are put into it before that hears of it */
    struct run *run;         /* a one-shot run before its cell */
    struct request *deleter; /* waits for its end */
    void (*opened)(struct live *l, const struct err *e);
};

/* `from`: the session that it will be a branch of, or NULL. */
struct live *live_new(struct gate *g, struct holder *h, const struct limits *limits,
                      unsigned environment, const struct live *from);
/* Ask the keeper for its box; `opened` is called. */
void live_open(struct live *l);
/* The same, as another one was after this cell. */
void live_open_branch(struct live *l, struct live *from, const struct session_departure *at);
/* It stands: from now on its journal is kept. */
int live_record(struct live *l, struct err *e);
/* The one named in the path, or NULL: there is none alive of this token. */
struct live *live_find(const struct request *r);
/* The same, to be used; NULL: the request is answered. */
struct live *live_asked(struct request *r);
json_t *live_json(const struct live *l);
json_t *row_json(const struct session_row *row);
/* End it: a running cell is interrupted first and keeps what it printed. *l may be freed. */
void live_end(struct live *l, const char *reason);
/* Its last cell is over. */
void live_ended(struct live *l);
/* It is not idle now. */
void live_touch(struct live *l);
/* What is due; when the next thing is. */
int64_t lives_tick(struct gate *g, int64_t now_ms);
void lives_end_all(struct gate *g, const char *reason);
void lives_end_of(struct gate *g, const struct holder *h, const char *reason);

/* ---- jobs (jobs.c) ---- */

enum job_kind { JOB_CELL, JOB_VARIABLES, JOB_ROLLBACK, JOB_TRY };

struct job {
    struct job *next;
    struct live *live;
    struct request *request; /* NULL: the client has gone away */
    struct stream *stream;   /* NULL: one answer at the end */
    enum job_kind kind;
    char *code;
    size_t code_len;
    uint64_t timeout_ms;
    unsigned summary;    /* bytes */
    unsigned pictures;   /* pixels; 0: as they are */
    uint32_t to;         /* of a rollback */
    bool undo;           /* a cell that fails leaves no trace */
    struct cell *failed; /* it has failed, and is being undone */
    struct trial *trial; /* of candidates */
    int64_t began_ms;
};

/* What is asked for. The code is copied. */
struct job_order {
    enum job_kind kind;
    const char *code;
    size_t len;
    uint64_t timeout_ms;
    unsigned summary; /* of a cell */
    unsigned pictures;
    uint32_t to;
    bool undo;
    struct trial *trial; /* taken over */
};
/* Put it in the queue, and start it when nothing runs. 0, or -1 and the request is answered. */
int job_add(struct live *l, struct request *r, const struct job_order *o);
void job_free(struct job *j);
/* Start the next one that waits. */
void jobs_next(struct live *l);
/* Those that wait will never run, and this is why. */
void jobs_refuse(struct live *l, unsigned status, const char *code, const char *why);
extern const struct session_events job_events;
/* Put a cell of it into the journal. */
void job_record(struct live *l, struct job *j, struct cell *c);
/* The running one is over, and with this reason (or NULL) the session. *l may be freed. */
void job_over(struct live *l, struct job *j, const char *ended);

/* ---- branches (calls_fork.c) ---- */

/* A session that is being made ends before all of its group stand. */
void forking_lost(struct live *l);
/* Begin with what was to be tried. 0, or -1 and the request is answered. */
int trial_begin(struct live *l, struct job *j);
/* Interrupt what is being tried. */
void trial_stop(struct trial *t);
void trial_free(struct trial *t);

/* ---- streams (stream.c) ---- */

struct stream;
struct stream *stream_new(struct request *r);
void stream_text(struct stream *s, enum output_kind kind, const char *text, size_t len);
void stream_display(struct stream *s, const struct output *o);
void stream_error(struct stream *s, const struct cell *c);
/* The last event; `text` is the cell as JSON. The stream belongs to its answer, and is gone when that is sent. */
void stream_end(struct stream *s, json_t *cell, const struct buf *text);
/* An event as it is to be sent, but for the empty line behind it. Not one that may be missed: it is left out where
 * the reader is slow. `last`: no more follow. */
void stream_event(struct stream *s, const char *text, size_t len, bool dear, bool last);
/* The last event where there is no cell. */
void stream_fail(struct stream *s, const char *why);
/* A comment where nothing else was sent for a while, so that nobody in between takes the connection for
 * dead; when the next is due. */
int64_t streams_tick(int64_t now_ms);

/* ---- MCP (mcp/mcp.h) ---- */

/* What cells wrote is told to those who asked for it; when there is more to tell (mcp/tool_run.c). */
int64_t mcp_runs_tick(int64_t now_ms);

/* ---- one-shot runs (calls_run.c) ---- */

/* Runs that wait get the free turns. */
void runs_next(struct gate *g);
/* Its session ends before its cell has begun: it is answered, and freed. */
void run_ended(struct run *w, const char *reason);
/* Those that wait will never run. */
void runs_refuse(struct gate *g);
/* Nor those of this token, which is not valid any more. */
void runs_refuse_of(const struct holder *h);
/* Nor does whoever waits for what is in the environments hear it (calls_environments.c). */
void environments_refuse(void);
/* Nor an answer of a model's (calls_ask.c). */
void questions_refuse(void);

/* ---- transfers (transfer.c) ---- */

/* A request that has to do with a session's files; the first member of whatever it is. It ends with its
 * request or with its session, whichever is first. */
struct transfer {
    struct transfer *next;
    struct live *live; /* NULL: it is over */
    struct request *request;
    struct file_request *asked;       /* what init was asked last */
    void (*free)(struct transfer *t); /* what it holds besides, and itself */
};

/* Begin: `size` bytes for whatever it is. When the client goes away or the session ends it is freed. */
void *transfer_new(struct live *l, struct request *r, size_t size,
                   void (*free)(struct transfer *t));
/* It is answered: free it. */
void transfer_over(struct transfer *t);
/* It is answered, but lives until the answer has been sent. */
void transfer_sending(struct transfer *t);
/* What a file's failure is to a client. */
void reply_file_failed(struct request *r, const struct err *e, bool writing);
json_t *file_json(const char *path, uint64_t size, uint64_t mtime_ns);
/* A client did this ("created", "changed", "deleted") to a file: whoever listens is told. */
void live_file_changed(const struct live *l, const char *path, const char *change);
void live_end_transfers(struct live *l);

/* Contents on their way into a box, in pieces. */
struct upload {
    struct watch pipe;
    struct live *live;
    struct file_request *asked;
    int fd;
    uint64_t total;
    void (*writable)(void *ctx);
    void (*done)(void *ctx, const struct err *e);
    void *ctx;
};

/* `writable` is called when upload_write took less than it was given and can go on; `done` once, when
 * the file stands or was refused. After it the upload is closed. */
int upload_start(struct upload *u, struct live *l, const char *path, void (*writable)(void *ctx),
                 void (*done)(void *ctx, const struct err *e), void *ctx, struct err *e);
size_t upload_write(struct upload *u, const char *data, size_t len);
void upload_finish(struct upload *u);
/* Leave nothing behind. Also right for one that is closed or was never started. */
void upload_cancel(struct upload *u);

/* ---- files that every new session begins with (given.c) ---- */

/* Copy them into this one; `done` is called, now or later, unless it ends before. */
void given_put(struct live *l, void (*done)(struct live *l));
void given_stop(struct live *l);

/* ---- the log (log.c) ---- */

void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
