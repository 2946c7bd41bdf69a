/* inside: what the files of this folder share; nobody else includes it.
 *
 *     vessel.c   the loop: one epoll, one timer, who is alive
 *     link.c     messages to and from the keeper
 *     session.c  opening, closing, asking: the calls of session.h
 *     channel.c  bytes from a box: its two pipes, its frames
 *     output.c   what a cell writes and shows, within bounds
 *     display.c  from a frame to an output
 *     course.c   the course of a cell: the state machine below
 *     revive.c   a death while no cell runs
 *     meter.c    what a box has used, from its cgroup
 *     workspace.c  whether there are files to ask init about
 *     check.c    is it a complete piece of Python?
 *     verdict.c  what to call the end of a cell
 *     requests.c what its owner asks of a box's init
 *     files.c    what init answers
 *     waiting.c  the same calls, for who waits
 *
 * And what knows no session, for others too:
 *
 *     cell.c     making and filling a cell
 *     cell_json.c, cell_from_json.c  a cell as the contract writes it, and back
 *     parts.c    which form of a display is to be shown
 *     summary.c  a cell in a budget of bytes, for a model
 *     utf8.c     telling text from bytes that only look like it
 *
 * States of a session, and what ends each:
 *
 *     OPENING ──created──▶ IDLE ──run──▶ RUNNING ──DONE──▶ SETTLING ──answers──▶ IDLE
 *
 *     RUNNING  ──wall, cpu, client: SIGINT──▶ STOPPING ──DONE──▶ SETTLING
 *     STOPPING ──1.5 s: SIGINT again; 2 s: SIGKILL──▶ DYING ──died──▶ SETTLING
 *     RUNNING, STOPPING ──EOF on its channel──▶ SILENT ──100 ms: SIGKILL──▶ DYING
 *     SETTLING ──it died: RESTORE──▶ init ──RESTORED, or none waits──▶ IDLE, or ENDED
 *     SETTLING ──init is mute──▶ ENDED
 *     IDLE ──died, or EOF on its channel──▶ DYING, SETTLING: as with a cell, which is ours (revive.c)
 *
 * A box that breaks the protocol goes to DYING from wherever it is; without a cell, to ENDED.
 *
 * Invariants:
 *  1. s->cell is set exactly in RUNNING, STOPPING, SILENT, DYING and SETTLING. s->later only while it is
 *     reviving.
 *  2. Callbacks may close any session. A closed session stays in memory until no call is inside the
 *     vessel (vessel_enter, vessel_leave), and nothing is told about it any more.
 *  3. Every time a box can make us wait, s->deadline_us is set.
 */
#pragma once

#include "base/buf.h"
#include "session/cell.h"
#include "session/meter.h"
#include "session/output.h"
#include "session/session.h"
#include "session/workspace.h"
#include "wire/fields.h"
#include "wire/frame.h"
#include "wire/msg.h"

#define NEVER INT64_MAX
#define GRACE_US 2000000 /* from SIGINT to SIGKILL; the contract's */
/* When SIGINT is sent again: CPython discards what is raised in a __del__ or a fork hook, and a cell
 * that happened to be there would be killed for nothing. Late, because a cell that cleans up after
 * the first one should come to its end. */
#define INSIST_US 1500000
#define SILENT_US 100000         /* from EOF on the channel to SIGKILL */
#define DYING_US 20000000        /* from SIGKILL until we stop waiting for the keeper's word */
#define SETTLE_US 30000000       /* for init's answers after a cell, and a second more for each */
#define SETTLE_BYTES (64u << 20) /* of the workspace, which it hashes */
#define CPU_CHECK_US 5000        /* the least time between two looks at the CPU meter */
#define FILES_PATIENCE_US                                                                          \
    30000000 /* for init's answers to requests for files, without any progress */
#define SCRATCH (256u << 10)

enum session_state { OPENING, IDLE, RUNNING, STOPPING, SILENT, DYING, SETTLING, ENDED };

/* In the order of KEEPER_CREATED's descriptors. */
enum source_kind {
    FROM_STREAM,
    TO_STREAM,
    FROM_STDOUT,
    FROM_STDERR,
    FROM_FILES,
    N_SOURCES,
    FROM_KEEPER,
    FROM_TIMER
};

