/* Server-sent events: as the standard has them, in any pieces, within bounds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "guest/events.h"

static struct buf heard; /* "name=data;" for each event */
static bool refuse;

static int setup(void **state)
{
    (void)state;
    refuse = false;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_done(&heard);
    return 0;
}

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
    assert_ptr_equal(ctx, &heard);
    assert_int_equal(data[len], '\0');
    buf_add_fmt(&heard, "%s=", name);
    buf_add(&heard, data, len);
    buf_add(&heard, ";", 1);
    return refuse ? err_set(e, EPERM, "no") : 0;
}

/* The whole of it in pieces of `piece` bytes. */
static int feed(const char *text, size_t piece, size_t max, struct err *e)
{
    struct events ev;
    int r = 0;

    heard.len = 0;
    events_init(&ev, max, on_event, &heard);
    for (size_t at = 0, len = strlen(text); at < len && r == 0; at += piece)
        r = events_feed(&ev, text + at, len - at < piece ? len - at : piece, e);
    events_done(&ev);
    return r;
}

static void assert_events(const char *text, const char *expected)
{
    static const size_t pieces[] = {1, 2, 3, 7, 1000};
    struct err e;

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        assert_int_equal(feed(text, pieces[i], 1000, &e), 0);
        assert_string_equal(buf_text(&heard), expected);
    }
}

static void as_our_server_writes_them(void **state)
{
    (void)state;
    assert_events("event: stdout\ndata: {\"a\":1}\n\n: still here\n\nevent: cell\ndata: {}\n\n",
                  "stdout={\"a\":1};cell={};");
}

static void as_others_may(void **state)
{
    (void)state;
    assert_events("event:a\r\ndata:1\r\n\r\nevent: b\rdata:  2\r\r", "a=1;b= 2;");
    assert_events("data: x\ndata\ndata: y\n\n", "message=x\n\ny;");
    assert_events("\xef\xbb\xbf"
                  "data: 1\n\n",
                  "message=1;");
    assert_events("id: 7\nretry: 10\nevents: no\ndat: no\nevent: e\ndata: 1\n\n", "e=1;");
    assert_events("event: lost\n\ndata: 1\n\n", "message=1;");
    assert_events("data: 1\ndata: never ended\n", "");
    assert_events("data:\n\n", "message=;");
    assert_events("event: 0123456789012345678901234567890123456789\ndata: 1\n\n", "?=1;");
}

static void what_is_held_is_bounded(void **state)
{
    struct err e;
    (void)state;

    assert_int_equal(feed("data: 0123456789\n\n", 1, 20, &e), 0);
    assert_int_equal(feed("data: 0123456789\n\n", 1, 10, &e), -1);
    assert_int_equal(e.code, EFBIG);
    assert_int_equal(feed(": a comment without end 0123456789", 1, 20, &e), -1);
    assert_int_equal(feed("data: 01234\ndata: 01234\ndata: 01234\ndata: 01234\n\n", 5, 20, &e), -1);
    assert_string_equal(buf_text(&heard), "");
}

static void a_receiver_who_has_enough_ends_it(void **state)
{
    struct err e;
    (void)state;

    refuse = true;
    assert_int_equal(feed("data: 1\n\ndata: 2\n\n", 1000, 100, &e), -1);
    assert_int_equal(e.code, EPERM);
    assert_string_equal(buf_text(&heard), "message=1;");
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(as_our_server_writes_them),
        test(as_others_may),
        test(what_is_held_is_bounded),
        test(a_receiver_who_has_enough_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
