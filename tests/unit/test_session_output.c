/* The collector: order, head and tail, and bounds that no printing moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "session/cell.h"
#include "session/output.h"
#include "session/utf8.h"

struct told {
    struct buf text; /* of both streams */
    unsigned texts, displays;
};

static void tell_text(void *ctx, enum output_kind kind, const char *text, size_t len)
{
    struct told *t = ctx;
    (void)kind;

    assert_true(len > 0);
    assert_int_equal(utf8_valid(text, len), len);
    buf_add(&t->text, text, len);
    t->texts++;
}

static void tell_display(void *ctx, const struct output *o)
{
    struct told *t = ctx;

    assert_true(o->n_parts > 0);
    t->displays++;
}

static struct told told;
static struct collector c;
static struct cell *cell;

static void begin(uint64_t limit)
{
    const struct output_sink sink = {.text = tell_text, .display = tell_display, .ctx = &told};

    output_init(&c, limit, OUTPUT_DISPLAY_BYTES, &sink);
    output_go_live(&c);
    cell = cell_new(1, "", 0);
}

static void put(unsigned stream, const char *text)
{
    output_text(&c, stream, text, strlen(text));
}

static void show(size_t size)
{
    struct output o = {.kind = OUTPUT_DISPLAY, .n_parts = 1};

    o.parts = xcalloc(1, sizeof(*o.parts));
    o.parts[0] = (struct mime_part){xstrdup("image/png"), xcalloc(1, size + 1), size, false};
    output_display(&c, &o);
}

static int teardown(void **state)
{
    (void)state;
    cell_free(cell);
    output_done(&c);
    buf_done(&told.text);
    told = (struct told){0};
    cell = NULL;
    return 0;
}

static void assert_output(unsigned i, enum output_kind kind, const char *text)
{
    assert_true(i < cell->n_outputs);
    assert_int_equal(cell->outputs[i].kind, kind);
    assert_string_equal(cell->outputs[i].text, text);
    assert_int_equal(cell->outputs[i].len, strlen(text));
}

static void keeps_order_and_merges(void **state)
{
    (void)state;
    begin(1000);
    put(OUTPUT_STDOUT, "a");
    put(OUTPUT_STDOUT, "b");
    put(OUTPUT_STDERR, "E");
    put(OUTPUT_STDOUT, "c");
    show(3);
    put(OUTPUT_STDOUT, "d");
    output_finish(&c, cell);
    assert_int_equal(cell->n_outputs, 5);
    assert_output(0, OUTPUT_STDOUT, "ab");
    assert_output(1, OUTPUT_STDERR, "E");
    assert_output(2, OUTPUT_STDOUT, "c");
    assert_int_equal(cell->outputs[3].kind, OUTPUT_DISPLAY);
    assert_output(4, OUTPUT_STDOUT, "d");
    assert_int_equal(told.texts, 5);
    assert_int_equal(told.displays, 1);
    assert_int_equal(cell->truncated.stdout_bytes, 0);
}

/* Exactly at the limit nothing is lost, and head and tail are one output. */
static void at_the_limit_nothing_is_dropped(void **state)
{
    (void)state;
    begin(10);
    put(OUTPUT_STDOUT, "01234");
    put(OUTPUT_STDOUT, "56789");
    assert_int_equal(told.text.len, 5);
    output_finish(&c, cell);
    assert_int_equal(cell->n_outputs, 1);
    assert_output(0, OUTPUT_STDOUT, "0123456789");
    assert_int_equal(told.text.len, 10);
    assert_int_equal(cell->truncated.stdout_bytes, 0);
}

static void over_the_limit_the_middle_goes(void **state)
{
    (void)state;
    begin(10);
    put(OUTPUT_STDOUT, "0123456");
    put(OUTPUT_STDERR, "xyz");
    put(OUTPUT_STDOUT, "89ABC");
    output_finish(&c, cell);
    assert_output(0, OUTPUT_STDOUT, "01234");
    assert_output(1, OUTPUT_STDOUT, "89ABC");
    assert_int_equal(cell->n_outputs, 2);
    assert_int_equal(cell->truncated.stdout_bytes, 2);
    assert_int_equal(cell->truncated.stderr_bytes, 3);
    assert_memory_equal(told.text.data, "0123489ABC", 10);
}

