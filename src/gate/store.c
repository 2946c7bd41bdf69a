/* store: opening the database, and talking to it. See store.h.
 *
 * Runs in the gate, which has no rights, and in `retort token`. The file is the gate's own, so what is
 * in it was written by us; it can still be damaged, full or locked, and then a sentence says so.
 *
 * Deleted content is overwritten (secure_delete=ON). FAST would do so only within pages that are
 * written anyway, and the text of a cell of more than a page lies in pages that are not: it could be
 * read in the file for as long as nothing else happens to need the room.
 */
#include "gate/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "gate/store_inside.h"

#define WAL_KEPT (64 << 20) /* the log shrinks to it after yet more: that takes long, so seldom */
#define DATABASE "retort.db"

/* Step i leads from schema i to i + 1; a step that was released is never changed.
 *
 * A session with token 0 is doomed: no token has that id, so nobody finds it, and store_sweep deletes
 * it. NULL is "none" for quotas and the idle time-out. */
static const char *const schema[] = {
    "CREATE TABLE tokens ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, operator INTEGER NOT NULL,"
    " sessions INTEGER, cells_per_minute INTEGER, memory INTEGER,"
    " created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE token_texts ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " token INTEGER NOT NULL REFERENCES tokens ON DELETE CASCADE, hash BLOB NOT NULL);"
    "CREATE INDEX texts_of_token ON token_texts (token);"
    "CREATE TABLE sessions ("
    " key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, token INTEGER NOT NULL,"
    " environment TEXT NOT NULL, limits TEXT NOT NULL, metadata TEXT NOT NULL,"
    " idle_timeout_s REAL, created_ms INTEGER NOT NULL, active_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '');"
    "CREATE INDEX sessions_of_token ON sessions (token);"
    "CREATE INDEX sessions_by_end ON sessions (ended_ms);"
    "CREATE TABLE cells ("
    " session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE, n INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (session, n));",
    /* branches */
    "ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sessions ADD COLUMN parent_n INTEGER NOT NULL DEFAULT 0;",
};
#define SCHEMA_VERSION ((int)(sizeof(schema) / sizeof(schema[0])))

#define SESSION_COLUMNS                                                                            \
    "SELECT id, token, environment, limits, metadata, idle_timeout_s, created_ms,"                 \
    " max(active_ms, ifnull((SELECT at_ms FROM cells WHERE session = key"                          \
    "                        ORDER BY n DESC LIMIT 1), 0)),"                                       \
    " ended_ms, reason, (SELECT count(*) FROM cells WHERE session = key), parent, parent_n"        \
    " FROM sessions "

