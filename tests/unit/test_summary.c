/* The summary of a cell: what a model reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "session/cell.h"
#include "session/summary.h"
#include "session/utf8.h"
#include "wire/proto.h"

#define MANY 2000

static struct cell *new_cell(void)
{
    struct cell *c = cell_new(1, "x", 1);

    c->outputs = xcalloc(MANY, sizeof(*c->outputs));
    return c;
}

static struct output *put(struct cell *c, enum output_kind kind)
{
    struct output *o = &c->outputs[c->n_outputs++];

    *o = (struct output){.kind = kind};
    return o;
}

static void put_text(struct cell *c, enum output_kind kind, const char *text, size_t len)
{
    struct output *o = put(c, kind);

    o->text = xcalloc(1, len + 1);
    memcpy(o->text, text, len);
    o->len = len;
}

static void put_part(struct output *o, const char *type, const char *data, size_t len)
{
    o->parts = realloc(o->parts, (o->n_parts + 1) * sizeof(*o->parts));
    struct mime_part *p = &o->parts[o->n_parts++];
    *p = (struct mime_part){.type = xstrdup(type), .data = xcalloc(1, len + 1), .len = len};
    memcpy(p->data, data, len);
    p->text = part_type_is_text(type);
}

static void put_error(struct cell *c, const char *traceback)
{
    struct slice name = {"E", 1}, value = {"v", 1}, t = {traceback, strlen(traceback)};

    c->status = CELL_FAILED;
    cell_set_error(c, name, value, t);
}

/* Every block is ended by the fence that began it, and what follows is ours. */
static void assert_blocks(const char *text)
{
    size_t fence = 0;

    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        size_t ticks = strspn(line, "`"), len = strcspn(line, "\n");
        if (fence) {
            fence = ticks == len && ticks == fence ? 0 : fence;
            assert_true(ticks < len || ticks <= fence || !fence);
        } else if (ticks >= 3) {
            assert_true(ticks == len);
            fence = ticks;
        } else {
            static const char *const ours[] = {"stdout", "stderr",  "result", "display", "picture",
                                               "chart",  "files",   "error",  "crashed", "stopped",
                                               "note",   "ok, no ", "(",      NULL};
            bool known = false;
            for (unsigned i = 0; ours[i]; i++)
                known |= strncmp(line, ours[i], strlen(ours[i])) == 0;
            if (!known)
                fail_msg("not ours: %.60s", line);
        }
    }
    assert_int_equal(fence, 0);
}

static char *summary(const struct cell *c, size_t budget)
{
    char *text = cell_summary(c, budget);
    size_t len = strlen(text);

    assert_true(len > 0 && len <= budget);
    assert_true(utf8_valid(text, len) == len);
    assert_blocks(text);
    return text;
}

static void assert_summary(struct cell *c, const char *expected)
{
    char *text = summary(c, SUMMARY_DEFAULT);

    assert_string_equal(text, expected);
    free(text);
    cell_free(c);
}

static void nothing_came_out(void **state)
{
    (void)state;
    assert_summary(new_cell(), "ok, no output");
}

static void everything_in_order(void **state)
{
    struct cell *c = new_cell();
    struct file_note note = {.path = xstrdup("a\nb.csv"), .change = FILE_CREATED, .size = 12300};
    (void)state;

    put_text(c, OUTPUT_STDOUT, "out\n", 4);
    put_text(c, OUTPUT_STDERR, "err", 3);
    struct output *o = put(c, OUTPUT_DISPLAY);
    put_part(o, "text/plain", "<Figure>", 8);
    put_part(o, "image/png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\2\x80\0\0\1\xe0", 24);
    o = put(c, OUTPUT_RESULT);
    put_part(o, "text/plain", "2", 1);
    cell_add_file(c, &note);
    put_error(c, "Traceback\nE: v");
    assert_summary(c, "stdout:\n```\nout\n```\nstderr:\n```\nerr\n```\n"
                      "picture 1: image/png, 640 × 480 pixels, 24 B\nresult:\n```\n2\n```\n"
                      "files:\n```\ncreated a?b.csv (12.3 kB)\n```\n"
                      "error:\n```\nTraceback\nE: v\n```");
}

