/* store_place: see store_place.h. */
#include "store_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sqlite3.h>

#include "base/buf.h"
#include "base/limits.h"

const struct quota no_quota = {LIMIT_NONE, LIMIT_NONE, LIMIT_NONE};

int place_setup(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));
    struct err e;

    strcpy(p->dir, "/tmp/retort-store-XXXXXX");
    if (!mkdtemp(p->dir) || store_open(p->dir, &p->st, &e) < 0)
        return -1;
    *state = p;
    return 0;
}

int place_teardown(void **state)
{
    struct place *p = *state;
    cleanup_free char *command = xasprintf("rm -rf %s", p->dir);

    store_close(p->st);
    int r = system(command);
    free(p);
    return r;
}

void place_close(struct place *p)
{
    store_close(p->st);
    p->st = NULL;
}

void place_reopen(struct place *p)
{
    struct err e;

    place_close(p);
    assert_int_equal(store_open(p->dir, &p->st, &e), 0);
}

int64_t place_ask(const struct place *p, const char *sql)
{
    cleanup_free char *path = xasprintf("%s/retort.db", p->dir);
    sqlite3_stmt *q;
    sqlite3 *db;
    int64_t answer = 0;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        answer = sqlite3_column_int64(q, 0);
    else
        assert_int_equal(rc, SQLITE_DONE);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return answer;
}

bool place_holds(const struct place *p, const char *text)
{
    cleanup_free char *command = xasprintf("grep -qraF -- '%s' %s", text, p->dir);

    return system(command) == 0;
}

struct peer peer_start(void (*act)(const char *dir), const char *dir)
{
    int ends[2];
    char byte;

    assert_int_equal(pipe(ends), 0);
    struct peer peer = {fork(), ends[1]};
    if (peer.pid == 0) {
        close(ends[1]);
        must(read(ends[0], &byte, 1) == 1);
        act(dir);
        _exit(0);
    }
    close(ends[0]);
    return peer;
}

void peer_go(const struct peer *peer)
{
    assert_int_equal(write(peer->go, "x", 1), 1);
    close(peer->go);
}

void peer_wait(const struct peer *peer)
{
    int status = -1;

    assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
    assert_int_equal(status, 0);
}

void elsewhere(void (*act)(const char *dir), const char *dir)
{
    struct peer peer = peer_start(act, dir);

    peer_go(&peer);
    peer_wait(&peer);
}

int find(struct store *st, const char *text, struct token *ret)
{
    struct err e;

    return store_token_find(st, text, strlen(text), ret, &e);
}

void add_session(struct store *st, const char *id, int64_t token)
{
    struct session_row r = {.token = token,
                            .environment = "default",
                            .limits = "{\"memory\":1}",
                            .metadata = "{\"\xc3\xa4\":\"'\"}",
                            .idle_timeout_s = 1.5,
                            .created_ms = 1000,
                            .active_ms = 2000};
    struct err e;

    strcpy(r.id, id);
    assert_int_equal(store_session_new(st, &r, &e), 0);
}

int add_cell(struct store *st, const char *id, uint32_t n, const char *json)
{
    struct err e;

    return store_cell_add(st, id, n, 3000 + n, json, strlen(json), &e);
}

bool there(struct store *st, int64_t token, const char *id)
{
    struct session_row r;
    struct err e;
    int found = store_session_get(st, token, id, &r, &e);

    assert_true(found >= 0);
    if (found)
        session_row_done(&r);
    return found;
}

void add_big_cells(struct store *st, const char *id, unsigned n, size_t size, const char *mark)
{
    cleanup_free char *json = xcalloc(1, size + 1);

    for (size_t i = 0; i < size; i++)
        json[i] = mark[i % strlen(mark)];
    for (unsigned i = 1; i <= n; i++)
        assert_int_equal(add_cell(st, id, i, json), 0);
}
