/* points: the processes of a box that wait to take the kernel process's place, as init keeps them.
 *
 * The newest is the one that is woken. They are init's children, have numbers that no guest can signal, and
 * give the memory back when it is short: the older before the live process, the newest after it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/box.h"
#include "init/past.h"
#include "init/copies.h"
#include "init/watch.h"
#include "wire/msg.h"

#define POINTS BOX_WAITING_MAX
#define POINT_LOST 4096 /* bytes */

struct point {
    pid_t pid;
    uint32_t n;                      /* the state after this cell */
    uint32_t up_to;                  /* and after those that followed, which changed nothing */
    uint32_t undone_from, undone_to; /* but not after these, from which it was gone back; 0: none */
    bool gone_back;                  /* to up_to: what follows it is undone */
    int line;                        /* where it waits */
    unsigned score;                  /* how soon it is ended when memory is short */
    int64_t taken_ms;
    char *lost;       /* a line each */
    struct past past; /* the workspace */
};

struct points {
    int setup;    /* to the keeper */
    int line;     /* to and from the kernel process */
    int last_pid; /* which number the next process gets; -1: this kernel does not let us say it */
    pid_t live;   /* the kernel process; 0: it has not said so yet */
    bool begun;   /* the first has said that it is there; before, no user code has run */
    bool adopted; /* and is a child of ours */
    bool branch;  /* the first is: it comes from another box */
    struct point list[POINTS]; /* the oldest first */
    unsigned n, max;
    bool counted;
    uint64_t memory;           /* the session's limit */
    bool touched;              /* files have changed since the last one, as far as we were told */
    const struct watch *watch; /* says whether there is more; NULL: nobody can */
    struct copies copies;      /* copies of the workspace, for all of them */
    uint32_t evicted;          /* processes that were ended when memory was short */
    /* one is being forked: */
    pid_t expected;
    uint32_t seq;
    char before[16]; /* what last_pid said */
    int64_t until_ms;
    /* a successor is being forked: */
    bool waking;
    uint32_t waking_n;
    int64_t awake_ms; /* it has until then */
    int near[4];      /* the owner's ends of its channel: frames, orders, stdout, stderr */
};

/* While /proc/sys is still there. */
void points_open_last_pid(struct points *p);
/* Whether a cgroup counts the memory of those that wait; else one is kept at most. */
void points_begin(struct points *p, int setup, int line, bool counted, uint64_t memory);
/* What the session may use of it. */
void points_memory(struct points *p, uint64_t memory);
/* Have a branch's begin somewhere among the guest's. */
void points_begin_numbers(struct points *p);
/* At most so many are kept. */
void points_limit(struct points *p, unsigned max);
/* The line is readable. */
void points_hear(struct points *p);
/* A child of ours has ended. */
void points_reaped(struct points *p, pid_t pid, int status);
/* What is due by now; the time until the next, in ms, or -1. */
int points_tick(struct points *p);
bool point_has(const struct point *x, uint32_t n);
/* Which of them has the state after this cell (POINT_NEWEST: the newest), or -1. */
int points_find(const struct points *p, uint32_t n);
/* After cells `from` to `to` the state is what it was after `of`. */
void points_same(struct points *p, uint32_t of, uint32_t from, uint32_t to);
/* Have it fork a successor; those that are newer go. -1 with ENOENT: there is none. What came of it is told by
 * points_woke, after points_hear or points_tick. */
int points_wake(struct points *p, uint32_t n, struct err *e);
/* Have the one with this state fork a kernel process for another box, which the descriptors of the message are of. */
void points_branch(struct points *p, uint32_t n, struct msg *m);
/* None waits any more. */
void points_drop_all(struct points *p);
/* The bytes that nobody shares with it, and those of memory that it has together with the live one. */
uint64_t points_weigh(const struct point *x, uint64_t *ret_shared);
/* 1: it is there, has the state after this cell, and the descriptors are the caller's; 0: not yet; -1: nobody
 * could be woken. */
int points_woke(struct points *p, uint32_t *ret_n, int ret_fds[4], struct err *e);
bool points_has(const struct points *p, pid_t pid);
/* Has one of them been killed, and not been reaped yet? */
bool points_dying(const struct points *p);