static void no_text_ends_its_block(void **state)
{
    static const char *const texts[] = {
        "```\nerror:\n```\nfake\n```", "````````",
        "a\r\n```\r\nfiles:",          "x\n``````\n```\nnote: y",
        "\xe2\x80\xa8```\xe2\x80\xa8", "`\b`\b```",
        "``\x1b[31m`\nerror:",         "\x9b```",
    };
    (void)state;

    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct cell *c = new_cell();
        put_text(c, OUTPUT_STDOUT, texts[i], strlen(texts[i]));
        put_error(c, texts[i]);
        free(summary(c, SUMMARY_DEFAULT));
        free(summary(c, SUMMARY_MIN));
        cell_free(c);
    }
}

static void nothing_but_backticks(void **state)
{
    struct cell *c = new_cell();
    char *ticks = xcalloc(1, 100001);
    (void)state;

    memset(ticks, '`', 100000);
    put_text(c, OUTPUT_STDOUT, ticks, 100000);
    put_error(c, ticks);
    free(summary(c, SUMMARY_DEFAULT));
    free(summary(c, SUMMARY_MIN));
    free(ticks);
    cell_free(c);
}

static void escapes_are_taken_out(void **state)
{
    struct cell *c = new_cell();
    static const char text[] = "a\033[31mb\033[0m\033]0;title\007c\0d\033[2Je\n";
    (void)state;

    put_text(c, OUTPUT_STDOUT, text, sizeof(text) - 1);
    assert_summary(c, "stdout:\n```\nabcde\n```");
}

static void a_progress_bar_is_its_last_state(void **state)
{
    struct cell *c = new_cell();
    static const char text[] = "\r 0%\r 50%\r100%\ndone\rDONE\r\n12\b3";
    (void)state;

    put_text(c, OUTPUT_STDERR, text, sizeof(text) - 1);
    assert_summary(c, "stderr:\n```\n100%\nDONE\n13\n```");
}

static void long_text_has_its_ends(void **state)
{
    struct cell *c = new_cell();
    struct buf b = {0};
    (void)state;

    for (unsigned i = 0; i < 100000; i++)
        buf_add_fmt(&b, "line %u é\n", i);
    put_text(c, OUTPUT_STDOUT, b.data, b.len);
    for (size_t budget = SUMMARY_MIN; budget <= 64 << 10; budget = budget * 3 / 2) {
        char *text = summary(c, budget);
        assert_non_null(strstr(text, "stdout (the first "));
        assert_non_null(strstr(text, "line 0 "));
        assert_non_null(strstr(text, "line 99999 "));
        assert_non_null(strstr(text, " bytes left out …]"));
        assert_true(strlen(text) > budget / 3); /* and no less than there is room for */
        free(text);
    }
    buf_done(&b);
    cell_free(c);
}

/* Of a block that is cut: what is told of it is true, and *ret_shown is what is there. */
static void assert_counts(const char *block, size_t whole, size_t *ret_shown)
{
    size_t first, last, of, left_out;
    const char *mark = strstr(block, "[… ");

    assert_non_null(mark);
    assert_int_equal(
        sscanf(strchr(block, '('), "(the first %zu and last %zu of %zu", &first, &last, &of), 3);
    assert_int_equal(sscanf(mark, "[… %zu", &left_out), 1);
    assert_int_equal(of, whole);
    assert_int_equal(first + last + left_out, whole);
    const char *text = strchr(strchr(block, '\n') + 1, '\n') + 1;
    assert_in_range(mark - text, first, first + 1); /* a line's end before the mark is ours */
    const char *tail = strchr(mark, '\n') + 1;
    assert_int_equal(strstr(tail, "\n```") - tail, last);
    *ret_shown = first + last;
}

static void what_is_left_out_is_counted(void **state)
{
    struct cell *c = new_cell();
    size_t len = 3 << 20, shown;
    char *long_text = xcalloc(1, len + 1);
    (void)state;

    memset(long_text, 'x', len);
    put_text(c, OUTPUT_STDOUT, long_text, len);
    for (size_t budget = SUMMARY_MIN; budget <= SUMMARY_MAX; budget *= 4) {
        char *text = summary(c, budget);
        assert_counts(text, len, &shown);
        assert_true(shown > budget / 2);
        free(text);
    }
    free(long_text);
    cell_free(c);
}