/* What an epoll event points to. */
struct source {
    struct session *session;
    enum source_kind kind;
    int fd;
    uint32_t watched; /* epoll's events; 0: not in the set */
};

enum stop_reason { STOP_NONE, STOP_CLIENT, STOP_WALL, STOP_CPU };

/* What a settling session waits for. */
enum {
    AWAIT_CHANGES = 1,
    AWAIT_SPACE = 2,
    AWAIT_USAGE = 4,
    AWAIT_BARRIER = 8,
    AWAIT_RESTORE = 16,
    AWAIT_EVICTED = 32,
    AWAIT_DEATH = 64
};

/* What is known about a running cell, besides what it printed. */
struct course {
    int64_t started_us, ended_us;
    uint64_t timeout_ms;
    enum stop_reason why; /* the first one counts */
    bool insisted;        /* we sent SIGINT again */
    bool reviving;        /* nobody's cell: the interpreter died while none ran */
    bool restored;        /* another interpreter has taken the dead one's place */
    uint32_t restored_to;
    bool killed;       /* we sent SIGKILL */
    const char *fault; /* how the interpreter broke the rules: a sentence, or NULL */
    bool done;         /* DONE came, with: */
    unsigned done_status;
    uint32_t exit_code;
    struct meter_reading before;
    uint64_t written; /* bytes of text */
    bool space_known;
    uint64_t used_bytes, used_files;
    unsigned awaited;
    uint32_t changes_req, space_req, barrier_req, restore_req;
    uint32_t restore_to; /* POINT_NEWEST, or where a rollback goes */
    uint32_t points_req; /* a rollback asks first: */
    bool reachable;
    struct buf missing; /* files that a rollback could not bring back, a line each */
    uint32_t evicted_req;
    uint32_t evicted; /* of init's processes, for want of memory: they are no part of the cell */
    struct buf there; /* the states that there are, as text */
};

/* What an owner wants to have run. */
struct order {
    enum { ORDER_RUN, ORDER_VARIABLES, ORDER_ROLLBACK } kind;
    char *code;
    size_t len;
    uint64_t timeout_ms;
    uint8_t flags; /* enum run_flag */
    uint32_t to;   /* of a rollback */
    bool stop;     /* it is interrupted already */
};

/* See requests.c. */
struct file_request {
    struct file_request *next;
    struct session *session;
    uint32_t req;
    unsigned type; /* enum file_msg */
    file_answered *done;
    file_listed *entry;
    point_listed *point;
    void *ctx;
    int64_t deadline_us;
    bool forgotten; /* nobody wants the answer: only its end is still to be sent */
    bool telling;   /* its `entry` is being called: it may be forgotten, but not freed */

    /* an upload's end */
    bool whole;   /* all of it is in the pipe */
    bool end_due; /* the socket did not take FILE_PUT_END yet, with: */
    uint64_t size;

    /* a list's */
    char *last;
    unsigned n_listed;
    size_t listed_bytes;
    bool cut;
};

struct session {
    struct vessel *vessel;
    struct session *prev, *next;
    struct limits limits;
    unsigned checkpoints;
    unsigned pictures; /* see session_pictures */
    unsigned sharers;  /* see session_share */
    struct session_events events;
    void *ctx;

    enum session_state state;
    bool closed;
    bool died; /* KEEPER_DIED came, with: */
    int wait_status;
    bool memory_short;
    bool broken; /* no cell can follow this one */

    uint32_t req, box;
    bool has_box;
    bool from_pool;

    struct source sources[N_SOURCES];
    unsigned ready; /* bits of enum source_kind */
    struct frame_reader reader;
    struct buf unsent;
    size_t unsent_at;        /* up to here it has been sent after all */
    unsigned fences_waiting; /* answers in there: a box that does not read gets only so many */
    bool paused;             /* it wrote too much while idle: not read until the next cell */
    uint64_t idle_frames;    /* bytes of frames since the last cell */
    struct collector out;    /* of the running cell, or of the next one */
    struct collector aside;  /* of the next one, while the variables are asked for */

    int64_t deadline_us, cpu_check_us;
    struct meter meter;
    struct meter_reading usage; /* the last one */
    bool usage_known;           /* init has answered once */
    uint32_t usage_req;         /* 0: none is under way */
    struct workspace workspace;

