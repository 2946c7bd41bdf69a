/* Sessions and cells: kept whole, listed in order, and forgotten wholly. */
#include "store_place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static void sessions_are_kept_whole(void **state)
{
    struct place *p = *state;
    struct session_row endless = {.id = "endless",
                                  .token = 7,
                                  .environment = "e",
                                  .limits = "{}",
                                  .metadata = "{}",
                                  .idle_timeout_s = INFINITY};
    struct session_row r;
    struct err e;

    add_session(p->st, "node.abc", 7);
    assert_int_equal(store_session_new(p->st, &endless, &e), 0);
    assert_int_equal(store_session_new(p->st, &endless, &e), -1);
    place_reopen(p);
    assert_int_equal(store_session_get(p->st, 7, "node.abc", &r, &e), 1);
    assert_string_equal(r.id, "node.abc");
    assert_int_equal(r.token, 7);
    assert_string_equal(r.environment, "default");
    assert_string_equal(r.limits, "{\"memory\":1}");
    assert_string_equal(r.metadata, "{\"\xc3\xa4\":\"'\"}");
    assert_true(r.idle_timeout_s == 1.5);
    assert_int_equal(r.created_ms, 1000);
    assert_int_equal(r.active_ms, 2000);
    assert_int_equal(r.ended_ms, 0);
    assert_string_equal(r.reason, "");
    assert_int_equal(r.cells, 0);
    session_row_done(&r);
    assert_int_equal(store_session_get(p->st, 7, "endless", &r, &e), 1);
    assert_true(isinf(r.idle_timeout_s));
    session_row_done(&r);
    assert_false(there(p->st, 8, "node.abc"));
    assert_false(there(p->st, 0, "node.abc"));
    assert_false(there(p->st, 7, "node.ab"));
}

static void the_first_end_stays(void **state)
{
    struct place *p = *state;
    struct session_row r;
    struct err e;

    add_session(p->st, "a", 7);
    assert_int_equal(store_session_end(p->st, "a", "idle", 5000, &e), 0);
    assert_int_equal(store_session_end(p->st, "a", "deleted", 6000, &e), 0);
    assert_int_equal(store_session_end(p->st, "unknown", "idle", 6000, &e), 0);
    assert_int_equal(store_session_get(p->st, 7, "a", &r, &e), 1);
    assert_int_equal(r.ended_ms, 5000);
    assert_string_equal(r.reason, "idle");
    session_row_done(&r);
}

static void add_id(void *ctx, const struct session_row *r)
{
    buf_add_fmt(ctx, "%s:%s ", r->id, r->reason);
}

static void ended(struct store *st, int64_t token, const char *after, unsigned limit,
                  const char *wanted)
{
    cleanup_buf struct buf ids = {0};
    struct err e;

    assert_int_equal(store_sessions_ended(st, token, after, limit, add_id, &ids, &e), 0);
    assert_string_equal(buf_text(&ids), wanted);
}

static void ended_sessions_are_listed_in_pages(void **state)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    struct place *p = *state;
    struct err e;

    for (unsigned i = 0; i < 5; i++)
        add_session(p->st, ids[i], 7);
    add_session(p->st, "other", 8);
    for (unsigned i = 5; i-- > 1;) /* not in the order in which they were made; "a" lives */
        assert_int_equal(store_session_end(p->st, ids[i], "idle", 9000 - i, &e), 0);
    assert_int_equal(store_session_end(p->st, "other", "idle", 5000, &e), 0);
    ended(p->st, 7, NULL, 10, "e:idle d:idle c:idle b:idle ");
    ended(p->st, 7, NULL, 2, "e:idle d:idle ");
    ended(p->st, 7, "d", 2, "c:idle b:idle ");
    ended(p->st, 7, "b", 2, "");
    ended(p->st, 7, "other", 2, "");
    ended(p->st, 7, "unknown", 2, "");
    ended(p->st, 8, NULL, 2, "other:idle ");
    assert_int_equal(store_sessions_restarted(p->st, 9999, &e), 0);
    ended(p->st, 7, "b", 2, "a:restart ");
    ended(p->st, 8, NULL, 2, "other:idle ");
}

static bool add_json(void *ctx, uint32_t n, const char *json, size_t len)
{
    assert_int_equal(strlen(json), len);
    buf_add_fmt(ctx, "%u=%s ", n, json);
    return strcmp(json, "{\"enough\":1}") != 0;
}

static void cells(struct store *st, const char *id, uint32_t after, unsigned limit,
                  const char *wanted)
{
    cleanup_buf struct buf found = {0};
    struct err e;

    assert_int_equal(store_cells(st, id, after, limit, add_json, &found, &e), 0);
    assert_string_equal(buf_text(&found), wanted);
}