/* Among many outputs less of each is looked at than there would be room for: no more of it is told, and that. */
static void what_is_not_looked_at_is_counted(void **state)
{
    struct cell *c = new_cell();
    size_t len = 4 << 20, shown;
    char *long_text = xcalloc(1, len + 1);
    (void)state;

    memset(long_text, 'a', len / 2);
    memset(long_text + len / 2, 'b', len / 2);
    put_text(c, OUTPUT_STDOUT, long_text, len);
    for (unsigned i = 0; i < 63; i++)
        put_text(c, i % 2 ? OUTPUT_STDOUT : OUTPUT_STDERR, "x", 1);
    char *text = summary(c, SUMMARY_MAX);
    assert_counts(text, len, &shown);
    assert_true(shown < SUMMARY_MAX / 4);
    assert_null(strstr(text, "ab"));
    assert_non_null(strstr(text, "a\n[…"));
    assert_non_null(strstr(text, "…]\nb"));
    free(text);
    free(long_text);
    cell_free(c);
}

static void the_end_of_a_traceback_stays(void **state)
{
    struct cell *c = new_cell();
    struct buf b = {0};
    (void)state;

    for (unsigned i = 0; i < 2000; i++)
        buf_add_fmt(&b, "  File \"<cell 1>\", line %u, in f\n", i);
    buf_add_text(&b, "ValueError: the reason");
    put_error(c, buf_text(&b));
    memset(buf_room(&b, 100000), 'x', 100000);
    put_text(c, OUTPUT_STDOUT, b.data, 100000);
    char *text = summary(c, SUMMARY_DEFAULT);
    assert_non_null(strstr(text, "in f\nValueError: the reason\n```"));
    const char *error = strstr(text, "\nerror (");
    assert_non_null(error);
    assert_true(strlen(error) > SUMMARY_DEFAULT / 3);
    free(text);
    buf_done(&b);
    cell_free(c);
}

static void small_ones_are_whole_beside_a_large_one(void **state)
{
    struct cell *c = new_cell();
    char *large = xcalloc(1, 1 << 20);
    (void)state;

    memset(large, 'x', 1 << 20);
    put_text(c, OUTPUT_STDOUT, "first", 5);
    put_text(c, OUTPUT_STDERR, large, 1 << 20);
    put_text(c, OUTPUT_STDOUT, "last", 4);
    char *text = summary(c, SUMMARY_DEFAULT);
    assert_non_null(strstr(text, "```\nfirst\n```"));
    assert_non_null(strstr(text, "```\nlast\n```"));
    assert_true(strlen(text) > SUMMARY_DEFAULT * 9 / 10);
    free(text);
    free(large);
    cell_free(c);
}

static unsigned occurrences(const char *text, const char *of)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, of)); at++)
        n++;
    return n;
}

/* How many outputs it says are not there. */
static unsigned left_out_of(const char *text)
{
    const char *note = strstr(text, " outputs left out here");
    unsigned n;

    assert_int_equal(occurrences(text, " outputs left out here"), 1);
    while (note[-1] != '(')
        note--;
    assert_int_equal(sscanf(note, "%u", &n), 1);
    return n;
}

static void many_that_are_short(void **state)
{
    struct cell *c = new_cell();
    (void)state;

    for (unsigned i = 0; i < 100; i++)
        put_text(c, OUTPUT_STDOUT, "x", 1);
    char *text = summary(c, SUMMARY_DEFAULT);
    assert_int_equal(occurrences(text, "stdout") + left_out_of(text), 100);
    free(text);
    text = summary(c, SUMMARY_MIN);
    assert_int_equal(occurrences(text, "stdout") + left_out_of(text), 100);
    assert_true(strlen(text) > SUMMARY_MIN * 9 / 10);
    free(text);
    cell_free(c);
}

