/* owner: a keeper and a vessel on it, or a server elsewhere, and the one loop in which a verb lives.
 *
 * The verbs own sessions; this is what they have in common: starting, waiting for boxes, their own
 * terminal and the signals of the person at it, and leaving with nothing left behind.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"
#include "guest/address.h"
#include "guest/client.h"
#include "guest/outlet.h"
#include "keeper/keeper.h"
#include "session/session.h"

/* What its sessions are to be, besides their limits. */
struct wish {
    int checkpoints;         /* how many states they keep; -1: as is usual there. On a server: */
    unsigned limits;         /* bits: which limits are asked for; else the server has its own */
    const char *environment; /* NULL: the server's first */
    unsigned idle_s;         /* 0: as the server has it */
    const char *session;     /* the one that there is already; NULL: one is made */
    bool keep;               /* it is not ended when its guest is closed */
};

struct owner {
    struct keeper keeper;
    struct vessel *vessel; /* NULL: boxes are on a server, which is */
    struct client *client;
    struct client *other; /* heard beside the boxes, and somebody else's: see owner_listen */
    int tick_ms; /* owner_turn returns at least so often, with TURN_TICK; 0: when it must */
    int64_t ticked_ms;
    struct wish wish;
    bool lost; /* it cannot be reached any more: */
    struct err why;
    int seen; /* of enum turn, while somebody waited who does not care */
    int64_t
        leave_by_ms; /* until when the ends of sessions on a server are waited for, all of them together */
    int signal_fd;
    sigset_t signals_before;
    struct outlet out;
};

/* A keeper and a vessel on it, for who has a loop of his own. */
int owner_keep(const struct keeper_options *options, struct keeper *ret, struct vessel **ret_vessel,
               struct err *e);
/* The end of both, also where they were never started (NULL, and zeroes). */
void owner_let_go(struct keeper *k, struct vessel *v);

/* Start a keeper with one environment and no ready boxes. From here on, signals come through
 * owner_turn, and owner_stop must be called. */
int owner_start(struct owner *o, const struct environment *env, const struct limits *limits,
                struct err *e);
/* The same with a server. Nothing is asked of it yet. */
int owner_connect(struct owner *o, const struct address *a, const struct wish *wish, struct err *e);
/* Write what waits, end the keeper and everything below it. Sessions first. */
void owner_stop(struct owner *o);

/* What a turn of the loop saw. */
enum turn {
    TURN_INPUT = 1,   /* input_fd is readable, or at its end */
    TURN_SIGINT = 2,  /* Ctrl-C */
    TURN_STOP = 4,    /* SIGTERM or SIGHUP: leave now */
    TURN_CLOSED = 8,  /* nobody reads our stdout any more */
    TURN_RESIZE = 16, /* the terminal has another size */
    TURN_BACK = 32,   /* back in the foreground after Ctrl-Z */
    TURN_TICK = 64    /* tick_ms are over */
};

/* From now on turns do the work of this client too; NULL: of none. It stays the caller's. */
void owner_listen(struct owner *o, struct client *other);

/* One turn: wait until something happens, let the vessel and the outlet do their work. Returns a
 * set of enum turn, 0 included, or -1 when the keeper or the server is gone. input_fd may be -1. */
int owner_turn(struct owner *o, int input_fd, struct err *e);
/* Turn until *flag is true, at most so long. A signal to stop ends it too, and comes with the next
 * owner_turn. */
void owner_wait(struct owner *o, const bool *flag, int timeout_ms);
/* The server cannot be reached any more: owner_turn says so from now on. */
void owner_lose(struct owner *o, const struct err *why);