static void cells_come_in_order(void **state)
{
    struct place *p = *state;
    struct session_row r;
    size_t len;
    char *json;
    struct err e;

    add_session(p->st, "a", 7);
    add_session(p->st, "b", 7);
    assert_int_equal(add_cell(p->st, "a", 2, "{\"two\":\"\xe2\x82\xac\"}"), 0);
    assert_int_equal(add_cell(p->st, "b", 1, "{}"), 0);
    assert_int_equal(add_cell(p->st, "a", 1, "{}"), 0);
    assert_int_equal(add_cell(p->st, "a", 4000000000u, "{\"last\":1}"), 0);
    assert_int_equal(add_cell(p->st, "a", 1, "{\"again\":1}"), -1);
    assert_int_equal(add_cell(p->st, "unknown", 1, "{}"), 0);
    place_reopen(p);
    cells(p->st, "a", 0, 10, "1={} 2={\"two\":\"\xe2\x82\xac\"} 4000000000={\"last\":1} ");
    cells(p->st, "a", 1, 1, "2={\"two\":\"\xe2\x82\xac\"} ");
    cells(p->st, "a", 4000000000u, 1, "");
    cells(p->st, "unknown", 0, 10, "");
    assert_int_equal(add_cell(p->st, "b", 2, "{\"enough\":1}"), 0);
    assert_int_equal(add_cell(p->st, "b", 3, "{}"), 0);
    cells(p->st, "b", 0, 10, "1={} 2={\"enough\":1} ");
    assert_int_equal(store_cell_get(p->st, "a", 2, &json, &len, &e), 1);
    assert_string_equal(json, "{\"two\":\"\xe2\x82\xac\"}");
    assert_int_equal(len, strlen(json));
    free(json);
    assert_int_equal(store_cell_get(p->st, "a", 3, &json, &len, &e), 0);
    assert_int_equal(store_cell_get(p->st, "unknown", 1, &json, &len, &e), 0);
    assert_int_equal(store_session_get(p->st, 7, "a", &r, &e), 1);
    assert_int_equal(r.cells, 3);
    assert_true(r.active_ms == 3000 + 4000000000ll);
    session_row_done(&r);
}

/* ---- forgetting ---- */

static void forgotten_is_gone_from_the_disk(void **state)
{
    struct place *p = *state;
    struct err e;

    add_session(p->st, "kept", 7);
    add_session(p->st, "a", 7);
    add_big_cells(p->st, "kept", 3, 20000, "keepme");
    add_big_cells(p->st, "a", 3, 20000, "erase!"); /* of several pages each */
    assert_int_equal(add_cell(p->st, "a", 9, "small erase!"), 0);
    place_reopen(p); /* the log is carried over, so the text is in the database itself, */
    assert_true(place_holds(p, "erase!"));
    assert_int_equal(add_cell(p->st, "a", 10, "fresh erase!"), 0); /* and this is in the log */
    assert_int_equal(store_session_forget(p->st, "a", &e), 1);
    assert_int_equal(store_session_forget(p->st, "a", &e), 0);
    assert_false(there(p->st, 7, "a"));
    cells(p->st, "a", 0, 10, "");
    while (store_expire(p->st, 0, &e) > 0)
        ;
    for (unsigned i = 0; i < 6000 && place_holds(p, "erase!"); i++)
        usleep(10000); /* the thread's work */
    assert_false(place_holds(p, "erase!"));
    assert_true(place_holds(p, "keepme"));
    assert_true(there(p->st, 7, "kept"));
}

static void much_is_forgotten_in_slices(void **state)
{
    struct place *p = *state;
    struct err e;
    unsigned calls = 0;
    int r;

    add_session(p->st, "a", 7);
    add_big_cells(p->st, "a", 150, 500000, "x");
    assert_int_equal(store_session_forget(p->st, "a", &e), 1);
    assert_true(place_ask(p, "SELECT count(*) FROM cells") > 0); /* or nothing is tried here */
    assert_false(there(p->st, 7, "a"));
    cells(p->st, "a", 0, 10, "");
    assert_int_equal(add_cell(p->st, "a", 151, "{}"), 0);
    cells(p->st, "a", 0, 10, "");
    for (; (r = store_expire(p->st, 0, &e)) > 0; calls++)
        ;
    assert_int_equal(r, 0);
    assert_true(calls > 1);
    assert_int_equal(place_ask(p, "SELECT count(*) FROM cells"), 0);
    assert_int_equal(place_ask(p, "SELECT count(*) FROM sessions"), 0);
}

static void old_sessions_expire(void **state)
{
    struct place *p = *state;
    struct err e;

    add_session(p->st, "lives", 7);
    add_session(p->st, "old", 7);
    add_session(p->st, "new", 7);
    assert_int_equal(add_cell(p->st, "old", 1, "{}"), 0);
    assert_int_equal(store_session_end(p->st, "old", "idle", 5000, &e), 0);
    assert_int_equal(store_session_end(p->st, "new", "idle", 6000, &e), 0);
    assert_int_equal(store_expire(p->st, 5000, &e), 0);
    assert_int_equal(store_expire(p->st, 6000, &e), 1);
    assert_int_equal(store_expire(p->st, 6000, &e), 0);
    assert_false(there(p->st, 7, "old"));
    assert_true(there(p->st, 7, "new"));
    assert_true(there(p->st, 7, "lives"));
    assert_int_equal(place_ask(p, "SELECT count(*) FROM cells"), 0);
}

static void a_revoked_token_takes_its_records_along(void **state)
{
    struct place *p = *state;
    char text[TOKEN_TEXT_MAX];
    struct token t;
    struct err e;

    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, text, &e), 0);
    assert_int_equal(find(p->st, text, &t), 1);
    add_session(p->st, "mine", t.id);
    add_session(p->st, "other", t.id + 1);
    assert_int_equal(add_cell(p->st, "mine", 1, "{}"), 0);
    assert_int_equal(store_token_revoke(p->st, "a", &e), 1);
    assert_false(there(p->st, t.id, "mine"));
    assert_true(there(p->st, t.id + 1, "other"));
    assert_int_equal(add_cell(p->st, "mine", 2, "{}"), 0);
    assert_int_equal(place_ask(p, "SELECT count(*) FROM cells"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sessions_are_kept_whole, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(the_first_end_stays, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(ended_sessions_are_listed_in_pages, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(cells_come_in_order, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(forgotten_is_gone_from_the_disk, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(much_is_forgotten_in_slices, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(old_sessions_expire, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_revoked_token_takes_its_records_along, place_setup,
                                        place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