    uint32_t n_cells;
    uint32_t state_n; /* the cell after which it is what it is now */
    uint32_t evicted; /* in all */
    bool new_files;   /* we have changed some since a state was last kept with them */
    struct cell *cell;
    struct course course;
    bool revived;        /* since the last cell */
    struct order *later; /* to begin when that is done */

    struct {
        uint32_t of, from, to; /* cells; to 0: nothing is to be told */
    } same;                    /* states, as far as init has not been told yet */

    struct file_request *requests;
    struct check_request *checks; /* see check.c */
};

struct state_request {
    struct state_request *next;
    uint32_t req;
    bool answered;
    struct vessel_state state;
};

/* Somebody who waits for a box's end. */
struct end_request {
    struct end_request *next;
    uint32_t box;
    int held;                /* closed then; or -1 */
    void (*gone)(void *ctx); /* or NULL */
    void *ctx;
};

struct vessel {
    int epoll, timer;
    struct source keeper, ticker;
    int64_t armed_us;
    unsigned depth; /* calls inside */
    bool sweep;     /* a session was closed meanwhile */
    bool gone;
    char why[256];
    struct session *sessions;
    uint32_t last_req;
    struct buf *outbox; /* messages the keeper's socket did not take yet */
    unsigned n_outbox;
    struct state_request *states;
    struct vessel_state last_state;
    bool state_known;
    uint32_t state_req; /* vessel_ask_state's; 0: none is under way */
    struct end_request *ends;
    struct buf frame; /* where frames and messages are built */
    char scratch[SCRATCH];
};

/* ---- vessel.c ---- */
void vessel_enter(struct vessel *v);
void vessel_leave(struct vessel *v);
/* Wait up to timeout_ms (-1: as long as it takes) and handle what is ready. */
int vessel_step(struct vessel *v, int timeout_ms, struct err *e);
/* A number for a request; never 0. */
uint32_t vessel_req(struct vessel *v);
/* Have the timer go off at `at` or earlier. */
void vessel_arm(struct vessel *v, int64_t at_us);
void source_watch(struct vessel *v, struct source *s, uint32_t events);
/* Stop watching and close. */
void source_close(struct vessel *v, struct source *s);
int vessel_gone_err(const struct vessel *v, struct err *e);

/* ---- link.c ---- */
void link_create(struct session *s, unsigned environment);
void link_branch(struct session *s, uint32_t box, const struct session_departure *at);
/* Of one that is being made: it is not wanted any more. */
void link_give_up(struct session *s);
void link_signal(struct session *s, int sig);
void link_destroy(struct vessel *v, uint32_t box);
void link_status(struct vessel *v, uint32_t req);
/* Close `held` and tell (gone may be NULL) when this box is gone; the keeper has been, or will be, told to destroy it. */
void link_await_end(struct vessel *v, uint32_t box, int held, void (*gone)(void *ctx), void *ctx);
/* Whoever still waits is told now. */
void link_forget_ends(struct vessel *v);
/* Send what waits in the outbox. */
void link_flush(struct vessel *v);
/* Handle what the keeper says. */
void link_read(struct vessel *v);
/* The keeper is gone: tell every session. */
void link_lost(struct vessel *v, const char *why);

/* ---- session.c ---- */
void session_free(struct session *s);
/* The box stands; the fields left are from_pool, meter and whether there are files. */
void session_created(struct session *s, uint32_t box, struct fields *f, struct msg *m);
void session_failed(struct session *s, const char *why);
/* Begin to collect for the next cell. */
void session_collect(struct session *s);
void session_deadline(struct session *s, int64_t at_us);
int session_must_be_idle(const struct session *s, struct err *e);
/* It is idle. */
int session_begin(struct session *s, const struct order *o, struct err *e);
/* Something runs like a cell and is none: what threads wrote since the last one belongs to the next. */
void session_set_aside(struct session *s);
/* Is it short enough for a frame? */
int session_must_fit(size_t len, struct err *e);

/* The box's ends of the channel come with a message: take them, in the order of enum source_kind. */
int session_take_sources(struct session *s, struct msg *m, unsigned n);

