/* store_journal: sessions and their cells. See store.h.
 *
 * Forgetting has two parts. That nobody finds a session any more is one small change (it is doomed). Its
 * cells, which can be many megabytes that all get overwritten, are then deleted for as long as a slice of
 * time lasts, and the rest by later calls of store_expire.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "gate/store_inside.h"

#define SLICE_US 20000

/* ---- sessions ---- */

void session_row_done(struct session_row *r)
{
    free(r->environment);
    free(r->limits);
    free(r->metadata);
    *r = (struct session_row){0};
}

int store_session_new(struct store *st, const struct session_row *r, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_SESSION_ADD);

    assert_that(r->token > 0 && r->environment && r->limits && r->metadata);
    sqlite3_bind_text(q, 1, r->id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, r->token);
    sqlite3_bind_text(q, 3, r->environment, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 4, r->limits, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 5, r->metadata, -1, SQLITE_STATIC);
    if (isfinite(r->idle_timeout_s))
        sqlite3_bind_double(q, 6, r->idle_timeout_s);
    sqlite3_bind_int64(q, 7, r->created_ms);
    sqlite3_bind_int64(q, 8, r->active_ms);
    sqlite3_bind_text(q, 9, r->parent, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 10, r->parent_n);
    return store_run(st, q, "record the session", e) < 0 ? -1 : 0;
}

int store_session_end(struct store *st, const char *id, const char *reason, int64_t at_ms,
                      struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_SESSION_END);

    assert_that(strlen(reason) < sizeof(((struct session_row *)0)->reason));
    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, at_ms);
    sqlite3_bind_text(q, 3, reason, -1, SQLITE_STATIC);
    return store_run(st, q, "record the session's end", e) < 0 ? -1 : 0;
}

static const char *text_column(sqlite3_stmt *q, int at)
{
    const char *text = (const char *)sqlite3_column_text(q, at);

    return text ? text : "";
}

static void read_row(sqlite3_stmt *q, struct session_row *ret)
{
    *ret = (struct session_row){
        .token = sqlite3_column_int64(q, 1),
        .environment = xstrdup(text_column(q, 2)),
        .limits = xstrdup(text_column(q, 3)),
        .metadata = xstrdup(text_column(q, 4)),
        .idle_timeout_s =
            sqlite3_column_type(q, 5) == SQLITE_NULL ? INFINITY : sqlite3_column_double(q, 5),
        .created_ms = sqlite3_column_int64(q, 6),
        .active_ms = sqlite3_column_int64(q, 7),
        .ended_ms = sqlite3_column_int64(q, 8),
        .cells = (uint32_t)sqlite3_column_int64(q, 10),
        .parent_n = (uint32_t)sqlite3_column_int64(q, 12),
    };
    strncpy(ret->id, text_column(q, 0), sizeof(ret->id) - 1);
    strncpy(ret->reason, text_column(q, 9), sizeof(ret->reason) - 1);
    strncpy(ret->parent, text_column(q, 11), sizeof(ret->parent) - 1);
}

int store_session_get(struct store *st, int64_t token, const char *id, struct session_row *ret,
                      struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_SESSION_GET);

    if (token <= 0)
        return 0;
    sqlite3_bind_int64(q, 1, token);
    sqlite3_bind_text(q, 2, id, -1, SQLITE_STATIC);
    int r = store_step(st, q, "read the session", e);
    if (r == 1)
        read_row(q, ret);
    return r;
}

int store_sessions_ended(struct store *st, int64_t token, const char *after, unsigned limit,
                         void (*each)(void *ctx, const struct session_row *), void *ctx,
                         struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_SESSIONS_ENDED);
    int r;

    if (token <= 0)
        return 0;
    sqlite3_bind_int64(q, 1, token);
    sqlite3_bind_text(q, 2, after, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, limit);
    while ((r = store_step(st, q, "list the sessions", e)) == 1) {
        struct session_row row;
        read_row(q, &row);
        each(ctx, &row);
        session_row_done(&row);
    }
    return r;
}

