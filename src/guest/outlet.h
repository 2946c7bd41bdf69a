/* outlet: our stdout and stderr, written in the order things came, without blocking the loop.
 *
 * A reader that stops reading (a pager, a stuck pipe) must not keep us from enforcing limits or
 * from hearing Ctrl-C, so text waits here and is written when there is room. It is bounded: with
 * more than a few megabytes waiting, adding blocks, which is the back-pressure a pipe would give.
 *
 * On a terminal, what a guest wrote can be made harmless on the way (see sanitise.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "session/sanitise.h"

struct outlet {
    struct buf bytes; /* what waits, for both descriptors in one order; `at` is written already */
    size_t at;
    struct outlet_run {
        int fd;
        size_t len;
    } * runs; /* which of the bytes go where */
    size_t n_runs, first_run, runs_cap;
    size_t waiting_max; /* with more than this waiting, adding blocks */
    bool closed;        /* nobody reads our stdout any more: all further text is dropped */
    bool tty[3];        /* by descriptor */
    bool midline;       /* the last byte for a terminal was not a newline */
    int transient;      /* the terminal on which a line stands that is to be drawn over; 0: none */
    struct sanitiser sanitiser[3];
};

void outlet_init(struct outlet *o);
void outlet_done(struct outlet *o);

/* A guest's text, for stdout (fd 1) or stderr (2): sanitised where that is a terminal. */
void outlet_guest(struct outlet *o, int fd, const char *text, size_t len);
/* The end of a guest's text: colours go off. */
void outlet_guest_end(struct outlet *o);
/* A line that we have made, however long. */
void outlet_line(struct outlet *o, int fd, const char *text);
/* Our own words, as they are. */
void outlet_say(struct outlet *o, int fd, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Our own words as a line "retort: …\n" on stderr, on a line of its own on a terminal. */
void outlet_note(struct outlet *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Bytes that we have made. */
void outlet_put(struct outlet *o, int fd, const char *data, size_t len);
/* A line that stands until anything else is written, which takes its place: narrower than the terminal, and no newline
 * in it. Left out where it would cost anything: no terminal, one that is slow to take what there is, or not at the
 * beginning of a line. "" only takes away what stands. */
void outlet_transient(struct outlet *o, int fd, const char *line, size_t len);
/* On a terminal: go to a new line where we are not at the beginning of one. */
void outlet_fresh_line(struct outlet *o);

/* Which of 1 and 2 wants to be polled for POLLOUT: 0 for none. */
int outlet_wants(const struct outlet *o);
/* Write a piece that does not block, after poll said so. */
void outlet_ready(struct outlet *o);
/* Write everything that waits, however long it takes. */
void outlet_flush(struct outlet *o);