/* ---- channel.c ---- */
void channel_ready(struct session *s, unsigned ready);
/* Read what is in both pipes now; what comes meanwhile can wait. */
void channel_drain(struct session *s);
/* Read what a dead interpreter left behind. */
void channel_drain_all(struct session *s);
/* Send the frame in v->frame. */
void channel_send(struct session *s);
void channel_resume(struct session *s);
/* A frame of a box; -1: it may not be sent now, or not at all. For the fuzzers too. */
int channel_frame(struct session *s, const struct frame *f);

/* ---- check.c ---- */
/* An answer to CHECK; -1: it is none, or nobody asked. */
int check_answer(struct session *s, struct fields *f);
/* There will be no answers any more: say so to all who wait. */
void checks_lost(struct session *s);
/* The session is closed: free them, and say nothing. */
void checks_close(struct session *s);
/* When the next one is out of time, and what is done about it. */
int64_t checks_due_us(const struct session *s);
void checks_timer(struct session *s, int64_t now_us);

/* ---- display.c ---- */
/* -1: this is not a display. *ret may be empty: nothing in it could be shown. */
int display_parse(const struct frame *f, struct output *ret);

/* ---- course.c ---- */
void course_begin(struct session *s, uint64_t timeout_ms);
/* s->cell stands for it. */
void course_rollback(struct session *s, uint32_t n);
void course_point(struct session *s, const struct session_point *p);
void course_points_told(struct session *s);
void course_stop(struct session *s, enum stop_reason why);
void course_done(struct session *s, unsigned status, uint32_t exit_code);
/* It broke the protocol. */
void course_fault(struct session *s, const char *sentence);
/* Its channel is closed, but it may be alive. */
void course_silent(struct session *s);
void course_died(struct session *s, int wait_status, bool memory_short);
void course_lost(struct session *s, const char *sentence);
void course_timer(struct session *s, int64_t now_us);
/* An answer came that it waited for (AWAIT_…). */
void course_answer(struct session *s, unsigned what);
/* Another interpreter has taken the dead one's place, with the state after cell n; these are its channel's
 * ends. */
void course_restored(struct session *s, uint32_t n, const char *missing, struct msg *m);
/* init says that so many of its processes have been ended for want of memory, in all. */
void course_evicted(struct session *s, uint32_t n);
/* init can answer nothing any more. */
void course_init_gone(struct session *s);
void course_usage(struct session *s, const struct meter_reading *r);

/* ---- revive.c ---- */
bool revive_can(const struct session *s);
bool revive_under_way(const struct session *s);
void revive_hold(struct session *s, const struct order *o);
void revive_forget(struct session *s);
/* The session is idle again, or has ended. */
void revive_finish(struct session *s, struct cell *c);

/* ---- verdict.c ---- */
/* What killed an interpreter that was not stopped by us. */
void verdict_say_death(const struct session *s, struct cell *c);
void verdict_reach(struct session *s, struct cell *c);
/* Does the error say that the disk is full? */
bool verdict_no_space(const struct cell *c);

/* ---- requests.c ---- */
/* Ask for what a cell's course needs; 0: init cannot be asked. */
uint32_t files_ask(struct session *s, unsigned type);
uint32_t files_ask_restore(struct session *s, uint32_t n);
/* The state after cell n is what it was after cell `of`. init is told with whatever it is asked next. */
void files_note_same(struct session *s, uint32_t of, uint32_t n);
void files_tell_same(struct session *s);
/* Has no answer. */
void files_tell_keep(struct session *s, unsigned checkpoints);
struct file_request *request_find(struct session *s, uint32_t req);
/* It is over: it is gone, then its owner is told. */
void request_answer(struct file_request *r, const struct file_answer *a);
void request_free(struct file_request *r);
/* Send what the socket did not take before. */
void requests_send_ends(struct session *s);
/* init can be asked nothing any more: say so to all who wait. */
void requests_lost(struct session *s);
/* The session is closed: free them, and say nothing. */
void requests_close(struct session *s);
/* When the next one is out of time, and what is done about it. */
int64_t requests_due_us(const struct session *s);
void requests_timer(struct session *s, int64_t now_us);

/* ---- files.c ---- */
void files_read(struct session *s);
int files_handle(struct session *s, struct msg *m);