static const char *const words[N_QUERIES] = {
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
    [Q_ROLLBACK] = "ROLLBACK",
    [Q_DATA_VERSION] = "PRAGMA data_version",
    [Q_TOKEN_ADD] = "INSERT INTO tokens (name, operator, sessions, cells_per_minute, memory,"
                    " created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO NOTHING",
    /* Whoever can start the server is its operator. */
    [Q_TOKEN_ADD_LOCAL] = "INSERT INTO tokens (name, operator, created_ms) VALUES (?1, 1, ?2)"
                          " ON CONFLICT (name) DO NOTHING",
    [Q_TOKEN_ID] = "SELECT id FROM tokens WHERE name = ?1",
    [Q_TOKEN_DELETE] = "DELETE FROM tokens WHERE id = ?1",
    [Q_TOKEN_USED] = "UPDATE tokens SET used_ms = ?2 WHERE id = ?1",
    [Q_TOKENS] = "SELECT id, name, operator, sessions, cells_per_minute, memory, created_ms,"
                 " used_ms FROM tokens ORDER BY id",
    [Q_TEXT_ADD] = "INSERT INTO token_texts (token, hash) VALUES (?1, ?2)",
    [Q_TEXTS_TRIM] = "DELETE FROM token_texts WHERE token = ?1 AND id NOT IN"
                     " (SELECT id FROM token_texts WHERE token = ?1 ORDER BY id DESC LIMIT ?2)",
    [Q_TEXTS] = "SELECT token, hash FROM token_texts",
    [Q_SESSION_ADD] = "INSERT INTO sessions (id, token, environment, limits, metadata,"
                      " idle_timeout_s, created_ms, active_ms, parent, parent_n)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [Q_SESSION_END] = "UPDATE sessions SET ended_ms = max(?2, 1), reason = ?3"
                      " WHERE id = ?1 AND ended_ms = 0",
    [Q_SESSION_GET] = SESSION_COLUMNS "WHERE id = ?2 AND token = ?1",
    [Q_SESSIONS_ENDED] = SESSION_COLUMNS
    "WHERE token = ?1 AND ended_ms > 0 AND (?2 IS NULL OR key <"
    " (SELECT key FROM sessions WHERE id = ?2 AND token = ?1)) ORDER BY key DESC LIMIT ?3",
    [Q_SESSIONS_RESTARTED] = "UPDATE sessions SET ended_ms = max(?1, 1), reason = 'restart'"
                             " WHERE ended_ms = 0",
    [Q_SESSION_DOOM] = "UPDATE sessions SET token = 0 WHERE id = ?1 AND token <> 0",
    [Q_SESSIONS_DOOM] = "UPDATE sessions SET token = 0 WHERE token = ?1",
    [Q_SESSION_DOOMED] = "SELECT key FROM sessions"
                         " WHERE token = 0 OR (ended_ms > 0 AND ended_ms < ?1) LIMIT 1",
    [Q_SESSION_DELETE] = "DELETE FROM sessions WHERE key = ?1",
    [Q_CELL_ADD] = "INSERT INTO cells (session, n, at_ms, json)"
                   " SELECT key, ?2, ?3, ?4 FROM sessions WHERE id = ?1 AND token <> 0",
    [Q_CELL_GET] = "SELECT json FROM cells WHERE n = ?2 AND session ="
                   " (SELECT key FROM sessions WHERE id = ?1 AND token <> 0)",
    [Q_CELLS] = "SELECT n, json FROM cells WHERE session ="
                " (SELECT key FROM sessions WHERE id = ?1 AND token <> 0)"
                " AND n > ?2 ORDER BY n LIMIT ?3",
    [Q_CELL_DELETE] = "DELETE FROM cells WHERE rowid ="
                      " (SELECT rowid FROM cells WHERE session = ?1 LIMIT 1)",
};

/* ---- errors ---- */

static int no_room(const char *path, const char *what, struct err *e)
{
    err_set(e, 0, "%s: cannot %s: the disk is full; make room on it", path, what);
    e->code = ENOSPC;
    return -1;
}

static int disk_failed(const struct store *st, const char *what, struct err *e)
{
    int code = sqlite3_system_errno(st->db);

    if (code == ENOSPC || code == EDQUOT)
        return no_room(st->path, what, e);
    return err_set(e, code, "%s: cannot %s: the disk failed (%s); check it", st->path, what,
                   sqlite3_errmsg(st->db));
}

static int damaged(const struct store *st, struct err *e)
{
    return err_set(e, 0,
                   "%s is damaged (%s): put a backup in its place; or, to begin anew without "
                   "tokens and journal, move it away together with %s-wal and %s-shm",
                   st->path, sqlite3_errmsg(st->db), DATABASE, DATABASE);
}

static int not_ours(const struct store *st, struct err *e)
{
    err_set(e, 0, "%s cannot be written by uid %u: that user must own it and its directory",
            st->path, (unsigned)geteuid());
    e->code = EACCES;
    return -1;
}

static int locked(const struct store *st, const char *what, struct err *e)
{
    err_set(e, 0, "%s: cannot %s: another program keeps it locked; end that one, or try again",
            st->path, what);
    e->code = EBUSY;
    return -1;
}

int store_fail(const struct store *st, int rc, const char *what, struct err *e)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return no_room(st->path, what, e);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return damaged(st, e);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return sqlite3_system_errno(st->db) == ENOSPC ? no_room(st->path, what, e)
                                                      : not_ours(st, e);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return locked(st, what, e);
    case SQLITE_IOERR:
        return disk_failed(st, what, e);
    default:
        return err_set(e, 0, "%s: cannot %s: %s", st->path, what, sqlite3_errmsg(st->db));
    }
}

/* ---- queries ---- */

