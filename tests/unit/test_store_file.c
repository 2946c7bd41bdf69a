/* The database's file: whose it is, where it can be opened, and what is said when that goes wrong. */
#include "store_place.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

static void the_log_is_carried_over_meanwhile(void **state)
{
    struct place *p = *state;
    cleanup_free char *path = xasprintf("%s/retort.db", p->dir);
    struct stat sb = {0};

    add_session(p->st, "a", 7);
    add_big_cells(p->st, "a", 6, 1 << 20, "x");
    for (unsigned i = 0; i < 6000 && sb.st_size < 4 << 20; i++) {
        usleep(10000);
        assert_int_equal(stat(path, &sb), 0);
    }
    assert_true(sb.st_size >= 4 << 20);
}

static void check_files(const char *dir, uid_t owner)
{
    static const char *const names[] = {"retort.db", "retort.db-wal", "retort.db-shm"};
    struct stat sb;

    for (unsigned i = 0; i < 3; i++) {
        cleanup_free char *path = xasprintf("%s/%s", dir, names[i]);
        must(stat(path, &sb) == 0);
        must((sb.st_mode & 07777) == 0600);
        must(sb.st_uid == owner && sb.st_gid == owner);
    }
}

static void try_files(const char *dir)
{
    struct stat sb;
    struct store *st;
    struct err e;

    umask(022);
    must(stat(dir, &sb) == 0);
    must(store_open(dir, &st, &e) == 0);
    add_session(st, "a", 7);
    check_files(dir, sb.st_uid);
    store_close(st);
}

static void files_are_the_directorys_owners_alone(void **state)
{
    struct place *p = *state;

    place_close(p);
    cleanup_free char *command = xasprintf("rm %s/*", p->dir);
    assert_int_equal(system(command), 0);
    elsewhere(try_files, p->dir);
    if (geteuid() == 0) { /* it is the server's, and root opens it first */
        assert_int_equal(system(command), 0);
        assert_int_equal(chown(p->dir, 4321, 4321), 0);
        elsewhere(try_files, p->dir);
    }
    place_reopen(p);
}

static void try_here(const char *dir)
{
    struct store *st;
    char text[TOKEN_TEXT_MAX];
    struct token t;
    struct err e = {0};

    must(chdir(dir) == 0);
    must(setresgid(4321, 4321, 4321) == 0 && setresuid(4321, 4321, 4321) == 0);
    must(chdir(dir) < 0 && errno == EACCES); /* it is closed, or nothing is tried here */
    int r = store_open(NULL, &st, &e);
    if (r < 0)
        fprintf(stderr, "%s\n", e.text);
    must(r == 0);
    must(store_token_new(st, "a", &no_quota, false, text, &e) == 0);
    must(store_token_find(st, text, strlen(text), &t, &e) == 1);
    add_session(st, "a", t.id);
    add_big_cells(st, "a", 6, 1 << 20, "x"); /* with the thread, which opens it too */
    check_files(".", 4321);
    struct stat sb = {0};
    for (unsigned i = 0; i < 6000 && sb.st_size < 4 << 20; i++) {
        usleep(10000);
        must(stat("retort.db", &sb) == 0);
    }
    must(sb.st_size >= 4 << 20);
    store_close(st);
    must(access("retort.db-wal", F_OK) < 0);
    must(store_open(NULL, &st, &e) == 0);
    must(store_token_find(st, text, strlen(text), &t, &e) == 1);
    store_close(st);
}

static void it_opens_where_no_path_leads(void **state)
{
    struct place *p = *state;

    if (geteuid() != 0)
        return;
    cleanup_free char *below = xasprintf("%s/below", p->dir);
    assert_int_equal(mkdir(below, 0700), 0);
    assert_int_equal(chown(below, 4321, 4321), 0);
    elsewhere(try_here, below);
}

static void a_newer_schema_is_refused(void **state)
{
    struct place *p = *state;
    struct store *st = NULL;
    struct err e;

    place_ask(p, "PRAGMA user_version = 99");
    assert_int_equal(store_open(p->dir, &st, &e), -1);
    assert_non_null(strstr(e.text, "newer retort"));
    assert_null(st);
    place_ask(p, "PRAGMA user_version = -1");
    assert_int_equal(store_open(p->dir, &st, &e), -1);
    place_ask(p, "PRAGMA user_version = 1");
}

/* Every page but the first, from `at` on, becomes noise. */
static void damage(const struct place *p, off_t at)
{
    cleanup_free char *path = xasprintf("%s/retort.db", p->dir);
    cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat sb;
    char noise[4096];

    assert_int_equal(fstat(fd, &sb), 0);
    memset(noise, 0x5a, sizeof(noise));
    for (; at < sb.st_size; at += (off_t)sizeof(noise))
        assert_int_equal(pwrite(fd, noise, sizeof(noise), at), sizeof(noise));
}

static void a_damaged_file_is_told(void **state)
{
    struct place *p = *state;
    char text[TOKEN_TEXT_MAX], *json;
    size_t len;
    struct token t;
    struct session_row r;
    struct err e;

    add_session(p->st, "a", 7);
    add_big_cells(p->st, "a", 5, 5000, "x");
    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, text, &e), 0);
    place_close(p);
    damage(p, 4096);
    assert_int_equal(store_open(p->dir, &p->st, &e), 0); /* the first page is well */
    assert_int_equal(store_token_find(p->st, text, strlen(text), &t, &e), -1);
    assert_non_null(strstr(e.text, "damaged"));
    assert_non_null(strstr(e.text, "backup"));
    assert_int_equal(store_session_get(p->st, 7, "a", &r, &e), -1);
    assert_int_equal(add_cell(p->st, "a", 9, "{}"), -1);
    assert_int_equal(store_cell_get(p->st, "a", 1, &json, &len, &e), -1);
    assert_int_equal(store_session_forget(p->st, "a", &e), -1);
    assert_int_equal(store_expire(p->st, 1 << 30, &e), -1);
    assert_int_equal(store_token_local(p->st, text, &e), -1);
    place_close(p);
    damage(p, 0);
    assert_int_equal(store_open(p->dir, &p->st, &e), -1);
    assert_non_null(strstr(e.text, "damaged"));
    assert_non_null(strstr(e.text, p->dir));
}

