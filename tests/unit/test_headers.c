/* Header values and paths from clients, sound and hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gate/headers.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define LONGEST_PART FIFTY FIFTY FIFTY FIFTY FIFTY "12345"

static void ranges(void **state)
{
    static const struct {
        const char *value;
        uint64_t size;
        int result;
        uint64_t first, last;
    } cases[] = {
        {"bytes=0-0", 10, 1, 0, 0},
        {"bytes=2-5", 10, 1, 2, 5},
        {"bytes=2-", 10, 1, 2, 9},
        {"bytes=-3", 10, 1, 7, 9},
        {"bytes=-10", 10, 1, 0, 9},
        {"bytes=-11", 10, 1, 0, 9},
        {"bytes=9-9", 10, 1, 9, 9},
        {"bytes=5-100", 10, 1, 5, 9},
        {"BYTES=1-2", 10, 1, 1, 2},
        {" bytes= 1-2 ", 10, 1, 1, 2},
        {"bytes=007-0008", 10, 1, 7, 8},
        {"bytes=0-18446744073709551615", 10, 1, 0, 9},
        {"bytes=0-99999999999999999999999", 10, 1, 0, 9},
        {"bytes=-99999999999999999999999", 10, 1, 0, 9},
        {"bytes=4294967296-", UINT64_C(1) << 33, 1, UINT64_C(1) << 32, (UINT64_C(1) << 33) - 1},
        /* not satisfiable */
        {"bytes=10-", 10, -1, 0, 0},
        {"bytes=10-20", 10, -1, 0, 0},
        {"bytes=-0", 10, -1, 0, 0},
        {"bytes=18446744073709551616-", 10, -1, 0, 0},
        {"bytes=18446744073709551616-18446744073709551617", 10, -1, 0, 0},
        /* not for us */
        {"bytes=5-2", 10, 0, 0, 0},
        {"bytes=0-1,3-4", 10, 0, 0, 0},
        {"bytes=-", 10, 0, 0, 0},
        {"bytes=", 10, 0, 0, 0},
        {"bytes", 10, 0, 0, 0},
        {"", 10, 0, 0, 0},
        {"bytes=a-b", 10, 0, 0, 0},
        {"bytes=1-2x", 10, 0, 0, 0},
        {"bytes=--2", 10, 0, 0, 0},
        {"bytes=+1-2", 10, 0, 0, 0},
        {"bytes=1", 10, 0, 0, 0},
        {"bytes =1-2", 10, 0, 0, 0},
        {"lines=1-2", 10, 0, 0, 0},
        /* an empty file */
        {"bytes=0-", 0, 0, 0, 0},
        {"bytes=-5", 0, 0, 0, 0},
        {"bytes=-0", 0, 0, 0, 0},
    };
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t first = 77, last = 78;
        int r = header_range(cases[i].value, cases[i].size, &first, &last);
        if (r != cases[i].result)
            fail_msg("%s: %d", cases[i].value, r);
        assert_true(first == (r == 1 ? cases[i].first : 77));
        assert_true(last == (r == 1 ? cases[i].last : 78));
    }
}