sqlite3_stmt *store_query(struct store *st, enum query q)
{
    assert_that(!sqlite3_stmt_busy(st->queries[q])); /* a callback asked what it is answering */
    return st->queries[q];
}

void store_query_done(sqlite3_stmt **q)
{
    sqlite3_reset(*q);
    sqlite3_clear_bindings(*q);
}

int store_step(struct store *st, sqlite3_stmt *q, const char *what, struct err *e)
{
    int rc = sqlite3_step(q);

    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : store_fail(st, rc, what, e);
}

int store_run(struct store *st, sqlite3_stmt *q, const char *what, struct err *e)
{
    return store_step(st, q, what, e) < 0 ? -1 : sqlite3_changes(st->db);
}

int store_begin(struct store *st, struct err *e)
{
    cleanup_query sqlite3_stmt *begin = store_query(st, Q_BEGIN);

    return store_step(st, begin, "begin to write", e);
}

int store_end(struct store *st, int result, struct err *e)
{
    cleanup_query sqlite3_stmt *commit = store_query(st, Q_COMMIT);
    cleanup_query sqlite3_stmt *rollback = store_query(st, Q_ROLLBACK);

    if (result >= 0 && store_step(st, commit, "write", e) < 0)
        result = -1;
    /* A full disk may have undone it already. */
    if (result < 0 && !sqlite3_get_autocommit(st->db))
        sqlite3_step(rollback);
    return result;
}

/* ---- opening ---- */

/* The gate goes into the state directory, then gives up its uid; the directories above may be closed
 * to it then. SQLite would make the name absolute and look at each of them. */
static int same_name(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    (void)vfs;
    sqlite3_snprintf(size, ret, "%s", name);
    return SQLITE_OK;
}

#define VFS_HERE "retort-here"

static int make_vfs_here(void)
{
    static sqlite3_vfs here;

    if (sqlite3_vfs_find(VFS_HERE))
        return SQLITE_OK;
    const sqlite3_vfs *standard = sqlite3_vfs_find(NULL);
    if (!standard)
        return SQLITE_ERROR;
    here = *standard;
    here.pNext = NULL;
    here.zName = VFS_HERE;
    here.xFullPathname = same_name;
    return sqlite3_vfs_register(&here, 0);
}

/* SQLite would make the file readable for others, and root's in a directory that is the server's. The
 * log and its index follow what the file itself has. Only a file that is not there yet is opened here:
 * closing another descriptor of a database would drop this process's locks on it. */
static int make_file(const char *dir, const char *path, struct err *e)
{
    struct stat sb;
    cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST)
        return 0;
    if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
        return no_room(path, "make it", e);
    if (fd < 0)
        return err_set(e, errno, "cannot make %s as uid %u, who must own the directory", path,
                       (unsigned)geteuid());
    if (geteuid() != 0)
        return 0;
    if (stat(dir ? dir : ".", &sb) < 0 || fchown(fd, sb.st_uid, sb.st_gid) < 0)
        return err_set(e, errno, "cannot give %s to the owner of its directory", path);
    return 0;
}

