/* fake: a keeper and a box made of socket pairs, played by the test itself.
 *
 * The test is both sides: it writes what a box would write, lets the vessel work (fake_turn), and
 * looks at what the owner was told. Only where a call of session.h waits for its answer does a
 * thread play init.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session/session.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/proto.h"

struct fake {
    struct vessel *vessel;
    struct session *session;
    struct limits limits;

    /* the other sides */
    int keeper;
    int stream, orders; /* the channel: frames from the box, and to it */
    int out, err, files;
    struct frame_reader reader;
    uint32_t box, n;            /* and the cell that the owner asked for last */
    int meter_files[METER_FDS]; /* plain files with the numbers, when there is a meter */
    int workspace;              /* what the owner gets of it, or -1 */
    bool has_files;             /* and whether init says that some were there at first */
    uint32_t same_as;           /* that DONE bears, and one more; 0: STATE_IS_NEW */

    /* what the owner was told */
    bool opened, failed, done, ended;
    char open_error[512];
    char text[1 << 16]; /* as it came: "1" or "2" before each piece of another stream */
    size_t text_len;
    int last_stream;
    unsigned texts, displays, errors;
    struct cell *cell;

    bool close_in_text, close_in_done; /* what a rude owner does in its callbacks */

    bool restores;        /* init is silent about FILE_RESTORE, and the test answers */
    uint32_t restore_req; /* that was asked for */
    const char *missing;  /* files that it could not bring back; NULL: none */
    uint32_t evicted;     /* processes of init's that were ended for want of memory */
};

/* A vessel whose session is still opening. */
void fake_start(struct fake *f, const struct limits *limits);
/* The box stands; `meter` says with which meter. */
void fake_create(struct fake *f, unsigned meter);
/* Both, with the default limits. */
void fake_open(struct fake *f);
void fake_stop(struct fake *f);
/* A second session in the same vessel; end it with fake_part, before the first. */
void fake_join(struct fake *second, struct fake *first, const struct limits *limits,
               unsigned meter);
void fake_part(struct fake *second);

/* Let the vessel do what it can without waiting. */
void fake_turn(struct fake *f);
/* Let it wait until *flag, at most that long. */
bool fake_wait(struct fake *f, const bool *flag, int timeout_ms);
#define FAKE_PATIENCE_MS 60000 /* for what has to come, on a slow machine too */
/* Whatever the session waits for has not come in the time it has. */
void fake_time_is_up(struct fake *f);

void fake_run(struct fake *f, const char *code);
/* The same for session_variables. */
void fake_ask_variables(struct fake *f);
void fake_print(int fd, const char *text);

/* Frames of the box. */
void fake_frame(struct fake *f, uint32_t type, const struct buf *fields);
void fake_done(struct fake *f, unsigned status);
void fake_fence(struct fake *f, uint32_t fence);
void fake_display(struct fake *f, const char *type, const char *data);
void fake_error(struct fake *f, const char *name, const char *value);
/* The next frame the owner sent; false when there is none. */
bool fake_heard(struct fake *f, struct frame *ret);

/* init answers the question that is next in its socket (FILE_CHANGES, …) as a sound one would. */
void fake_init_answers(struct fake *f);
/* Another interpreter has taken the dead one's place: its channel is the fake's from now on, and these are the
 * ends for the owner. */
void fake_successor(struct fake *f, int ret[4]);
void fake_restored(struct fake *f, uint32_t req, uint32_t n, const int *fds, unsigned n_fds);
/* The rest of a cell: DONE, init's answers, and the cell. */
void fake_finish(struct fake *f, unsigned status);

/* The next message to the keeper: its type, or 0. */
uint32_t fake_keeper_next(struct fake *f, struct msg *m);
/* Read what the keeper was told, and forget it. */
void fake_keeper_rests(struct fake *f);
/* The keeper answers what stands in its socket: KEEPER_STATUS, which follows a signal. */
void fake_keeper_answers(struct fake *f);
/* The keeper answers, and then says that the interpreter died. */
void fake_died(struct fake *f, int wait_status, bool memory_short);
void fake_meter(struct fake *f, unsigned i, const char *text);

/* Is this the keeper's next message, about our box? `second` is the signal of a KEEPER_SIGNAL. */
bool fake_keeper_hears(struct fake *f, uint32_t type, uint32_t second);
/* Did the cell and the session end with this sentence? */
bool fake_crashed(const struct fake *f, const char *sentence);
