/* store_tokens: who may use the server. See store.h.
 *
 * A token is 32 random bytes, so a plain SHA-256 of it is all that has to be kept: there is nothing to
 * guess. All hashes are held in memory, and compared with every one of them in constant time.
 */
#include <errno.h>
#include <nettle/base64.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "gate/store_inside.h"

#define PREFIX "rt_"
#define SECRET_SIZE 32
#define LOCAL_TEXTS 4
#define USED_MS 60000 /* how true "last used" is */

/* ---- texts and their hashes ---- */

static int make_text(char ret[TOKEN_TEXT_MAX], struct err *e)
{
    char encoded[BASE64_ENCODE_RAW_LENGTH(SECRET_SIZE)];
    uint8_t secret[SECRET_SIZE];
    struct base64_encode_ctx b;

    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
        return err_set(e, errno, "cannot get random numbers for a token");
    base64url_encode_init(&b);
    size_t n = base64_encode_update(&b, encoded, sizeof(secret), secret);
    n += base64_encode_final(&b, encoded + n);
    while (n && encoded[n - 1] == '=')
        n--;
    memcpy(ret, PREFIX, strlen(PREFIX));
    memcpy(ret + strlen(PREFIX), encoded, n);
    ret[strlen(PREFIX) + n] = '\0';
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(encoded, sizeof(encoded));
    explicit_bzero(&b, sizeof(b));
    return 0;
}

static void hash_text(const char *text, size_t len, uint8_t ret[SHA256_DIGEST_SIZE])
{
    struct sha256_ctx c;

    sha256_init(&c);
    sha256_update(&c, len, (const uint8_t *)text);
    sha256_digest(&c, SHA256_DIGEST_SIZE, ret);
}

static int add_text(struct store *st, int64_t token, const char *text, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_TEXT_ADD);
    uint8_t hash[SHA256_DIGEST_SIZE];

    hash_text(text, strlen(text), hash);
    sqlite3_bind_int64(q, 1, token);
    sqlite3_bind_blob(q, 2, hash, sizeof(hash), SQLITE_TRANSIENT);
    return store_run(st, q, "keep the token", e);
}

/* ---- making and revoking ---- */

static int check_name(const char *name, struct err *e)
{
    size_t len = strlen(name);
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";

    if (len < 1 || len > TOKEN_NAME_MAX || strspn(name, allowed) != len)
        err_set(e, 0,
                "\"%.80s\" cannot be a token's name: take 1 to %d letters, digits, '.', '_', '-'",
                name, TOKEN_NAME_MAX);
    else if (strcmp(name, TOKEN_LOCAL) == 0)
        err_set(e, 0, "\"%s\" is the server's own token: take another name", name);
    else
        return 0;
    e->code = EINVAL;
    return -1;
}

static void bind_quota(sqlite3_stmt *q, int at, uint64_t value)
{
    if (value <= INT64_MAX)
        sqlite3_bind_int64(q, at, (int64_t)value);
    else
        sqlite3_bind_null(q, at);
}

static int insert_token(struct store *st, const char *name, const struct quota *quota,
                        bool is_operator, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_TOKEN_ADD);

    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_int(q, 2, is_operator);
    bind_quota(q, 3, quota->sessions);
    bind_quota(q, 4, quota->cells_per_minute);
    bind_quota(q, 5, quota->memory);
    sqlite3_bind_int64(q, 6, clock_wall_ms());
    int made = store_run(st, q, "keep the token", e);
    if (made == 0) {
        err_set(e, 0, "there is a token \"%s\" already: revoke it first, or take another name",
                name);
        e->code = EEXIST;
    }
    return made == 1 ? 0 : -1;
}