static void displays_survive_in_the_dropped_middle(void **state)
{
    (void)state;
    begin(8);
    put(OUTPUT_STDOUT, "0123xxxx");
    show(1);
    put(OUTPUT_STDOUT, "yyyyy");
    show(1);
    put(OUTPUT_STDOUT, "89");
    show(1);
    put(OUTPUT_STDOUT, "AB");
    output_finish(&c, cell);
    assert_int_equal(cell->n_outputs, 6);
    assert_output(0, OUTPUT_STDOUT, "0123");
    assert_int_equal(cell->outputs[1].kind, OUTPUT_DISPLAY);
    assert_int_equal(cell->outputs[2].kind, OUTPUT_DISPLAY);
    assert_output(3, OUTPUT_STDOUT, "89");
    assert_int_equal(cell->outputs[4].kind, OUTPUT_DISPLAY);
    assert_output(5, OUTPUT_STDOUT, "AB");
    assert_int_equal(told.displays, 3);
    assert_int_equal(cell->truncated.stdout_bytes, 9);
}

static void characters_cut_by_reads_are_whole(void **state)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"; /* aä€😀z */
    (void)state;

    for (unsigned round = 0; round < 2; round++) {
        begin(round == 0 ? 64 : 14); /* all in the head, and across head and tail */
        for (size_t i = 0; i < sizeof(text) - 1; i++)
            output_text(&c, OUTPUT_STDOUT, text + i, 1);
        output_finish(&c, cell);
        assert_int_equal(cell->n_outputs, 1);
        assert_output(0, OUTPUT_STDOUT, text);
        teardown(NULL);
    }
}

/* A character of one stream that is cut by text of the other is not two broken ones. */
static void characters_survive_the_other_stream(void **state)
{
    (void)state;
    begin(100);
    put(OUTPUT_STDOUT, "\xe2\x82");
    put(OUTPUT_STDERR, "E");
    put(OUTPUT_STDOUT, "\xac");
    output_finish(&c, cell);
    assert_output(0, OUTPUT_STDERR, "E");
    assert_output(1, OUTPUT_STDOUT, "\xe2\x82\xac");
}

static void broken_bytes_become_replacements(void **state)
{
    (void)state;
    begin(100);
    put(OUTPUT_STDOUT, "a\xff");
    put(OUTPUT_STDOUT, "b\xe2\x82");
    put(OUTPUT_STDOUT, "c\xc3");
    output_finish(&c, cell);
    assert_output(0, OUTPUT_STDOUT, "a" UTF8_REPLACEMENT "b" UTF8_REPLACEMENT "c" UTF8_REPLACEMENT);
}

/* Repaired bytes are three times as long: the text kept stays within the limit all the same. */
static void repairs_do_not_burst_the_limit(void **state)
{
    char junk[100];
    (void)state;

    memset(junk, 0xff, sizeof(junk));
    begin(60);
    output_text(&c, OUTPUT_STDOUT, junk, sizeof(junk));
    output_finish(&c, cell);
    size_t kept = 0;
    for (unsigned i = 0; i < cell->n_outputs; i++)
        kept += cell->outputs[i].len;
    assert_int_equal(kept, 60);
    assert_int_equal(cell->truncated.stdout_bytes, 100 - 20);
}

