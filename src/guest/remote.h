/* remote: what the files of a guest on a server share; nobody else includes it.
 *
 *     guest_remote.c   the session: opening, closing, files, keeping it alive
 *     remote_cell.c    a cell: events, its end, interrupts
 *     remote_points.c  the states that are kept: going back to one, and branches
 */
#pragma once

#include <jansson.h>

#include "guest/client.h"
#include "guest/events.h"
#include "guest/guest.h"

#define REMOTE_ID_MAX 128

struct remote {
    struct guest *guest;
    struct client *client;
    char id[REMOTE_ID_MAX + 1];
    char *environment; /* its name */
    unsigned cells;
    bool ended;      /* the server says that it is */
    int64_t keep_ms; /* how often it is to be touched; 0: never */
    int64_t touched_ms;
    struct call *touch;
    struct client_hook hook;
    struct call *farewell; /* its deletion */

    /* the running cell */
    struct call *call;
    struct call *interrupt;
    bool interrupt_due; /* as soon as it runs */
    int64_t again_ms;   /* the server was busy: when to try once more; 0: no */
    bool tried_again;
    char *code; /* for the answer where there is none */
    size_t len;
    uint64_t timeout_ms;
    struct events events;
    struct cell *cell;    /* its event has come */
    struct output *large; /* displays that come without data at the end */
    unsigned n_large;
    size_t large_bytes;
    uint64_t text_bytes; /* shown so far */
    unsigned displays;
    char why[256]; /* the last error event */
};

/* ---- guest_remote.c ---- */
/* A member that is text, or "". */
const char *remote_text(const json_t *j, const char *member);
/* As text; takes it over. */
char *remote_dump(json_t *j);
void remote_call_done(struct call **call);
#define cleanup_call __attribute__((cleanup(remote_call_done)))
/* Wait for it. 0; a set of enum turn that said to stop; or -1 where the owner is lost. */
int remote_wait(struct guest *g, const struct call *call, struct err *e);
/* Say why a call came to nothing. Returns -1. */
int remote_call_failed(const struct call *call, struct err *e);
/* A call of the session's, as "/interrupt"; the body is taken over. */
struct call *remote_call(struct remote *r, const char *method, const char *what, char *body);
/* Does the answer say that the session is gone? */
bool remote_is_gone(const struct call *call);
/* Is the server busy, and says for how long, and that is not long? */
bool remote_worth_waiting(const struct call *call);
/* What a session is asked for with, and its answer. */
char *remote_wish(const struct guest *g);
int remote_take_session(struct guest *g, const struct call *call, struct err *e);
/* The same with one that is a part of an answer. */
int remote_take_session_json(struct guest *g, const json_t *j, struct err *e);
/* A guest's that has no session yet, and what is done once it has: it is kept alive. */
struct remote *remote_new(struct guest *g);
void remote_attend(struct remote *r);

/* ---- remote_cell.c ---- */
int remote_start(struct guest *g, const char *code, size_t len, uint64_t timeout_ms, struct err *e);
void remote_interrupt(struct guest *g);
/* What is due; call it after each turn. */
void remote_tend_cell(struct remote *r, int64_t now_ms);
/* Whatever there is of one; a running one is broken off. */
void remote_forget_cell(struct remote *r);

/* ---- remote_points.c ---- */
int remote_points(struct guest *g, point_listed *point, void *ctx, struct err *e);
int remote_rollback(struct guest *g, uint32_t n, struct err *e);
int remote_fork(struct guest *g, struct guest *from, uint32_t n, struct err *e);
