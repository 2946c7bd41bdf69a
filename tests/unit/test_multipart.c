/* Forms as they come: whatever way they are cut into pieces, and whatever is wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gate/multipart.h"

#define TYPE "multipart/form-data; boundary=XX"
#define FORM "Content-Disposition: form-data; "
#define END "\r\n--XX--\r\n"

/* What was told, as text: <name|filename>data. for each part, with a dot when it was whole. */
struct story {
    struct buf text;
    int stop_at; /* the event that says no; 0: none does */
    int events;
};

static int told(struct story *s)
{
    return ++s->events == s->stop_at ? -1 : 0;
}

static int on_begin(void *ctx, const char *name, const char *filename)
{
    struct story *s = ctx;

    buf_add_fmt(&s->text, "<%s|%s>", name, filename ? filename : "-");
    return told(s);
}

static int on_data(void *ctx, const char *data, size_t len)
{
    struct story *s = ctx;

    assert_true(len > 0);
    buf_add(&s->text, data, len);
    return told(s);
}

static int on_end(void *ctx)
{
    struct story *s = ctx;

    buf_add_text(&s->text, ".");
    return told(s) < 0 ? -1 : 1;
}

static const struct multipart_events events = {on_begin, on_data, on_end};

/* All of it, over every pause. */
static int feed(struct multipart *m, const char *data, size_t len, struct err *e)
{
    while (len > 0) {
        ssize_t n = multipart_feed(m, data, len, e);
        if (n < 0)
            return -1;
        assert_true(n > 0 && (size_t)n <= len);
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* In two cuts: [0, a), [a, b), [b, len). The result of feeding, or of finishing when that went well. */
static int parse(const char *type, const char *body, size_t len, size_t a, size_t b,
                 struct story *s, struct err *e)
{
    struct multipart *m = multipart_new(type, &events, s, e);

    assert_non_null(m);
    s->text.len = 0;
    s->events = 0;
    int r = feed(m, body, a, e);
    if (r == 0)
        r = feed(m, body + a, b - a, e);
    if (r == 0)
        r = feed(m, body + b, len - b, e);
    if (r == 0)
        r = multipart_finish(m, e);
    multipart_free(m);
    return r;
}

/* Cut everywhere, and byte by byte. */
static void expect_of(const char *type, const char *body, size_t len, const char *story)
{
    struct story s = {0};
    struct err e;

    for (size_t a = 0; a <= len; a++) {
        for (size_t b = a; b <= len; b += len < 300 ? 1 : 17) {
            assert_int_equal(parse(type, body, len, a, b, &s, &e), 0);
            assert_int_equal(s.text.len, strlen(story));
            assert_memory_equal(buf_text(&s.text), story, s.text.len);
        }
    }
    struct multipart *m = multipart_new(type, &events, &s, &e);
    s.text.len = 0;
    for (size_t i = 0; i < len; i++)
        assert_int_equal(multipart_feed(m, body + i, 1, &e), 1);
    assert_int_equal(multipart_finish(m, &e), 0);
    assert_string_equal(buf_text(&s.text), story);
    multipart_free(m);
    buf_done(&s.text);
}

/* A pause is where the part ends, and what follows is read when it is fed again. */
static void pauses_behind_each_part(void **state)
{
    static const char body[] =
        "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\none\r\n"
        "--b\r\nContent-Disposition: form-data; name=\"y\"\r\n\r\ntwo\r\n--b--";
    struct story s = {0};
    struct err e;
    struct multipart *m = multipart_new("multipart/form-data; boundary=b", &events, &s, &e);
    (void)state;

    ssize_t n = multipart_feed(m, body, sizeof(body) - 1, &e);
    assert_string_equal(buf_text(&s.text), "<x|->one.");
    assert_memory_equal(body + n, "Content-Disposition: form-data; name=\"y\"", 40);
    assert_int_equal(multipart_feed(m, body + n, sizeof(body) - 1 - (size_t)n, &e),
                     sizeof(body) - 1 - (size_t)n);
    assert_string_equal(buf_text(&s.text), "<x|->one.<y|->two.");
    multipart_free(m);
    buf_done(&s.text);
}

static void expect(const char *body, const char *story)
{
    expect_of(TYPE, body, strlen(body), story);
}

/* Refused wherever it is cut, with this in the message; nothing is called whole but `wholes` parts. */
static void refused_of(const char *body, size_t len, const char *part, unsigned wholes)
{
    struct story s = {0};

    for (size_t a = 0; a <= len; a += len < 5000 ? 1 : 997) {
        struct err e = {0};
        unsigned ends = 0;
        assert_int_equal(parse(TYPE, body, len, a, a, &s, &e), -1);
        if (!strstr(e.text, part))
            fail_msg("cut at %zu: \"%s\", not \"%s\"", a, e.text, part);
        for (const char *p = buf_text(&s.text); (p = strchr(p, '.')); p++)
            ends++;
        assert_int_equal(ends, wholes);
    }
    buf_done(&s.text);
}

static void refused(const char *body, const char *part)
{
    refused_of(body, strlen(body), part, 0);
}

static void fields_and_files(void **state)
{
    (void)state;

    expect("--XX\r\n" FORM "name=\"a\"\r\n\r\nhello\r\n--XX\r\n" FORM
           "name=\"f\"; filename=\"x y.csv\"\r\nContent-Type: text/csv\r\n\r\n1,2\r\n3,4\r\n" END,
           "<a|->hello.<f|x y.csv>1,2\r\n3,4\r\n.");
    expect("--XX--", "");
    expect("--XX\r\n" FORM "name=a\r\n\r\n" END, "<a|->.");
    expect("--XX\r\nCONTENT-DISPOSITION:form-data;NAME=a;FileName=b\r\n\r\nx" END, "<a|b>x.");
    /* A browser's file field that was left empty. */
    expect("--XX\r\n" FORM "name=\"f\"; filename=\"\"\r\n\r\n" END, "<f|>.");
    /* The blank line's CRLF may be the delimiter's (RFC 2046, body-part). */
    expect("--XX\r\n" FORM "name=a\r\n\r\n--XX\r\n" FORM "name=b\r\n\r\n--XX--", "<a|->.<b|->.");
}

static void what_is_around_is_left_out(void **state)
{
    (void)state;

    expect("A preamble\r\nwith --XX in it\r\n--XX\r\n" FORM "name=a\r\n\r\nx" END
           "an epilogue\r\n--XX\r\n" FORM "name=z\r\n\r\nnever" END,
           "<a|->x.");
    expect("\r\n--XX \t \r\n" FORM "name=a\r\n\r\nx\r\n--XX--trailing", "<a|->x.");
}

static void bodies_that_look_like_delimiters(void **state)
{
    static const char zeros[] = "--XX\r\n" FORM "name=a\r\n\r\n\0\r\n\0-\0" END;
    (void)state;

    expect("--XX\r\n" FORM "name=a\r\n\r\n\r\r\n\r\n-\r\n--\r\n--X\r\n--Y\r\r\n--X" END,
           "<a|->\r\r\n\r\n-\r\n--\r\n--X\r\n--Y\r\r\n--X.");
    expect("--XX\r\n" FORM "name=a\r\n\r\n--X\r\n --XX\n--XX\r--XX x--XX--" END,
           "<a|->--X\r\n --XX\n--XX\r--XX x--XX--.");
    expect("--XX\r\n" FORM "name=a\r\n\r\n\r\n" END, "<a|->\r\n.");
    expect("--XX\r\n" FORM "name=a\r\n\r\n-" END, "<a|->-.");

    struct story s = {0};
    struct err e;
    for (size_t a = 0; a < sizeof(zeros); a++) {
        assert_int_equal(parse(TYPE, zeros, sizeof(zeros) - 1, a, a, &s, &e), 0);
        assert_int_equal(s.text.len, 5 + 6 + 1);
        assert_memory_equal(s.text.data, "<a|->\0\r\n\0-\0.", s.text.len);
    }
    buf_done(&s.text);
}

static void names_as_clients_write_them(void **state)
{
    static const struct {
        const char *params, *story;
    } cases[] = {
        {"name=\"a\\\"b\\\\c\"", "<a\"b\\c|->."},
        {"name=\"C:\\dir\\file\"", "<C:\\dir\\file|->."},
        {"name=\"a%22b%0D%0Ac\"", "<a\"b\r\nc|->."},
        {"name=\"100%25%0d%2\"", "<100%25%0d%2|->."}, /* browsers leave every other % alone */
        {"name=a%22", "<a%22|->."},
        {"name=\"a;b=\\\"c\\\"; d\"; filename=\"e, f\"", "<a;b=\"c\"; d|e, f>."},
        {"name=\"\xc3\xa9\xff\"; filename=\"\xe2\x82\xac\"", "<\xc3\xa9\xff|\xe2\x82\xac>."},
        {"name=a; filename*=UTF-8''%e2%82%AC%20rates.csv", "<a|\xe2\x82\xac rates.csv>."},
        {"name=a; filename*=utf-8'en'x; filename=y", "<a|x>."},
        {"name=a; filename=y; filename*=UTF-8''x", "<a|x>."},
        {"name=a; filename=y; filename*=UTF-8''", "<a|>."},
        {"name=a; filename=\"../../etc/passwd\"", "<a|../../etc/passwd>."},
        {"; ;name=a ; unknown=\"x\";", "<a|->."},
        {"name=\"\"", "<|->."},
        {"name=a\r\nX-Other: y;=\"", "<a|->."},
        {"name=a\r\nContent-Transfer-Encoding: 8BIT", "<a|->."},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char body[512];
        snprintf(body, sizeof(body), "--XX\r\n" FORM "%s\r\n\r\n" END, cases[i].params);
        expect(body, cases[i].story);
    }
}

static void headers_that_are_refused(void **state)
{
    static const struct {
        const char *head, *part;
    } cases[] = {
        {FORM "filename=a\r\n", "name="},
        {"", "name="},
        {"Content-Type: text/plain\r\n", "name="},
        {"Content-Disposition: attachment; name=a\r\n", "form-data"},
        {"Content-Disposition: form-data2; name=a\r\n", "form-data"},
        {FORM "name=a; name=b\r\n", "two names"},
        {FORM "name=a; filename=x; filename=y\r\n", "two names"},
        {FORM "name=a; filename*=UTF-8''x; filename*=UTF-8''y\r\n", "two names"},
        {FORM "name=a\r\n" FORM "name=b\r\n", "two Content-Disposition"},
        {FORM "name=\"a\r\n", "malformed"},
        {FORM "name=\"a\\\"\r\n", "malformed"},
        {FORM "name=\"a\"b\r\n", "malformed"},
        {FORM "name\r\n", "malformed"},
        {FORM "name=\r\n", "malformed"},
        {FORM "name=a, name=b\r\n", "malformed"},
        {FORM "name=a b\r\n", "malformed"},
        {FORM "\r\n name=a\r\n", "malformed"}, /* folded */
        {"Content-Disposition : form-data; name=a\r\n", "malformed"},
        {": x\r\n" FORM "name=a\r\n", "malformed"},
        {FORM "name=a; filename*=x\r\n", "filename*"},
        {FORM "name=a; filename*=UTF-8'x\r\n", "filename*"},
        {FORM "name=a; filename*=ISO-8859-1''%e4\r\n", "filename*"},
        {FORM "name=a; filename*=UTF-8''%e4\r\n", "filename*"},
        {FORM "name=a; filename*=UTF-8''%\r\n", "filename*"},
        {FORM "name=a; filename*=UTF-8''%2\r\n", "filename*"},
        {FORM "name=a; filename*=\"UTF-8''x\"\r\n", "filename*"},
        {FORM "name=a; filename*=UTF-8''a%00b\r\n", "NUL"},
        {FORM "name=a\r\nContent-Transfer-Encoding: base64\r\n", "as they are"},
        {FORM "name=a\n", "CR LF"},
        {FORM "name=a\rX\r\n", "CR LF"},
        {FORM "name=a\r\r\n", "CR LF"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char body[512];
        snprintf(body, sizeof(body), "--XX\r\n%s\r\n" END, cases[i].head);
        refused(body, cases[i].part);
    }
    static const char nul[] = "--XX\r\n" FORM "name=\"a\0b\"\r\n\r\n" END;
    refused_of(nul, sizeof(nul) - 1, "malformed", 0);
}

static void bodies_that_are_refused(void **state)
{
    (void)state;

    refused("", "no line with the boundary");
    refused("hello", "no line with the boundary");
    refused("--X", "no line with the boundary");
    refused("x--XX\r\n", "no line with the boundary");
    refused("\n--XX\n" FORM "name=a\n\nx\n--XX--\n", "no line with the boundary");
    refused("--XX\n" FORM "name=a\n\nx\n--XX--\n", "CR LF");
    refused("--XX \n", "CR LF");
    refused("--XX\rx", "CR LF");
    refused("--XXX\r\n" FORM "name=a\r\n\r\nx" END, "end of the line");
    refused("--XX-\r\n", "end of the line");
    refused("--XX -", "end of the line");
    refused("--XX", "cut off");
    refused("--XX-", "cut off");
    refused("--XX\r", "cut off");
    refused("--XX\r\n" FORM "name=a", "cut off");
    refused("--XX\r\n" FORM "name=a\r\n\r\nx", "cut off");
    refused("--XX\r\n" FORM "name=a\r\n\r\nx\r\n", "cut off");
    refused("--XX\r\n" FORM "name=a\r\n\r\nx\r\n--XX", "cut off");
    refused("--XX\r\n" FORM "name=a\r\n\r\nx\r\n--XX-", "cut off");
    refused("--XX\r\n" FORM "name=a\r\n\r\nx\n--XX--\n", "cut off");
    /* A file is whole only when the boundary behind it is. */
    refused("--XX\r\n" FORM "name=a\r\n\r\nx\r\n--XXYZ\r\n", "end of the line");
    const char *second = "--XX\r\n" FORM "name=a\r\n\r\nx\r\n--XX\r\nbad\r\n\r\n";
    struct story s = {0};
    struct err e;
    assert_int_equal(parse(TYPE, second, strlen(second), 0, 0, &s, &e), -1);
    assert_string_equal(buf_text(&s.text), "<a|->x.");
    buf_done(&s.text);
}

/* The block of this many bytes, with the blank line that ends it. */
static void add_head(struct buf *b, size_t size)
{
    static const char first[] = FORM "name=a\r\nX: ";
    size_t fill = size - (sizeof(first) - 1) - 4;

    buf_add_text(b, first);
    memset(buf_room(b, fill), 'y', fill);
    b->len += fill;
    buf_add_text(b, "\r\n\r\n");
}

static void header_blocks_are_bounded(void **state)
{
    cleanup_buf struct buf b = {0};
    struct story s = {0};
    struct err e;
    (void)state;

    buf_add_text(&b, "--XX\r\n");
    add_head(&b, MULTIPART_HEADER_MAX);
    buf_add_text(&b, "x" END);
    assert_int_equal(parse(TYPE, b.data, b.len, 4000, 8000, &s, &e), 0);
    assert_string_equal(buf_text(&s.text), "<a|->x.");
    buf_done(&s.text);
    b.len = 6;
    add_head(&b, MULTIPART_HEADER_MAX + 1);
    buf_add_text(&b, "x" END);
    refused_of(b.data, b.len, "longer than 8192", 0);
}

static void parts_are_bounded(void **state)
{
    cleanup_buf struct buf b = {0};
    struct story s = {0};
    struct err e;
    (void)state;

    for (int i = 0; i < MULTIPART_PARTS_MAX; i++)
        buf_add_text(&b, "--XX\r\n" FORM "name=a\r\n\r\nx\r\n");
    size_t len = b.len;
    buf_add_text(&b, "--XX--");
    assert_int_equal(parse(TYPE, b.data, b.len, 0, 0, &s, &e), 0);
    assert_int_equal(s.events, 3 * MULTIPART_PARTS_MAX);
    buf_done(&s.text);
    b.len = len;
    buf_add_text(&b, "--XX\r\n" FORM "name=a\r\n\r\nx" END);
    refused_of(b.data, b.len, "at most 1000 parts", MULTIPART_PARTS_MAX);
}

#define TEN "0123456789"
#define SEVENTY TEN TEN TEN TEN TEN TEN TEN

static void boundaries(void **state)
{
    static const char *const good[] = {
        "multipart/form-data; boundary=" SEVENTY,
        "Multipart/Form-Data;charset=utf-8 ; BOUNDARY=\"" SEVENTY "\" ;",
    };
    static const char *const bad[] = {
        "",
        "text/plain",
        "multipart/mixed; boundary=XX",
        "multipart/form-data",
        "multipart/form-data2; boundary=XX",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"XX",
        "multipart/form-data; boundary=\"XX \"",
        "multipart/form-data; boundary=X\xc3\xa9",
        "multipart/form-data; boundary=\"X\\\"X\"",
        "multipart/form-data; boundary=\"X\r\nX\"",
        "multipart/form-data; boundary=X@X",
        "multipart/form-data; boundary=XX; boundary=YY",
        "multipart/form-data; boundary=XX, text/plain",
        "multipart/form-data; boundary=XX YY",
        "multipart/form-data boundary=XX",
        "multipart/form-data; boundary=" SEVENTY "0",
    };
    struct err e;
    (void)state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const char body[] =
            "--" SEVENTY "\r\n" FORM "name=a\r\n\r\n\r\n--" TEN "\r\n--" SEVENTY "--";
        expect_of(good[i], body, sizeof(body) - 1, "<a|->\r\n--" TEN ".");
    }
    expect_of("multipart/form-data; boundary=\"'()+_,-./:=? x\"", "--'()+_,-./:=? x--", 18, "");
    expect_of("multipart/form-data; boundary=----WebKit+/:=?", "------WebKit+/:=?--", 19, "");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        e.text[0] = '\0';
        assert_null(multipart_new(bad[i], &events, NULL, &e));
        assert_non_null(strstr(e.text, "Content-Type"));
    }
}

static void a_callback_stops_it(void **state)
{
    const char *body =
        "--XX\r\n" FORM "name=a\r\n\r\nx\r\n--X\r\n--XX\r\n" FORM "name=b\r\n\r\n\r\ny\r\n--XX--";
    struct story s = {0};
    struct err e;
    (void)state;

    assert_int_equal(parse(TYPE, body, strlen(body), 0, 0, &s, &e), 0);
    int all = s.events;
    assert_int_equal(all, 6);
    for (int i = 1; i <= all; i++) {
        s.stop_at = i;
        strcpy(e.text, "mine");
        assert_int_equal(parse(TYPE, body, strlen(body), 0, 0, &s, &e), -1);
        assert_string_equal(e.text, "mine");
        assert_int_equal(s.events, i);
    }
    /* Nothing comes after that. */
    struct multipart *m = multipart_new(TYPE, &events, &s, &e);
    s.events = 0;
    s.stop_at = 1;
    assert_int_equal(feed(m, body, strlen(body), &e), -1);
    assert_int_equal(feed(m, body, strlen(body), &e), -1);
    assert_int_equal(multipart_finish(m, &e), -1);
    assert_int_equal(s.events, 1);
    multipart_free(m);
    multipart_free(NULL);
    buf_done(&s.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_behind_each_part),
        cmocka_unit_test(fields_and_files),
        cmocka_unit_test(what_is_around_is_left_out),
        cmocka_unit_test(bodies_that_look_like_delimiters),
        cmocka_unit_test(names_as_clients_write_them),
        cmocka_unit_test(headers_that_are_refused),
        cmocka_unit_test(bodies_that_are_refused),
        cmocka_unit_test(header_blocks_are_bounded),
        cmocka_unit_test(parts_are_bounded),
        cmocka_unit_test(boundaries),
        cmocka_unit_test(a_callback_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