static void the_tail_begins_with_a_whole_character(void **state)
{
    (void)state;
    begin(20);
    for (int i = 0; i < 1000; i++)
        put(OUTPUT_STDOUT, "\xe2\x82\xac");
    output_finish(&c, cell);
    assert_int_equal(cell->n_outputs, 2);
    assert_output(0, OUTPUT_STDOUT, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    assert_output(1, OUTPUT_STDOUT, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    assert_int_equal(cell->truncated.stdout_bytes, 3000 - 18);
}

static void a_million_changes_of_stream_are_bounded(void **state)
{
    uint64_t kept = 0;
    (void)state;

    begin(1 << 20);
    for (int i = 0; i < 1000000; i++)
        put(i & 1, "x");
    output_finish(&c, cell);
    assert_true(cell->n_outputs <= 10000);
    assert_true(cell->n_outputs >= 2000);
    for (unsigned i = 0; i < cell->n_outputs; i++)
        kept += cell->outputs[i].len;
    assert_int_equal(kept + cell->truncated.stdout_bytes + cell->truncated.stderr_bytes, 1000000);
}

/* Whatever is written in whatever pieces: kept and dropped add up, the head and the tail are right.
 */
static void random_pieces_add_up(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 2000; round++) {
        size_t limit = 16 + (size_t)(rand() % 200), total = 0;
        char all[4096];
        begin(limit);
        for (int i = rand() % 20; i > 0; i--) {
            size_t len = (size_t)(rand() % 150);
            for (size_t k = 0; k < len; k++)
                all[total + k] = (char)('a' + rand() % 26);
            output_text(&c, OUTPUT_STDOUT, all + total, len);
            total += len;
        }
        output_finish(&c, cell);
        size_t kept = total < limit ? total : limit;
        assert_int_equal(cell->truncated.stdout_bytes, total - kept);
        assert_int_equal(told.text.len, kept);
        if (kept > 0) {
            size_t head = kept < limit / 2 ? kept : limit / 2;
            assert_memory_equal(told.text.data, all, head);
            assert_memory_equal(told.text.data + head, all + total - (kept - head), kept - head);
        }
        teardown(NULL);
    }
}

static void displays_are_bounded(void **state)
{
    (void)state;
    begin(100);
    for (int i = 0; i < 1500; i++)
        show(10);
    output_finish(&c, cell);
    assert_int_equal(cell->n_outputs, OUTPUT_DISPLAYS);
    assert_int_equal(cell->truncated.displays, 500);
    teardown(NULL);
    begin(100);
    for (int i = 0; i < 10; i++)
        show(10 << 20);
    output_finish(&c, cell);
    assert_int_equal(cell->n_outputs, 4); /* as base64, they are a third longer */
    assert_int_equal(cell->truncated.displays, 6);
}

static void what_came_before_is_told_on_going_live(void **state)
{
    (void)state;
    begin(1000);
    c.live = false;
    put(OUTPUT_STDOUT, "early");
    show(1);
    put(OUTPUT_STDERR, "open");
    assert_int_equal(told.texts, 0);
    output_go_live(&c);
    assert_int_equal(told.texts, 2);
    assert_int_equal(told.displays, 1);
    put(OUTPUT_STDERR, " end");
    output_finish(&c, cell);
    assert_memory_equal(told.text.data, "earlyopen end", 13);
    assert_output(2, OUTPUT_STDERR, "open end");
}

/* 10 GB would take a while under a sanitizer: 1 GB shows the same. */
static void a_flood_costs_no_memory_and_little_time(void **state)
{
    static char chunk[256 << 10];
    (void)state;

    memset(chunk, 'y', sizeof(chunk));
    begin(1 << 20);
    int64_t start = clock_now_us();
    for (int i = 0; i < 4096; i++)
        output_text(&c, OUTPUT_STDOUT, chunk, sizeof(chunk));
    int64_t took = clock_now_us() - start;
    output_finish(&c, cell);
    assert_int_equal(cell->truncated.stdout_bytes, 4096ull * sizeof(chunk) - (1 << 20));
    print_message("  discarding: %.1f GB/s\n", 4096.0 * sizeof(chunk) / 1e3 / (double)took);
    assert_true(took < 20000000);
}

static void none_is_still_bounded(void **state)
{
    (void)state;
    begin(LIMIT_NONE);
    assert_int_equal(c.limit, OUTPUT_HARD_LIMIT);
    put(OUTPUT_STDOUT, "x");
    output_finish(&c, cell);
    assert_output(0, OUTPUT_STDOUT, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(keeps_order_and_merges, teardown),
        cmocka_unit_test_teardown(at_the_limit_nothing_is_dropped, teardown),
        cmocka_unit_test_teardown(over_the_limit_the_middle_goes, teardown),
        cmocka_unit_test_teardown(displays_survive_in_the_dropped_middle, teardown),
        cmocka_unit_test_teardown(characters_cut_by_reads_are_whole, teardown),
        cmocka_unit_test_teardown(characters_survive_the_other_stream, teardown),
        cmocka_unit_test_teardown(broken_bytes_become_replacements, teardown),
        cmocka_unit_test_teardown(repairs_do_not_burst_the_limit, teardown),
        cmocka_unit_test_teardown(the_tail_begins_with_a_whole_character, teardown),
        cmocka_unit_test_teardown(a_million_changes_of_stream_are_bounded, teardown),
        cmocka_unit_test_teardown(random_pieces_add_up, teardown),
        cmocka_unit_test_teardown(displays_are_bounded, teardown),
        cmocka_unit_test_teardown(what_came_before_is_told_on_going_live, teardown),
        cmocka_unit_test_teardown(a_flood_costs_no_memory_and_little_time, teardown),
        cmocka_unit_test_teardown(none_is_still_bounded, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