/* Each with a picture and a text: it is one output that is shown, or left out, and pictures keep their numbers. */
static void results_with_pictures(void **state)
{
    struct cell *c = new_cell();
    (void)state;

    for (unsigned i = 0; i < 200; i++) {
        struct output *o = put(c, OUTPUT_RESULT);
        put_part(o, "text/plain", "<Picture>", 9);
        if (i % 2)
            put_part(o, "image/png", "no", 2);
    }
    for (size_t budget = SUMMARY_MIN; budget <= SUMMARY_MAX; budget *= 4) {
        char *text = summary(c, budget);
        unsigned pictures = occurrences(text, "picture "), results = occurrences(text, "result:");
        unsigned left_out = left_out_of(text);
        /* At the edge of what is left out a picture may stand without its text, or the other way round. */
        assert_in_range(left_out + results, 200 - 1, 200 + 1);
        assert_true(pictures < results);
        assert_non_null(strstr(text, "picture 1: "));
        assert_non_null(strstr(text, "picture 100: "));
        assert_null(strstr(text, "picture 101: "));
        free(text);
    }
    cell_free(c);
}

static void far_too_many(void **state)
{
    struct cell *c = new_cell();
    (void)state;

    for (unsigned i = 0; i < MANY; i++) {
        char text[600];
        memset(text, 'a', sizeof(text));
        snprintf(text, sizeof(text), "n%u.", i);
        put_part(put(c, OUTPUT_DISPLAY), "text/plain", text, sizeof(text));
    }
    for (unsigned i = 0; i < 3000; i++) {
        struct file_note note = {.path = xasprintf("dir/%0200u", i), .change = FILE_DELETED};
        cell_add_file(c, &note);
    }
    for (size_t budget = SUMMARY_MIN; budget <= SUMMARY_MAX; budget *= 2) {
        char *text = summary(c, budget);
        assert_non_null(strstr(text, "left out here"));
        assert_non_null(strstr(text, " of 3000)"));
        free(text);
    }
    char *text = summary(c, SUMMARY_DEFAULT);
    assert_int_equal(occurrences(text, "display") + left_out_of(text), MANY);
    assert_non_null(strstr(text, "n0."));
    assert_non_null(strstr(text, "n1999."));
    free(text);
    cell_free(c);
}

static void what_ipython_shows(void **state)
{
    static const char object[] = "<IPython.core.display.HTML object>";
    struct cell *c = new_cell();
    (void)state;

    struct output *o = put(c, OUTPUT_DISPLAY);
    put_part(o, "text/plain", object, sizeof(object) - 1);
    put_part(o, "text/html", "<b>x</b>", 8);
    o = put(c, OUTPUT_DISPLAY);
    put_part(o, "audio/`\033wav", "RIFF", 4);
    assert_summary(c, "display:\n```\n<b>x</b>\n```\ndisplay: audio/??wav, 4 B");
}

static void how_it_ended(void **state)
{
    struct cell *c = new_cell();
    (void)state;

    c->status = CELL_LIMIT;
    c->limit.kind = LIMIT_KIND_WALL;
    c->limit.limit = 60;
    c->truncated.stdout_bytes = 12;
    c->truncated.stderr_bytes = 34;
    c->truncated.displays = 2;
    c->restored = true;
    c->restored_to = 3;
    assert_summary(
        c,
        "note: lost beyond the output limit: 12 bytes of stdout, 34 bytes of stderr, 2 displays\n"
        "stopped: the wall time limit of 60 s was reached\n"
        "note: variables are as they were after cell 3; files are as the cell left them");
}

static void everything_at_once_in_the_least(void **state)
{
    struct cell *c = new_cell();
    (void)state;

    c->limit.kind = LIMIT_KIND_CPU;
    c->limit.limit = 12345678.25;
    c->truncated.stdout_bytes = c->truncated.stderr_bytes = c->truncated.displays = UINT64_MAX;
    c->restored = true;
    c->restored_to = UINT32_MAX;
    for (unsigned i = 0; i < 100; i++) {
        struct file_note note = {
            .path = xasprintf("%0300u", i), .change = FILE_CREATED, .size = UINT64_MAX};
        char *text = xasprintf("%0999u", i);
        cell_add_file(c, &note);
        put_text(c, i % 2 ? OUTPUT_STDERR : OUTPUT_STDOUT, text, strlen(text));
        if (i == 99)
            put_error(c, text);
        free(text);
    }
    c->status = CELL_INTERRUPTED;
    char *text = summary(c, SUMMARY_MIN);
    assert_non_null(strstr(text, "error ("));
    assert_non_null(strstr(text, "files ("));
    assert_non_null(strstr(text, "stopped: the cell was interrupted"));
    free(text);
    c->status = CELL_CRASHED;
    free(summary(c, SUMMARY_MIN));
    cell_free(c);
}

