/* client: calls of a server's HTTP API, by libcurl: a retort server's, or a model's.
 *
 * Everything hangs on one descriptor, as a vessel does, so that a verb waits for its server, its terminal and
 * its signals in one loop. Redirections are not followed: the token would go along. Other machines are called
 * through the proxies that the environment names, as curl does it; this one never is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "guest/address.h"

struct client;

/* `remedy` is what to ask oneself where nobody answers: "is it running there?" */
struct client *client_new(const struct address *a, const char *remedy, struct err *e);
void client_free(struct client *c); /* and the calls that are left */
/* Readable when client_dispatch has something to do. */
int client_fd(const struct client *c);
void client_dispatch(struct client *c);
/* Have this called at the end of each dispatch: there calls may be made and ended. The hook is the caller's, who
 * takes it off before it goes away. */
struct client_hook {
    void (*after)(void *ctx);
    void *ctx;
    struct client_hook *next;
};
void client_hook_on(struct client *c, struct client_hook *hook);
void client_hook_off(struct client *c, struct client_hook *hook); /* also one that is not on */
/* Have the descriptor become readable in so many milliseconds, or earlier. Said anew after each dispatch. */
void client_wake(struct client *c, int ms);

/* ---- calls ---- */

#define CALL_BODY_MAX (1u << 20) /* of an answer that is collected; the rest is dropped */

struct call_spec {
    const char *method; /* "GET", … */
    const char *path;   /* from the slash on; escaped */
    const char *accept; /* NULL: JSON */
    const char *const
        *headers; /* more lines, up to a NULL; or NULL. They are copied, and wiped at its end */
    unsigned silence_s; /* how long nothing may come; 0: as long as a retort server ever takes */
    char *body;         /* JSON, taken over; or NULL */
    bool upload;        /* the body is what can be read from */
    int upload_fd;      /* which stays the caller's */
    bool bounded;       /* pieces have together at most */
    uint64_t max;       /* bytes: else the call fails with EFBIG */
    /* Pieces of an answer 200; NULL: it is collected. -1 ends the call with that error. May make no calls. */
    int (*piece)(void *ctx, const char *data, size_t len, struct err *e);
    /* It is over; the call is still there, and may be ended. May be NULL. */
    void (*over)(void *ctx);
    void *ctx;
};

/* Why there is no answer. */
enum call_fault {
    CALL_LOST,      /* the connection broke off */
    CALL_ABSENT,    /* nobody is there, or nobody has that name */
    CALL_UNTRUSTED, /* not the one that we want to talk to, or not in a language that we trust */
    CALL_SILENT,    /* nothing came for too long */
};

#define CALL_TYPE_LONGEST 63

struct call {
    struct client *client;
    struct call *next;
    struct call_spec spec;
    struct call_inside *inside;

    bool answered;                    /* the headers of an answer 200 are there */
    char type[CALL_TYPE_LONGEST + 1]; /* of its body, as "text/event-stream"; empty: not said */
    bool over;                        /* and then: */
    unsigned status;                  /* of HTTP; 0: there is no answer, and e says why */
    unsigned retry_after_s;           /* 0: not said */
    struct buf body;
    struct err e;
    bool ours; /* and it is not the server's or the way's fault, which else is */
    enum call_fault fault;
};

struct call *call_begin(struct client *c, const struct call_spec *spec);
/* Free it; one that is under way is broken off, which the server notices. Not from `piece`. */
void call_end(struct call *call);

/* Add a path to a URL's: slashes stay, and everything that is not plain is escaped. */
void call_add_path(struct buf *url, const char *path);
