/* Tokens: made, found, used and revoked, also by other processes. */
#include "store_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"

static void take_token(void *ctx, const struct token *t)
{
    struct token **at = ctx;

    *(*at)++ = *t;
}

static void tokens_are_made_found_and_listed(void **state)
{
    struct place *p = *state;
    const struct quota quota = {3, 60, 4ULL << 30};
    char one[TOKEN_TEXT_MAX], two[TOKEN_TEXT_MAX], cut[TOKEN_TEXT_MAX];
    struct token t, all[2], *end = all;
    struct err e;

    assert_int_equal(store_token_new(p->st, "one", &quota, false, one, &e), 0);
    assert_int_equal(store_token_new(p->st, "two", &no_quota, true, two, &e), 0);
    assert_int_equal(strlen(one), 46);
    assert_int_equal(strncmp(one, "rt_", 3), 0);
    assert_int_equal(
        strspn(one, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"), 46);
    assert_string_not_equal(one, two);

    assert_int_equal(find(p->st, one, &t), 1);
    assert_string_equal(t.name, "one");
    assert_memory_equal(&t.quota, &quota, sizeof(quota));
    assert_false(t.operator);
    assert_int_equal(find(p->st, two, &t), 1);
    assert_true(t.operator);
    assert_memory_equal(&t.quota, &no_quota, sizeof(no_quota));
    assert_int_equal(store_token_alive(p->st, t.id, &e), 1);
    assert_int_equal(store_token_alive(p->st, t.id + 1, &e), 0);

    assert_int_equal(find(p->st, "", &t), 0);
    assert_int_equal(find(p->st, "rt_", &t), 0);
    memcpy(cut, one, sizeof(cut));
    cut[45] = '\0';
    assert_int_equal(find(p->st, cut, &t), 0);
    memcpy(cut, one, sizeof(cut));
    cut[10] ^= 1;
    assert_int_equal(find(p->st, cut, &t), 0);
    cleanup_free char *huge = xcalloc(1, 100001);
    memset(huge, 'a', 100000);
    assert_int_equal(find(p->st, huge, &t), 0);

    assert_int_equal(store_tokens(p->st, take_token, &end, &e), 0);
    assert_ptr_equal(end, all + 2);
    assert_string_equal(all[0].name, "one");
    assert_true(llabs(all[0].created_ms - clock_wall_ms()) < 60000);
    assert_false(place_holds(p, one));
    assert_false(place_holds(p, one + 3));
    assert_true(place_holds(p, "two"));
    place_reopen(p);
    assert_int_equal(find(p->st, one, &t), 1);
}

static void names_are_checked(void **state)
{
    struct place *p = *state;
    static const char *const bad[] = {
        "",
        "a b",
        "a/b",
        "a\n",
        "\xc3\xa4",
        "local",
        "12345678901234567890123456789012345678901234567890123456789012345"};
    char text[TOKEN_TEXT_MAX] = "untouched";
    struct err e;

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(store_token_new(p->st, bad[i], &no_quota, false, text, &e), -1);
        assert_int_equal(e.code, EINVAL);
    }
    assert_string_equal(text, "untouched");
    assert_int_equal(store_token_new(p->st,
                                     "A.b_c-0123456789012345678901234567890123456789012345678901234"
                                     "567",
                                     &no_quota, false, text, &e),
                     0);
    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, text, &e), 0);
    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, text, &e), -1);
    assert_int_equal(e.code, EEXIST);
    assert_int_equal(place_ask(p, "SELECT count(*) FROM token_texts"), 2);
}

static void a_revoked_token_never_comes_back(void **state)
{
    struct place *p = *state;
    char old[TOKEN_TEXT_MAX], fresh[TOKEN_TEXT_MAX];
    struct token t, again;
    struct err e;

    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, old, &e), 0);
    assert_int_equal(find(p->st, old, &t), 1);
    assert_int_equal(store_token_revoke(p->st, "a", &e), 1);
    assert_int_equal(store_token_revoke(p->st, "a", &e), 0);
    assert_int_equal(find(p->st, old, &again), 0);
    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, fresh, &e), 0);
    assert_int_equal(find(p->st, old, &again), 0);
    assert_int_equal(find(p->st, fresh, &again), 1);
    assert_true(again.id > t.id);
    assert_int_equal(store_token_alive(p->st, t.id, &e), 0);
    assert_int_equal(place_ask(p, "SELECT count(*) FROM token_texts"), 1);
}