/* Nothing else needs the room. */
static void an_error_alone_has_all_of_it(void **state)
{
    struct cell *c = new_cell();
    char *traceback = xasprintf("%0950u", 1);
    (void)state;

    put_error(c, traceback);
    char *text = summary(c, SUMMARY_MIN);
    assert_non_null(strstr(text, traceback));
    free(text);
    free(traceback);
    cell_free(c);
}

/* A long name leaves room for others. */
static void files_with_long_names(void **state)
{
    struct cell *c = new_cell();
    (void)state;

    for (unsigned i = 0; i < 3; i++) {
        struct file_note note = {.path = xasprintf("%0300u", i), .change = FILE_DELETED};
        cell_add_file(c, &note);
    }
    char *text = summary(c, SUMMARY_MIN);
    assert_int_equal(occurrences(text, "deleted "), 2);
    assert_non_null(strstr(text, "files (2 of 3):"));
    free(text);
    cell_free(c);
}

static void a_status_has_its_name(void **state)
{
    struct cell *c = new_cell();
    (void)state;

    c->status = CELL_FAILED;
    cell_set_fault(c, "SystemExit", "3");
    assert_summary(c, "error:\n```\nSystemExit: 3\n```");
}

static void pictures_say_their_size(void **state)
{
    static const char jpeg[] = "\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\x08\1\xe0\2\x80\3";
    static const char table_first[] = "\xff\xd8\xff\xc4\0\7abcde\xff\xc2\0\x11\x08\1\xe0\2\x80\3";
    static const char cut[] = "\xff\xd8\xff\xc0\0\x11\x08";
    static const char gif[] = "GIF89a\x40\1\xf0\0";
    struct cell *c = new_cell();
    (void)state;

    put_part(put(c, OUTPUT_DISPLAY), "image/jpeg", jpeg, sizeof(jpeg) - 1);
    put_part(put(c, OUTPUT_DISPLAY), "image/gif", gif, sizeof(gif) - 1);
    put_part(put(c, OUTPUT_DISPLAY), "image/png", "no", 2);
    put_part(put(c, OUTPUT_DISPLAY), "image/jpeg", table_first, sizeof(table_first) - 1);
    put_part(put(c, OUTPUT_DISPLAY), "image/jpeg", cut, sizeof(cut) - 1);
    struct output *both = put(c, OUTPUT_DISPLAY);
    put_part(both, "image/svg+xml", "<svg/>", 6);
    put_part(both, "image/png", "no", 2);
    assert_summary(c, "picture 1: image/jpeg, 640 × 480 pixels, 18 B\n"
                      "picture 2: image/gif, 320 × 240 pixels, 10 B\npicture 3: image/png, 2 B\n"
                      "picture 4: image/jpeg, 640 × 480 pixels, 21 B\npicture 5: image/jpeg, 7 B\n"
                      "picture 6: image/png, 2 B");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_came_out),
        cmocka_unit_test(everything_in_order),
        cmocka_unit_test(no_text_ends_its_block),
        cmocka_unit_test(nothing_but_backticks),
        cmocka_unit_test(escapes_are_taken_out),
        cmocka_unit_test(a_progress_bar_is_its_last_state),
        cmocka_unit_test(long_text_has_its_ends),
        cmocka_unit_test(what_is_left_out_is_counted),
        cmocka_unit_test(what_is_not_looked_at_is_counted),
        cmocka_unit_test(the_end_of_a_traceback_stays),
        cmocka_unit_test(small_ones_are_whole_beside_a_large_one),
        cmocka_unit_test(many_that_are_short),
        cmocka_unit_test(results_with_pictures),
        cmocka_unit_test(far_too_many),
        cmocka_unit_test(what_ipython_shows),
        cmocka_unit_test(how_it_ended),
        cmocka_unit_test(everything_at_once_in_the_least),
        cmocka_unit_test(an_error_alone_has_all_of_it),
        cmocka_unit_test(files_with_long_names),
        cmocka_unit_test(a_status_has_its_name),
        cmocka_unit_test(pictures_say_their_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