static void paths_are_decoded_once(void **state)
{
    static const struct {
        const char *raw, *path;
    } good[] = {
        {"a.csv", "a.csv"},
        {"dir/plot%201.png", "dir/plot 1.png"},
        {"a%2Fb", "a/b"},
        {"a%252Fb", "a%2Fb"},
        {"%2e%2e%2e", "..."},
        {"a+b", "a+b"},
        {"%e2%82%ac", "\xe2\x82\xac"},
        {"%FF%0a\xfe", "\xff\n\xfe"},
        {"..a/.b/c..", "..a/.b/c.."},
        {"a\\b", "a\\b"},
        {LONGEST_PART "/b", LONGEST_PART "/b"},
    };
    static const struct {
        const char *raw, *part;
    } bad[] = {
        {"", "empty"},
        {"/etc/passwd", "relative"},
        {"%2fetc/passwd", "relative"},
        {"a//b", "empty part"},
        {"a/", "empty part"},
        {".", "\"..\""},
        {"..", "\"..\""},
        {"a/../b", "\"..\""},
        {"a/%2e%2e/b", "\"..\""},
        {"a/.%2E", "\"..\""},
        {"%2e%2e%2f%2e%2e%2fetc", "\"..\""},
        {"./a", "\"..\""},
        {"a%00b", "NUL"},
        {"a%", "hexadecimal"},
        {"a%2", "hexadecimal"},
        {"%zz", "hexadecimal"},
        {"%-1", "hexadecimal"},
        {LONGEST_PART "6", "255 bytes"},
    };
    struct err e;
    (void)state;

    for (size_t i = 0; i < COUNT(good); i++) {
        char *path = NULL;
        assert_int_equal(header_file_path(good[i].raw, &path, &e), 0);
        assert_string_equal(path, good[i].path);
        free(path);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        char *path = NULL;
        assert_int_equal(header_file_path(bad[i].raw, &path, &e), -1);
        assert_null(path);
        if (!strstr(e.text, bad[i].part))
            fail_msg("%s: %s", bad[i].raw, e.text);
    }
    assert_int_equal(header_check_path("a\0b", 3, &e), -1);
    assert_int_equal(header_check_path("a/b\0", 3, &e), 0);
    assert_int_equal(header_check_path("a/", 1, &e), 0);
}

static void paths_are_bounded(void **state)
{
    cleanup_buf struct buf b = {0};
    struct err e;
    char *path;
    (void)state;

    for (int i = 0; i < 64; i++)
        buf_add_text(&b, i ? "/a" : "a");
    assert_int_equal(header_check_path(b.data, b.len, &e), 0);
    buf_add_text(&b, "/a");
    assert_int_equal(header_check_path(b.data, b.len, &e), -1);
    assert_non_null(strstr(e.text, "64 parts"));

    b.len = 0;
    for (int i = 0; i < 16; i++)
        buf_add_text(&b, i ? "/" LONGEST_PART : LONGEST_PART); /* 4095 */
    assert_int_equal(header_check_path(b.data, b.len, &e), 0);
    b.len = 0;
    for (int i = 0; i < 17; i++) /* 4096 */
        buf_add_fmt(&b, "%s%0*d", i ? "/" : "", 240, i);
    assert_int_equal(header_check_path(b.data, b.len, &e), -1);
    assert_non_null(strstr(e.text, "4095 bytes"));

    b.len = 0;
    for (int i = 0; i < 3 * 4095 + 1; i++)
        buf_add_text(&b, "%");
    assert_int_equal(header_file_path(buf_text(&b), &path, &e), -1);
    assert_non_null(strstr(e.text, "4095 bytes"));
}