static int run_words(struct store *st, const char *sql, const char *what, struct err *e)
{
    int rc = sqlite3_exec(st->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : store_fail(st, rc, what, e);
}

/* What two programs do at the same moment with a new file can fail without waiting: the change to WAL
 * needs it alone, and SQLite does not wait where waiting could be for ever. */
static int set_wal(struct store *st, struct err *e)
{
    int rc = SQLITE_BUSY;

    for (unsigned ms = 0; (rc & 0xff) == SQLITE_BUSY && ms < STORE_BUSY_MS; ms += 10) {
        rc = sqlite3_exec(st->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        if ((rc & 0xff) == SQLITE_BUSY)
            usleep(10 * 1000);
    }
    return rc == SQLITE_OK ? 0 : store_fail(st, rc, "open it", e);
}

static int settle(struct store *st, struct err *e)
{
    sqlite3_busy_timeout(st->db, STORE_BUSY_MS);
    sqlite3_db_config(st->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(st->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (sqlite3_db_readonly(st->db, "main") == 1)
        return not_ours(st, e);
    if (set_wal(st, e) < 0)
        return -1;
    cleanup_free char *sql = xasprintf("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"
                                       "PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;"
                                       "PRAGMA cell_size_check = ON;"
                                       "PRAGMA journal_size_limit = %d;",
                                       WAL_KEPT);
    return run_words(st, sql, "open it", e);
}

static int schema_version(struct store *st, int *ret, struct err *e)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(st->db, "PRAGMA user_version", -1, &q, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    int version = rc == SQLITE_ROW ? sqlite3_column_int(q, 0) : 0;
    sqlite3_finalize(q);
    if (rc != SQLITE_ROW)
        return store_fail(st, rc, "read it", e);
    if (version < 0 || version > SCHEMA_VERSION)
        return err_set(e, 0,
                       "%s was written by a newer retort (its schema is number %d, this one knows "
                       "those up to %d): use that one",
                       st->path, version, SCHEMA_VERSION);
    *ret = version;
    return 0;
}

/* Inside a transaction: the version is read again, since another program may have been faster. */
static int migrate_steps(struct store *st, struct err *e)
{
    int version;

    if (schema_version(st, &version, e) < 0)
        return -1;
    for (int i = version; i < SCHEMA_VERSION; i++) {
        if (run_words(st, schema[i], "bring it up to date", e) < 0)
            return -1;
    }
    cleanup_free char *sql = xasprintf("PRAGMA user_version = %d", SCHEMA_VERSION);
    return run_words(st, sql, "bring it up to date", e);
}

static int migrate(struct store *st, struct err *e)
{
    int version;

    if (schema_version(st, &version, e) < 0)
        return -1;
    if (version == SCHEMA_VERSION)
        return 0;
    if (run_words(st, words[Q_BEGIN], "bring it up to date", e) < 0)
        return -1;
    int r = migrate_steps(st, e);
    if (r == 0)
        r = run_words(st, words[Q_COMMIT], "bring it up to date", e);
    if (r < 0 && !sqlite3_get_autocommit(st->db))
        sqlite3_exec(st->db, words[Q_ROLLBACK], NULL, NULL, NULL);
    return r;
}

static int prepare(struct store *st, struct err *e)
{
    for (unsigned i = 0; i < N_QUERIES; i++) {
        int rc = sqlite3_prepare_v3(st->db, words[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &st->queries[i], NULL);
        if (rc != SQLITE_OK)
            return store_fail(st, rc, "read it", e);
    }
    return 0;
}

/* With its path and its way to files. It is closed where it cannot be opened. */
static int open_at(struct store *st, struct store **ret, struct err *e)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                      SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(st->path, &st->db, flags, st->vfs);

    if (rc != SQLITE_OK)
        store_fail(st, rc, "open it", e);
    else if (settle(st, e) == 0 && migrate(st, e) == 0 && prepare(st, e) == 0) {
        store_log_init(st);
        *ret = st;
        return 0;
    }
    store_close(st);
    return -1;
}

int store_open(const char *dir, struct store **ret, struct err *e)
{
    struct store *st = xcalloc(1, sizeof(*st));
    int rc = dir ? SQLITE_OK : make_vfs_here();

    st->path = dir ? xasprintf("%s/%s", dir, DATABASE) : xstrdup(DATABASE);
    st->vfs = dir ? NULL : VFS_HERE;
    st->stale = true;
    if (rc != SQLITE_OK)
        store_fail(st, rc, "open it", e);
    if (rc == SQLITE_OK && make_file(dir, st->path, e) == 0)
        return open_at(st, ret, e);
    store_close(st);
    return -1;
}

int store_open_memory(struct store **ret, struct err *e)
{
    struct store *st = xcalloc(1, sizeof(*st));

    st->path = xstrdup(":memory:");
    st->stale = true;
    st->log_failed = true; /* there is no log to carry over */
    return open_at(st, ret, e);
}

void store_close(struct store *st)
{
    if (!st)
        return;
    store_log_done(st);
    for (unsigned i = 0; i < N_QUERIES; i++)
        sqlite3_finalize(st->queries[i]);
    sqlite3_close(st->db);
    free(st->tokens);
    free(st->texts);
    free(st->path);
    free(st);
}