static void the_local_token_has_four_texts(void **state)
{
    struct place *p = *state;
    char texts[6][TOKEN_TEXT_MAX];
    struct token t, first;
    struct err e;

    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(store_token_local(p->st, texts[i], &e), 0);
    assert_int_equal(find(p->st, texts[5], &first), 1);
    assert_string_equal(first.name, TOKEN_LOCAL);
    assert_true(first.operator);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(find(p->st, texts[i], &t), i < 2 ? 0 : 1);
        assert_true(i < 2 || t.id == first.id);
    }
    assert_int_equal(store_token_revoke(p->st, TOKEN_LOCAL, &e), 1);
    assert_int_equal(find(p->st, texts[5], &t), 0);
    assert_int_equal(store_token_local(p->st, texts[0], &e), 0);
    assert_int_equal(find(p->st, texts[0], &t), 1);
    assert_true(t.id > first.id);
}

static void set_used(const struct place *p, int64_t ms)
{
    cleanup_free char *sql = xasprintf("UPDATE tokens SET used_ms = %lld", (long long)ms);

    place_ask(p, sql);
}

static void use_is_noted_once_a_minute(void **state)
{
    struct place *p = *state;
    const char *sql = "SELECT used_ms FROM tokens";
    char text[TOKEN_TEXT_MAX];
    struct token t;
    struct err e;

    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, text, &e), 0);
    assert_int_equal(place_ask(p, sql), 0);
    assert_int_equal(find(p->st, text, &t), 1);
    int64_t now = clock_wall_ms();
    assert_true(now - place_ask(p, sql) < 60000);
    assert_true(t.used_ms == place_ask(p, sql));

    set_used(p, now - 30000);
    assert_int_equal(find(p->st, text, &t), 1);
    assert_true(place_ask(p, sql) == now - 30000);
    set_used(p, now - 61000);
    assert_int_equal(find(p->st, text, &t), 1);
    assert_true(place_ask(p, sql) >= now);
    set_used(p, now + 3600000); /* the clock was put back */
    assert_int_equal(find(p->st, text, &t), 1);
    assert_true(place_ask(p, sql) < now + 3600000);
}

static void revoke_a_make_b(const char *dir)
{
    char text[TOKEN_TEXT_MAX];
    struct store *st;
    struct err e;

    must(store_open(dir, &st, &e) == 0);
    must(store_token_revoke(st, "a", &e) == 1);
    must(store_token_new(st, "b", &no_quota, false, text, &e) == 0);
    store_close(st);
}

static void what_another_process_revokes_is_void_at_once(void **state)
{
    struct place *p = *state;
    char text[TOKEN_TEXT_MAX];
    struct token t, all[2], *end = all;
    struct err e;

    assert_int_equal(store_token_new(p->st, "a", &no_quota, false, text, &e), 0);
    place_close(p);
    struct peer peer = peer_start(revoke_a_make_b, p->dir);
    place_reopen(p);
    assert_int_equal(find(p->st, text, &t), 1);
    assert_int_equal(find(p->st, text, &t), 1);
    int64_t id = t.id;
    peer_go(&peer);
    peer_wait(&peer);
    assert_int_equal(store_token_alive(p->st, id, &e), 0);
    assert_int_equal(find(p->st, text, &t), 0);
    assert_int_equal(store_tokens(p->st, take_token, &end, &e), 0);
    assert_ptr_equal(end, all + 1);
    assert_string_equal(all[0].name, "b");
}

static void open_and_make_one(const char *dir)
{
    char name[16], text[TOKEN_TEXT_MAX];
    struct store *st;
    struct err e = {0};

    snprintf(name, sizeof(name), "p%d", (int)getpid());
    int r = store_open(dir, &st, &e);
    if (r < 0)
        fprintf(stderr, "%s\n", e.text);
    must(r == 0);
    for (unsigned i = 0; i < 20; i++) {
        struct token t;
        must(store_token_new(st, name, &no_quota, false, text, &e) == 0);
        must(store_token_find(st, text, strlen(text), &t, &e) == 1);
        must(i == 19 || store_token_revoke(st, name, &e) == 1);
    }
    store_close(st);
}

static void many_may_open_a_new_one_together(void **state)
{
    struct place *p = *state;
    struct peer peers[8];

    place_close(p);
    cleanup_free char *command = xasprintf("rm %s/*", p->dir);
    assert_int_equal(system(command), 0);
    for (unsigned i = 0; i < 8; i++)
        peers[i] = peer_start(open_and_make_one, p->dir);
    for (unsigned i = 0; i < 8; i++)
        peer_go(&peers[i]);
    for (unsigned i = 0; i < 8; i++)
        peer_wait(&peers[i]);
    place_reopen(p);
    assert_int_equal(place_ask(p, "SELECT count(*) FROM tokens"), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tokens_are_made_found_and_listed, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(names_are_checked, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_revoked_token_never_comes_back, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(the_local_token_has_four_texts, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(use_is_noted_once_a_minute, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(what_another_process_revokes_is_void_at_once, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(many_may_open_a_new_one_together, place_setup,
                                        place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