int store_sessions_restarted(struct store *st, int64_t now_ms, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_SESSIONS_RESTARTED);

    sqlite3_bind_int64(q, 1, now_ms);
    return store_run(st, q, "record the restart", e) < 0 ? -1 : 0;
}

/* ---- forgetting ---- */

static int next_doomed(struct store *st, int64_t before_ms, int64_t *ret, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_SESSION_DOOMED);

    sqlite3_bind_int64(q, 1, before_ms);
    int r = store_step(st, q, "find what to forget", e);
    if (r == 1)
        *ret = sqlite3_column_int64(q, 0);
    return r;
}

static int delete_by_key(struct store *st, enum query query, int64_t key, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, query);

    sqlite3_bind_int64(q, 1, key);
    return store_run(st, q, "forget a session", e);
}

/* 1: it is gone whole; 0: time is up. */
static int delete_session(struct store *st, int64_t key, int64_t until_us, struct err *e)
{
    for (;;) {
        int r = delete_by_key(st, Q_CELL_DELETE, key, e);
        if (r < 0)
            return -1;
        if (r == 0)
            return delete_by_key(st, Q_SESSION_DELETE, key, e) < 0 ? -1 : 1;
        if (clock_now_us() >= until_us)
            return 0;
    }
}

static int delete_slice(struct store *st, int64_t before_ms, struct err *e)
{
    int64_t until_us = clock_now_us() + SLICE_US, key;
    int worked = 0, r;

    while ((r = next_doomed(st, before_ms, &key, e)) == 1) {
        r = delete_session(st, key, until_us, e);
        worked++;
        if (r <= 0 || clock_now_us() >= until_us)
            break;
    }
    return r < 0 ? -1 : worked;
}

int store_sweep(struct store *st, int64_t before_ms, struct err *e)
{
    int64_t key;
    int r = next_doomed(st, before_ms, &key, e);

    if (r <= 0)
        return r; /* without a lock on writing */
    if (store_begin(st, e) < 0)
        return -1;
    st->residue = true;
    return store_end(st, delete_slice(st, before_ms, e), e);
}

int store_session_forget(struct store *st, const char *id, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_SESSION_DOOM);
    struct err ignored;

    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    int r = store_run(st, q, "forget the session", e);
    if (r == 1)
        store_sweep(st, 0, &ignored); /* nobody finds it; store_expire does what is left */
    return r;
}

int store_expire(struct store *st, int64_t before_ms, struct err *e)
{
    int worked = store_sweep(st, before_ms, e);

    if (worked == 0 && st->residue) {
        store_log_empty(st);
        st->residue = false;
    }
    return worked;
}

/* ---- cells ---- */

int store_cell_add(struct store *st, const char *id, uint32_t n, int64_t at_ms, const char *json,
                   size_t len, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_CELL_ADD);

    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, n);
    sqlite3_bind_int64(q, 3, at_ms);
    sqlite3_bind_text64(q, 4, json, len, SQLITE_STATIC, SQLITE_UTF8);
    return store_run(st, q, "record the cell", e) < 0 ? -1 : 0;
}

int store_cell_get(struct store *st, const char *id, uint32_t n, char **ret_json, size_t *ret_len,
                   struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_CELL_GET);

    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, n);
    int r = store_step(st, q, "read the cell", e);
    if (r != 1)
        return r;
    cleanup_buf struct buf json = {0};
    const char *text = text_column(q, 0);
    buf_add(&json, text, (size_t)sqlite3_column_bytes(q, 0));
    buf_text(&json);
    *ret_len = json.len;
    *ret_json = buf_steal(&json);
    return 1;
}

int store_cells(struct store *st, const char *id, uint32_t after, unsigned limit,
                bool (*each)(void *ctx, uint32_t n, const char *json, size_t len), void *ctx,
                struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_CELLS);
    int r;

    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, after);
    sqlite3_bind_int64(q, 3, limit);
    while ((r = store_step(st, q, "read the cells", e)) == 1) {
        const char *json = text_column(q, 1);
        if (!each(ctx, (uint32_t)sqlite3_column_int64(q, 0), json,
                  (size_t)sqlite3_column_bytes(q, 1)))
            return 0;
    }
    return r;
}