static void dispositions(void **state)
{
    static const struct {
        const char *path, *ascii, *extended;
    } cases[] = {
        {"a.csv", "a.csv", "a.csv"},
        {"dir/sub/a b.csv", "a b.csv", "a%20b.csv"},
        {"\xe2\x82\xac.txt", "_.txt", "%E2%82%AC.txt"},
        {"a\"; x=\"y", "a_; x=_y", "a%22%3B%20x%3D%22y"},
        {"a\\", "a_", "a%5C"},
        {"a\r\nX: y", "a__X: y", "a%0D%0AX%3A%20y"},
        {"100%22", "100_22", "100%2522"},
        {"\xff\x7f", "__", "%EF%BF%BD%7F"},
        {"it's(1)*", "it's(1)*", "it%27s%281%29%2A"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        cleanup_buf struct buf b = {0};
        char expected[256];
        snprintf(expected, sizeof(expected), "attachment; filename=\"%s\"; filename*=UTF-8''%s",
                 cases[i].ascii, cases[i].extended);
        header_disposition(&b, cases[i].path);
        assert_string_equal(buf_text(&b), expected);
    }
}

#define TEXT "; charset=utf-8"

static void media_types(void **state)
{
    static const struct {
        const char *path, *type;
    } cases[] = {
        {"a.csv", "text/csv" TEXT},
        {"dir.png/A.CSV", "text/csv" TEXT},
        {"a.tsv", "text/tab-separated-values" TEXT},
        {"a.json", "application/json"},
        {"a.ndjson", "application/x-ndjson"},
        {"a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
        {"a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
        {"a.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
        {"a.ods", "application/vnd.oasis.opendocument.spreadsheet"},
        {"a.xls", "application/vnd.ms-excel"},
        {"a.pdf", "application/pdf"},
        {"a.png", "image/png"},
        {"a.jpg", "image/jpeg"},
        {"a.gif", "image/gif"},
        {"a.svg", "image/svg+xml"},
        {"a.webp", "image/webp"},
        {"a.html", "text/html" TEXT},
        {"a.md", "text/markdown" TEXT},
        {"a.txt", "text/plain" TEXT},
        {"a.py", "text/x-python" TEXT},
        {"A.IPYNB", "application/x-ipynb+json"},
        {"a.tar.gz", "application/gzip"},
        {"a.parquet", "application/vnd.apache.parquet"},
        {"a.feather", "application/vnd.apache.arrow.file"},
        {"a.sqlite3", "application/vnd.sqlite3"},
        {"a.mp4", "video/mp4"},
        {"a.wav", "audio/wav"},
        {"a.xml", "application/xml"},
        {"a.unknown", "application/octet-stream"},
        {"a.csvcsvcsv", "application/octet-stream"},
        {"a.csv.", "application/octet-stream"},
        {"a.", "application/octet-stream"},
        {"csv", "application/octet-stream"},
        {".csv", "application/octet-stream"},
        {"dir/.csv", "application/octet-stream"},
        {"dir.csv/a", "application/octet-stream"},
        {"", "application/octet-stream"},
        {"a.c\xc3\xa9", "application/octet-stream"},
    };
    /* All of the table: it must be in order to be found. */
    static const char *const known[] = {
        "7z",      "aac",     "arrow", "arrows", "avi",    "avif",    "avro",  "bib",     "bmp",
        "bz2",     "c",       "cfg",   "conf",   "cpp",    "css",     "csv",   "db",      "diff",
        "doc",     "docx",    "eml",   "eps",    "epub",   "feather", "flac",  "geojson", "gif",
        "gz",      "h",       "h5",    "hdf",    "hdf5",   "htm",     "html",  "ico",     "ics",
        "ini",     "ipynb",   "jpeg",  "jpg",    "js",     "json",    "jsonl", "kml",     "log",
        "m4a",     "md",      "mjs",   "mkv",    "mov",    "mp3",     "mp4",   "mpeg",    "nc",
        "ndjson",  "npy",     "npz",   "odp",    "ods",    "odt",     "ogg",   "opus",    "orc",
        "otf",     "parquet", "patch", "pdf",    "pickle", "pkl",     "png",   "ppt",     "pptx",
        "ps",      "py",      "r",     "rar",    "rst",    "rtf",     "sh",    "sql",     "sqlite",
        "sqlite3", "svg",     "tab",   "tar",    "tex",    "tgz",     "tif",   "tiff",    "toml",
        "tsv",     "ttf",     "txt",   "wasm",   "wav",    "webm",    "webp",  "woff",    "woff2",
        "xhtml",   "xls",     "xlsm",  "xlsx",   "xml",    "xsd",     "xsl",   "xz",      "yaml",
        "yml",     "zip",     "zst",
    };
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (strcmp(header_media_type(cases[i].path), cases[i].type) != 0)
            fail_msg("%s: %s", cases[i].path, header_media_type(cases[i].path));
    }
    for (size_t i = 0; i < COUNT(known); i++) {
        char path[32];
        snprintf(path, sizeof(path), "a.%s", known[i]);
        if (strcmp(header_media_type(path), "application/octet-stream") == 0)
            fail_msg("%s is not found", path);
    }
}

static char *const own_hosts[] = {"retort.example.org", "Other.", NULL};

static void hosts_that_are_ours(void **state)
{
    char *const none[] = {NULL};
    static const char *const good[] = {
        "localhost",
        "localhost:8722",
        "LocalHost",
        "localhost.",
        "localhost.:80",
        "127.0.0.1",
        "127.0.0.1:8722",
        "192.168.1.7",
        "[::1]",
        "[::1]:8722",
        "[FE80::1]:65535",
        "[::ffff:127.0.0.1]",
        "retort.example.org",
        "RETORT.example.ORG:443",
        "retort.example.org.",
        "other:1",
    };
    (void)state;

    for (size_t i = 0; i < COUNT(good); i++) {
        if (!header_host_ok(good[i], own_hosts))
            fail_msg("%s is refused", good[i]);
    }
    assert_true(header_host_ok("localhost", none));
}

static void hosts_that_are_not(void **state)
{
    char *const none[] = {NULL};
    static const char *const bad[] = {
        "",
        "evil.example",
        "evil.example:8722",
        "localhost.evil.example",
        "localhost:8722.evil.example",
        "evil-localhost",
        "127.0.0.1.evil.example",
        "127.0.0.1.",
        "evil.retort.example.org",
        "retort.example.or",
        "oth",
        "retort.example.org.evil",
        "retort.example.org..",
        ".",
        ".localhost",
        "user@localhost",
        "localhost@evil.example",
        "localhost:8722@evil.example",
        "localhost/",
        "localhost/@evil",
        "localhost#",
        "localhost?",
        "localhost\\",
        "localhost ",
        " localhost",
        "localhost:",
        "localhost:x",
        "localhost:-1",
        "localhost:65536",
        "localhost:000080",
        "localhost:80:80",
        "localhost,evil.example",
        "loc%61lhost",
        "127.1",
        "0x7f.0.0.1",
        "2130706433",
        "127.0.0.01",
        "256.0.0.1",
        "::1",
        "[::1",
        "[::1]x",
        "[::1]:",
        "[::1%25eth0]",
        "[127.0.0.1]",
        "[localhost]",
        "[]",
        "]",
        "l\303\266calhost",
        "loca\xc4\xbchost",
    };
    (void)state;

    for (size_t i = 0; i < COUNT(bad); i++) {
        if (header_host_ok(bad[i], own_hosts))
            fail_msg("%s is taken", bad[i]);
    }
    assert_false(header_host_ok(NULL, own_hosts));
    assert_false(header_host_ok("retort.example.org", none));
}

static void origins(void **state)
{
    char *const ours[] = {"https://chat.example.org", "http://dev:3000",
                          "chrome-extension://abcdef", NULL};
    static const struct {
        const char *origin, *host;
        bool ok;
    } cases[] = {
        {"http://localhost:8722", "localhost:8722", true},
        {"HTTP://LOCALHOST:8722", "localhost:8722", true},
        {"https://localhost:8722", "localhost:8722", true},
        {"http://[::1]:8722", "[::1]:8722", true},
        {"http://127.0.0.1:8722", "127.0.0.1:8722", true},
        {"https://retort.example.org", "retort.example.org", true},
        {"https://retort.example.org", "retort.example.org:443", true},
        {"http://retort.example.org", "retort.example.org:80", true},
        {"http://localhost", "localhost", true},
        /* other pages */
        {"http://localhost:8723", "localhost:8722", false},
        {"http://localhost", "localhost:8722", false},
        {"http://localhost:8722", "localhost", false},
        {"http://retort.example.org", "retort.example.org:443", false},
        {"http://127.0.0.1:8722", "localhost:8722", false},
        {"http://localhost.evil.com", "localhost", false},
        {"http://localhost.evil.com:8722", "localhost:8722", false},
        {"http://localhost:8722.evil.com", "localhost:8722", false},
        {"http://localhost:8722@evil", "localhost:8722", false},
        {"http://evil@localhost:8722", "localhost:8722", false},
        {"http://localhost:8722/", "localhost:8722", false},
        {"http://localhost:8722#evil", "localhost:8722", false},
        {"http://localhost:8722 http://evil", "localhost:8722", false},
        {"http://evil http://localhost:8722", "localhost:8722", false},
        {"http:localhost:8722", "localhost:8722", false},
        {"http:///localhost:8722", "localhost:8722", false},
        {"//localhost:8722", "localhost:8722", false},
        {"://localhost:8722", "localhost:8722", false},
        {"localhost:8722", "localhost:8722", false},
        {"file://localhost:8722", "localhost:8722", false},
        {"ftp://localhost", "localhost", false},
        {"http://", "", false},
        {"http://", NULL, false},
        {"null", "null", false},
        {"null", "localhost", false},
        {"", "localhost", false},
        {NULL, "localhost", false},
        {"http://localhost", NULL, false},
        {"http://evil@evil", "evil@evil", false},
        {"http://evil..", "evil..", false},
        /* pages that are named */
        {"https://chat.example.org", "localhost:8722", true},
        {"https://Chat.Example.org:443", "localhost:8722", true},
        {"https://chat.example.org", NULL, true},
        {"http://dev:3000", "localhost:8722", true},
        {"chrome-extension://abcdef", "localhost:8722", true},
        {"http://chat.example.org", "localhost:8722", false},
        {"http://chat.example.org:443", "localhost:8722", false},
        {"https://chat.example.org:8443", "localhost:8722", false},
        {"https://evil.chat.example.org", "localhost:8722", false},
        {"https://chat.example.org.evil", "localhost:8722", false},
        {"http://dev", "localhost:8722", false},
        {"chrome-extension://abcdefg", "localhost:8722", false},
        {"chrome-extension://abcdef:80", "localhost:8722", false},
    };
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (header_origin_ok(cases[i].origin, cases[i].host, ours) != cases[i].ok)
            fail_msg("%s at %s", cases[i].origin, cases[i].host);
    }
}

static void events(void **state)
{
    static const char *const wanted[] = {
        "text/event-stream",
        "Text/Event-Stream",
        "application/json, text/event-stream",
        "text/event-stream;q=0.1",
        "text/event-stream; charset=utf-8; q=0.001, */*",
        ",, text/event-stream ,",
        "a/b;x=\",\"; q=0,\ttext/event-stream",
        "text/event-stream;q=0, text/event-stream",
    };
    static const char *const not_wanted[] = {
        "",
        "*/*",
        "text/*",
        "application/json",
        "text/event-stream;q=0",
        "text/event-stream; Q=0.000",
        "text/event-stream;q=x",
        "text/event-stream;q=-1",
        "text/event-stream;q=\"1\"",
        "text/event-stream;q",
        "text/event-streams",
        "text/event-stream x",
        "a/b;x=\"text/event-stream\"",
        "a/b;x=\", text/event-stream, \"",
        "a/b;x=\", text/event-stream",
    };
    (void)state;

    for (size_t i = 0; i < COUNT(wanted); i++) {
        if (!header_wants_events(wanted[i]))
            fail_msg("%s", wanted[i]);
    }
    for (size_t i = 0; i < COUNT(not_wanted); i++) {
        if (header_wants_events(not_wanted[i]))
            fail_msg("%s", not_wanted[i]);
    }
    assert_false(header_wants_events(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),
        cmocka_unit_test(paths_are_decoded_once),
        cmocka_unit_test(paths_are_bounded),
        cmocka_unit_test(dispositions),
        cmocka_unit_test(media_types),
        cmocka_unit_test(hosts_that_are_ours),
        cmocka_unit_test(hosts_that_are_not),
        cmocka_unit_test(origins),
        cmocka_unit_test(events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