int store_token_new(struct store *st, const char *name, const struct quota *quota, bool operator,
                    char ret_text[TOKEN_TEXT_MAX], struct err *e)
{
    char text[TOKEN_TEXT_MAX];

    if (check_name(name, e) < 0 || make_text(text, e) < 0 || store_begin(st, e) < 0)
        return -1;
    int r = insert_token(st, name, quota, operator, e);
    if (r == 0)
        r = add_text(st, sqlite3_last_insert_rowid(st->db), text, e);
    r = store_end(st, r, e);
    st->stale = true;
    if (r >= 0)
        memcpy(ret_text, text, sizeof(text));
    explicit_bzero(text, sizeof(text));
    return r < 0 ? -1 : 0;
}

static int find_id(struct store *st, const char *name, int64_t *ret, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_TOKEN_ID);

    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    int r = store_step(st, q, "read the tokens", e);
    if (r == 1)
        *ret = sqlite3_column_int64(q, 0);
    return r;
}

static int insert_local(struct store *st, const char *text, struct err *e)
{
    cleanup_query sqlite3_stmt *add = store_query(st, Q_TOKEN_ADD_LOCAL);
    cleanup_query sqlite3_stmt *trim = store_query(st, Q_TEXTS_TRIM);
    int64_t id = 0;

    sqlite3_bind_text(add, 1, TOKEN_LOCAL, -1, SQLITE_STATIC);
    sqlite3_bind_int64(add, 2, clock_wall_ms());
    if (store_run(st, add, "keep the token", e) < 0 || find_id(st, TOKEN_LOCAL, &id, e) < 0 ||
        add_text(st, id, text, e) < 0)
        return -1;
    sqlite3_bind_int64(trim, 1, id);
    sqlite3_bind_int(trim, 2, LOCAL_TEXTS);
    return store_run(st, trim, "keep the token", e);
}

int store_token_local(struct store *st, char ret_text[TOKEN_TEXT_MAX], struct err *e)
{
    char text[TOKEN_TEXT_MAX];

    if (make_text(text, e) < 0 || store_begin(st, e) < 0)
        return -1;
    int r = store_end(st, insert_local(st, text, e), e);
    st->stale = true;
    if (r >= 0)
        memcpy(ret_text, text, sizeof(text));
    explicit_bzero(text, sizeof(text));
    return r < 0 ? -1 : 0;
}

/* Nobody can ask for the journal of a token that is gone: its sessions are doomed with it. */
static int delete_token(struct store *st, const char *name, struct err *e)
{
    cleanup_query sqlite3_stmt *doom = store_query(st, Q_SESSIONS_DOOM);
    cleanup_query sqlite3_stmt *delete = store_query(st, Q_TOKEN_DELETE);
    int64_t id = 0;
    int r = find_id(st, name, &id, e);

    if (r <= 0)
        return r;
    sqlite3_bind_int64(doom, 1, id);
    sqlite3_bind_int64(delete, 1, id);
    if (store_run(st, doom, "revoke the token", e) < 0)
        return -1;
    return store_run(st, delete, "revoke the token", e);
}

int store_token_revoke(struct store *st, const char *name, struct err *e)
{
    struct err ignored;

    if (store_begin(st, e) < 0)
        return -1;
    int r = store_end(st, delete_token(st, name, e), e);
    st->stale = true;
    if (r == 1)
        store_sweep(st, 0, &ignored); /* what it leaves is for store_expire */
    return r;
}

/* ---- what is held in memory ---- */

static uint64_t quota_column(sqlite3_stmt *q, int at)
{
    return sqlite3_column_type(q, at) == SQLITE_NULL ? LIMIT_NONE
                                                     : (uint64_t)sqlite3_column_int64(q, at);
}

static void read_token(sqlite3_stmt *q, struct token *ret)
{
    const char *name = (const char *)sqlite3_column_text(q, 1);

    *ret = (struct token){
        .id = sqlite3_column_int64(q, 0),
        .operator= sqlite3_column_int(q, 2) != 0,
        .quota = {quota_column(q, 3), quota_column(q, 4), quota_column(q, 5)},
        .created_ms = sqlite3_column_int64(q, 6),
        .used_ms = sqlite3_column_int64(q, 7),
    };
    if (name)
        strncpy(ret->name, name, TOKEN_NAME_MAX);
}