static void try_read_only(const char *dir)
{
    cleanup_free char *path = xasprintf("%s/retort.db", dir);
    struct store *st;
    struct err e;

    must(setresuid(4321, 4321, 4321) == 0);
    must(store_open(dir, &st, &e) < 0);
    must(strstr(e.text, "uid 4321") && strstr(e.text, "own"));
    must(strstr(e.text, path));
}

static void what_cannot_be_written_is_told(void **state)
{
    struct place *p = *state;
    cleanup_free char *path = xasprintf("%s/retort.db", p->dir);
    struct err e;

    place_close(p);
    assert_int_equal(store_open("/nowhere", &p->st, &e), -1);
    assert_non_null(strstr(e.text, "/nowhere/retort.db"));
    if (geteuid() != 0)
        return;
    assert_int_equal(chmod(p->dir, 0755), 0);
    elsewhere(try_read_only, p->dir); /* neither readable nor writable */
    assert_int_equal(chmod(path, 0644), 0);
    elsewhere(try_read_only, p->dir); /* readable */
    assert_int_equal(chmod(path, 0666), 0);
    elsewhere(try_read_only, p->dir); /* but there can be no log beside it */
    assert_int_equal(unlink(path), 0);
    elsewhere(try_read_only, p->dir); /* nor anything */
}

/* On a small disk of its own, in a mount namespace of its own. */
static void try_full_disk(const char *dir)
{
    cleanup_free char *ballast = xasprintf("%s/ballast", dir);
    cleanup_free char *fill = xasprintf("cat /dev/zero >%s 2>/dev/null", ballast);
    char text[TOKEN_TEXT_MAX], other[TOKEN_TEXT_MAX], json[3000];
    struct token t;
    struct store *st = NULL;
    struct err e;

    must(unshare(CLONE_NEWNS) == 0);
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    must(mount("small", dir, "tmpfs", 0, "size=1m,mode=700") == 0);
    must(system(fill) != 0);
    must(store_open(dir, &st, &e) < 0 && e.code == ENOSPC && strstr(e.text, "make room"));
    must(unlink(ballast) == 0);
    must(store_open(dir, &st, &e) == 0);
    must(store_token_new(st, "a", &no_quota, false, text, &e) == 0);
    add_session(st, "a", 7);
    must(system(fill) != 0);
    memset(json, 'x', sizeof(json));
    uint32_t n = 1;
    while (store_cell_add(st, "a", n, 1, json, sizeof(json), &e) == 0)
        n++;
    must(e.code == ENOSPC && strstr(e.text, "make room"));
    must(store_token_new(st, "b", &no_quota, false, other, &e) < 0 && e.code == ENOSPC);
    /* Who has a token may still come in, and nothing that was kept is lost. */
    must(store_token_find(st, text, strlen(text), &t, &e) == 1);
    must(unlink(ballast) == 0);
    must(store_cell_add(st, "a", n, 1, json, sizeof(json), &e) == 0);
    struct session_row r;
    must(store_session_get(st, 7, "a", &r, &e) == 1 && r.cells == n);
    session_row_done(&r);
    store_close(st);
}

static void a_full_disk_is_told(void **state)
{
    struct place *p = *state;

    if (geteuid() != 0)
        return;
    place_close(p);
    elsewhere(try_full_disk, p->dir);
}

static void hold(const char *dir)
{
    cleanup_free char *path = xasprintf("%s/retort.db", dir);
    sqlite3 *db;

    must(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    must(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    sleep(60);
}

static void a_writer_that_never_ends_is_told(void **state)
{
    struct place *p = *state;
    struct token t;
    char text[TOKEN_TEXT_MAX];
    struct err e;

    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, text, &e), 0);
    add_session(p->st, "a", 7);
    place_close(p);
    struct peer peer = peer_start(hold, p->dir);
    place_reopen(p);
    peer_go(&peer);
    int r = 0;
    int64_t began = 0;
    for (uint32_t n = 1; r == 0 && n < 10000; n++) {
        began = clock_now_ms();
        r = store_cell_add(p->st, "a", n, 1, "{}", 2, &e);
        usleep(1000);
    }
    assert_int_equal(r, -1);
    assert_true(clock_now_ms() - began >= 1500);
    assert_int_equal(e.code, EBUSY);
    assert_non_null(strstr(e.text, "locked"));
    /* It takes nobody's right to come in. */
    assert_int_equal(find(p->st, text, &t), 1);
    kill(peer.pid, SIGKILL);
    waitpid(peer.pid, NULL, 0);
    assert_int_equal(add_cell(p->st, "a", 1000000, "{}"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_log_is_carried_over_meanwhile, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(files_are_the_directorys_owners_alone, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(it_opens_where_no_path_leads, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_newer_schema_is_refused, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_told, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_told, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_is_told, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_writer_that_never_ends_is_told, place_setup,
                                        place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
