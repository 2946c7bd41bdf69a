/* store_inside: what the files of the store share, and nobody else needs. */
#pragma once

#include <sqlite3.h>

#include "gate/store.h"

/* How long to wait for another program that writes. */
#define STORE_BUSY_MS 2000

/* All that is ever asked of the database; store.c has the words, prepared once. */
enum query {
    Q_BEGIN,
    Q_COMMIT,
    Q_ROLLBACK,
    Q_DATA_VERSION,
    Q_TOKEN_ADD,
    Q_TOKEN_ADD_LOCAL,
    Q_TOKEN_ID,
    Q_TOKEN_DELETE,
    Q_TOKEN_USED,
    Q_TOKENS,
    Q_TEXT_ADD,
    Q_TEXTS_TRIM,
    Q_TEXTS,
    Q_SESSION_ADD,
    Q_SESSION_END,
    Q_SESSION_GET,
    Q_SESSIONS_ENDED,
    Q_SESSIONS_RESTARTED,
    Q_SESSION_DOOM,
    Q_SESSIONS_DOOM,
    Q_SESSION_DOOMED,
    Q_SESSION_DELETE,
    Q_CELL_ADD,
    Q_CELL_GET,
    Q_CELLS,
    Q_CELL_DELETE,
    N_QUERIES
};

/* One text of a token, as its hash, and whose it is. */
struct text_hash {
    uint8_t hash[32];
    size_t token; /* index into the tokens held */
};

struct store {
    sqlite3 *db;
    char *path; /* for messages */
    sqlite3_stmt *queries[N_QUERIES];
    /* Tokens as they were at this version of the database. */
    bool stale;
    int64_t version;
    struct token *tokens;
    size_t n_tokens;
    struct text_hash *texts;
    size_t n_texts;
    const char *vfs; /* SQLite's way to files; NULL: the usual one */
    struct store_log *log;
    bool log_failed;
    bool residue; /* something was deleted that the write-ahead log may still show */
};

/* A query to bind and step. It holds a read lock until it is reset, which this does by itself:
 *     cleanup_query sqlite3_stmt *q = store_query(st, Q_…); */
sqlite3_stmt *store_query(struct store *st, enum query q);
void store_query_done(sqlite3_stmt **q);
#define cleanup_query __attribute__((cleanup(store_query_done)))

/* 1: a row; 0: no more; -1: failed. `what` goes on from "cannot ". */
int store_step(struct store *st, sqlite3_stmt *q, const char *what, struct err *e);
/* A query without rows, to its end. How many rows it changed, or -1. */
int store_run(struct store *st, sqlite3_stmt *q, const char *what, struct err *e);

/* All or nothing: store_begin, changes, and their result through store_end, which keeps them where it
 * is not negative, and returns it. */
int store_begin(struct store *st, struct err *e);
int store_end(struct store *st, int result, struct err *e);

/* Turn SQLite's word into a sentence that says what to do. Returns -1. */
int store_fail(const struct store *st, int rc, const char *what, struct err *e);

/* The write-ahead log of an open database is carried over by and by, beside everything else. */
void store_log_init(struct store *st);
/* Soon nothing is in it that has been overwritten in the database. */
void store_log_empty(struct store *st);
void store_log_done(struct store *st);

/* What nobody can ask for any more is deleted piece by piece, so that no call holds up the gate's loop
 * for long: sessions that are doomed, and those that ended before this (0: none). How many it worked on
 * (0: there was nothing to do), or -1. */
int store_sweep(struct store *st, int64_t before_ms, struct err *e);