static int load_tokens(struct store *st, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_TOKENS);
    cleanup_buf struct buf all = {0};
    int r;

    while ((r = store_step(st, q, "read the tokens", e)) == 1) {
        struct token t;
        read_token(q, &t);
        buf_add(&all, &t, sizeof(t));
    }
    if (r < 0)
        return -1;
    free(st->tokens);
    st->n_tokens = all.len / sizeof(struct token);
    st->tokens = (struct token *)(void *)buf_steal(&all);
    return 0;
}

static int load_texts(struct store *st, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_TEXTS);
    cleanup_buf struct buf all = {0};
    int r;

    while ((r = store_step(st, q, "read the tokens", e)) == 1) {
        struct text_hash t = {.token = 0};
        const void *hash = sqlite3_column_blob(q, 1);
        while (t.token < st->n_tokens && st->tokens[t.token].id != sqlite3_column_int64(q, 0))
            t.token++;
        if (t.token == st->n_tokens || !hash || sqlite3_column_bytes(q, 1) != sizeof(t.hash))
            continue;
        memcpy(t.hash, hash, sizeof(t.hash));
        buf_add(&all, &t, sizeof(t));
    }
    if (r < 0)
        return -1;
    free(st->texts);
    st->n_texts = all.len / sizeof(struct text_hash);
    st->texts = (struct text_hash *)(void *)buf_steal(&all);
    return 0;
}

static int read_version(struct store *st, int64_t *ret, struct err *e)
{
    cleanup_query sqlite3_stmt *q = store_query(st, Q_DATA_VERSION);
    int r = store_step(st, q, "read it", e);

    *ret = r == 1 ? sqlite3_column_int64(q, 0) : 0;
    return r < 0 ? -1 : 0;
}

/* data_version changes when anybody else has written; what we wrote ourselves makes us stale. */
static int refresh(struct store *st, struct err *e)
{
    int64_t version;

    if (read_version(st, &version, e) < 0)
        return -1;
    if (!st->stale && version == st->version)
        return 0;
    st->stale = true; /* until all of it is read */
    st->n_texts = 0;
    if (load_tokens(st, e) < 0 || load_texts(st, e) < 0)
        return -1;
    st->version = version;
    st->stale = false;
    return 0;
}

int store_tokens(struct store *st, void (*each)(void *ctx, const struct token *), void *ctx,
                 struct err *e)
{
    if (refresh(st, e) < 0)
        return -1;
    for (size_t i = 0; i < st->n_tokens; i++)
        each(ctx, &st->tokens[i]);
    return 0;
}

/* Somebody who may come in is not turned away because this could not be written. */
static void note_use(struct store *st, struct token *t)
{
    int64_t now = clock_wall_ms();
    cleanup_query sqlite3_stmt *q = store_query(st, Q_TOKEN_USED);
    struct err ignored;

    if (now >= t->used_ms && now - t->used_ms < USED_MS)
        return;
    t->used_ms = now;
    sqlite3_bind_int64(q, 1, t->id);
    sqlite3_bind_int64(q, 2, now);
    store_run(st, q, "note the use", &ignored);
}

int store_token_find(struct store *st, const char *text, size_t len, struct token *ret,
                     struct err *e)
{
    uint8_t hash[SHA256_DIGEST_SIZE];
    size_t found = SIZE_MAX;

    if (refresh(st, e) < 0)
        return -1;
    if (len >= TOKEN_TEXT_MAX)
        return 0;
    hash_text(text, len, hash);
    for (size_t i = 0; i < st->n_texts; i++)
        found = memeql_sec(st->texts[i].hash, hash, sizeof(hash)) ? st->texts[i].token : found;
    if (found == SIZE_MAX)
        return 0;
    note_use(st, &st->tokens[found]);
    *ret = st->tokens[found];
    return 1;
}

int store_token_alive(struct store *st, int64_t id, struct err *e)
{
    if (refresh(st, e) < 0)
        return -1;
    for (size_t i = 0; i < st->n_tokens; i++) {
        if (st->tokens[i].id == id)
            return 1;
    }
    return 0;
}
