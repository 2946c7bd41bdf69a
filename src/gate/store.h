/* store: what outlives a session, in SQLite: tokens, sessions, and their cells (the journal).
 *
 * One file, "retort.db", in the directory of the server's state. The server and `retort token` open it
 * at the same time (WAL). Times are milliseconds since 1970. A token is never stored: its SHA-256 is.
 *
 * It is meant to be called from the gate's loop: one writer, no fsync per cell (synchronous=NORMAL), and
 * a thread (made when it is needed first) for those that carry the log over. A cell of 1 KB takes some
 * 50 µs and one of megabytes tens of milliseconds; a busy disk can make either take longer.
 * A lookup that finds nothing returns 0, one that finds it 1, and -1 is a
 * failure of the disk or the database, told in a sentence that says what to do. Changes return 0.
 *
 * A store belongs to the thread that opened it. A callback may not call the function again that calls it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct store;

/* `dir` exists. The database is made, for the directory's owner alone, or brought up to date; one that a
 * newer retort wrote is refused. With NULL it is in the current directory,
 * and is reached by that alone: the gate has given up the right to walk there. */
int store_open(const char *dir, struct store **ret, struct err *e);
/* One that nobody else sees and that is gone when it is closed. */
int store_open_memory(struct store **ret, struct err *e);
void store_close(struct store *st);

/* ---- tokens ---- */

#define TOKEN_NAME_MAX 64
#define TOKEN_TEXT_MAX 96
#define TOKEN_LOCAL "local" /* the one that a server on loopback makes for itself */

/* What one token may have; LIMIT_NONE: as much as the server gives. */
struct quota {
    uint64_t sessions;         /* at once */
    uint64_t cells_per_minute; /* begun */
    uint64_t memory;           /* of all its sessions' limits together */
};

struct token {
    int64_t id; /* never used twice; sessions belong to it */
    char name[TOKEN_NAME_MAX + 1];
    bool operator; /* sees the whole server's metrics */
    struct quota quota;
    int64_t created_ms;
    int64_t used_ms; /* 0: never; true to a minute */
};

/* Names are 1 to 64 of letters, digits, '.', '_', '-', and not the local one (else the error's code is
 * EINVAL). A name that is there already is an error (EEXIST). */
int store_token_new(struct store *st, const char *name, const struct quota *quota, bool operator,
                    char ret_text[TOKEN_TEXT_MAX], struct err *e);
/* A further text for the local token, which is made where it is missing: each start of a server on
 * loopback prints its own link, and sessions stay where they were. The newest four texts are valid. It
 * is an operator's. */
int store_token_local(struct store *st, char ret_text[TOKEN_TEXT_MAX], struct err *e);
/* 1: it was there. The records of its sessions are forgotten with it. */
int store_token_revoke(struct store *st, const char *name, struct err *e);
int store_tokens(struct store *st, void (*each)(void *ctx, const struct token *), void *ctx,
                 struct err *e);
/* Whose token is this? Constant time in the token's text; what another process revoked a moment ago is
 * unknown here. Tokens are held in memory and read again when the database has changed. */
int store_token_find(struct store *st, const char *text, size_t len, struct token *ret,
                     struct err *e);
/* Is it still valid? */
int store_token_alive(struct store *st, int64_t id, struct err *e);

/* ---- sessions ---- */

#define SESSION_ID_MAX 64

struct session_row {
    char id[SESSION_ID_MAX];
    int64_t token;
    char *environment;     /* name */
    char *limits;          /* JSON object */
    char *metadata;        /* JSON object */
    double idle_timeout_s; /* infinite: none */
    int64_t created_ms, active_ms;
    int64_t ended_ms;            /* 0: it lives */
    char reason[16];             /* idle, deleted, limit, crashed, restart; "" while it lives */
    uint32_t cells;              /* in the journal */
    char parent[SESSION_ID_MAX]; /* of a branch, else "" */
    uint32_t parent_n;           /* and the cell after which it left */
};
void session_row_done(struct session_row *r); /* frees the texts */

int store_session_new(struct store *st, const struct session_row *r, struct err *e);
/* One that has ended already keeps its first end. */
int store_session_end(struct store *st, const char *id, const char *reason, int64_t at_ms,
                      struct err *e);
/* One of this token's; the caller frees it with session_row_done. */
int store_session_get(struct store *st, int64_t token, const char *id, struct session_row *ret,
                      struct err *e);
/* Ended ones of this token, the last made first, at most `limit`, that come after the session `after`
 * (NULL: from the first; one that is not this token's, or is forgotten: none). */
int store_sessions_ended(struct store *st, int64_t token, const char *after, unsigned limit,
                         void (*each)(void *ctx, const struct session_row *), void *ctx,
                         struct err *e);
/* Nobody finds it any more. 1: it was there. Its cells are deleted at once where that is short work, and
 * by the next calls of store_expire where it is not. */
int store_session_forget(struct store *st, const char *id, struct err *e);

/* Whatever still lives in the records did not survive the last server: it ended by "restart". */
int store_sessions_restarted(struct store *st, int64_t now_ms, struct err *e);
/* Forget sessions that ended before this, and finish what was forgotten. Where there is much to do a call
 * begins nothing more after 20 ms, but still has to write what it did, which takes a few times that for
 * cells of megabytes: come again while it is not 0. The call that finds nothing to do also has
 * what was deleted taken out of the write-ahead log: call it every minute or so. How many sessions it
 * worked on, or -1. */
int store_expire(struct store *st, int64_t before_ms, struct err *e);

/* ---- the journal ---- */

/* `json` is the cell as the contract writes it. A number that the session has already is an error; for a
 * session that is not there nothing is kept, which is none. */
int store_cell_add(struct store *st, const char *id, uint32_t n, int64_t at_ms, const char *json,
                   size_t len, struct err *e);
/* The caller frees it; a NUL follows it. */
int store_cell_get(struct store *st, const char *id, uint32_t n, char **ret_json, size_t *ret_len,
                   struct err *e);
/* In order, from the first after `after`, until `each` says false. */
int store_cells(struct store *st, const char *id, uint32_t after, unsigned limit,
                bool (*each)(void *ctx, uint32_t n, const char *json, size_t len), void *ctx,
                struct err *e);
