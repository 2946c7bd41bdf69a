/* A zip made piece by piece, read back by libarchive as a stream and by Python through its list of names:
 * the two ways of reading a zip, which must agree. */
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"

#include "gate/zip.h"

#define MTIME_NS 1700000000000000000u

static struct zip *z;
static struct buf sent; /* what was drained */

static int setup(void **state)
{
    (void)state;
    z = zip_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    zip_free(z);
    buf_done(&sent);
    return 0;
}

static int file_of(const char *data, size_t len)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    assert_int_equal(fd_write_all(fd, data, len), 0);
    return fd;
}

static void begin(const char *path, int fd, uint64_t size)
{
    struct err e = {0};

    if (zip_file(z, path, fd, size, MTIME_NS, &e) < 0)
        fail_msg("%s: %s", path, e.text);
}

/* One step, and what it made is taken. */
static bool step(void)
{
    struct buf *out = zip_out(z);
    struct err e = {0};
    int r = zip_step(z, &e);

    if (r < 0)
        fail_msg("%s", e.text);
    assert_true(out->len < (256u << 10));
    buf_add(&sent, out->data, out->len);
    buf_drop(out, out->len);
    return r == 1;
}

static void put(const char *path, const char *data, size_t len)
{
    begin(path, file_of(data, len), len);
    while (step())
        ;
}

static void finish(void)
{
    struct err e = {0};

    assert_int_equal(zip_close(z, &e), 0);
    buf_add(&sent, zip_out(z)->data, zip_out(z)->len);
}

/* As a stream. */
static void assert_next(struct archive *r, const char *path, const char *data, size_t len)
{
    struct archive_entry *entry;
    char *got = malloc(len + 2);

    assert_int_equal(archive_read_next_header(r, &entry), ARCHIVE_OK);
    assert_string_equal(archive_entry_pathname_utf8(entry), path);
    assert_int_equal(archive_entry_mtime(entry), MTIME_NS / 1000000000);
    assert_int_equal(archive_read_data(r, got, len + 2), len);
    assert_memory_equal(got, data, len);
    free(got);
}

static struct archive *reader(void)
{
    struct archive *r = archive_read_new();

    archive_read_support_format_zip_streamable(r);
    assert_int_equal(archive_read_open_memory(r, sent.data, sent.len), ARCHIVE_OK);
    return r;
}

static void assert_end(struct archive *r)
{
    struct archive_entry *entry;

    assert_int_equal(archive_read_next_header(r, &entry), ARCHIVE_EOF);
    archive_read_free(r);
}

/* Through the list at its end, and with every checksum: `expression` is about z, a ZipFile. */
static void assert_python(const char *expression)
{
    char path[] = "/tmp/retort-test-zip-XXXXXX", command[1024];
    cleanup_fd int fd = mkstemp(path);

    assert_int_equal(fd_write_all(fd, sent.data, sent.len), 0);
    snprintf(command, sizeof(command),
             "/usr/bin/python3 -c 'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); "
             "assert z.testzip() is None; assert %s, z.infolist()' %s",
             expression, path);
    int status = system(command);
    unlink(path);
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- tests ---- */

static void files_come_back(void **state)
{
    static char large[1 << 20];
    (void)state;

    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i * i >> 7);
    put("a.txt", "hello", 5);
    put("dir/empty", "", 0);
    put("dir/large.bin", large, sizeof(large));
    finish();
    assert_true(sent.len < sizeof(large));
    struct archive *r = reader();
    assert_next(r, "a.txt", "hello", 5);
    assert_next(r, "dir/empty", "", 0);
    assert_next(r, "dir/large.bin", large, sizeof(large));
    assert_end(r);
    assert_python("z.namelist() == [\"a.txt\", \"dir/empty\", \"dir/large.bin\"] and "
                  "z.read(\"a.txt\") == b\"hello\" and "
                  "z.getinfo(\"a.txt\").external_attr >> 16 == 0o100644");
}

static void no_files_are_an_archive_too(void **state)
{
    (void)state;
    finish();
    assert_python("z.namelist() == []");
}

/* More than a piece is never held. */
static void a_large_file_goes_in_pieces(void **state)
{
    int fd = memfd_create("large", MFD_CLOEXEC), steps = 1;
    (void)state;

    assert_int_equal(ftruncate(fd, 64 << 20), 0);
    begin("zeros", fd, 64 << 20);
    while (step())
        steps++;
    assert_int_equal(steps, 512);
    finish();
    assert_python("z.getinfo(\"zeros\").file_size == 64 << 20");
}

/* The whole of one takes half a minute: that its beginning is of the other form has to do. */
static void sizes_over_4_gib_have_the_form_for_them(void **state)
{
    (void)state;

    put("small", "x", 1);
    assert_int_equal(sent.data[4], 20); /* what a reader must know: version 2.0 */
    sent.len = 0;
    begin("huge", file_of("x", 1), 5ull << 30);
    assert_true(step());
    assert_int_equal(sent.data[4], 45); /* 4.5: sizes of 64 bits */
}

static void a_file_that_grows_is_cut(void **state)
{
    int fd = file_of("hello", 5);
    (void)state;

    begin("a", fd, 5);
    assert_int_equal(pwrite(fd, "more", 4, 5), 4);
    while (step())
        ;
    put("b", "x", 1);
    finish();
    struct archive *r = reader();
    assert_next(r, "a", "hello", 5);
    assert_next(r, "b", "x", 1);
    assert_end(r);
    assert_python("z.read(\"a\") == b\"hello\" and z.read(\"b\") == b\"x\"");
}

static void a_file_that_shrinks_is_filled_up(void **state)
{
    static char expected[400 << 10];
    int fd = memfd_create("file", MFD_CLOEXEC);
    (void)state;

    memset(expected, 'x', sizeof(expected));
    assert_int_equal(fd_write_all(fd, expected, sizeof(expected)), 0);
    begin("a", fd, sizeof(expected));
    assert_true(step());
    assert_int_equal(ftruncate(fd, 200 << 10), 0);
    memset(expected + (200 << 10), 0, sizeof(expected) - (200 << 10));
    while (step())
        ;
    put("b", "x", 1);
    finish();
    struct archive *r = reader();
    assert_next(r, "a", expected, sizeof(expected));
    assert_next(r, "b", "x", 1);
    assert_end(r);
    assert_python("len(z.read(\"a\")) == 400 << 10 and z.read(\"b\") == b\"x\"");
}

static void names_are_utf8_and_harmless(void **state)
{
    static const char *const names[][2] = {
        {"d\xC3\xA9j\xC3\xA0/\xE6\x97\xA5.txt", "d\xC3\xA9j\xC3\xA0/\xE6\x97\xA5.txt"},
        {"bad \xFF\xE2\x82 bytes", "bad %FF%E2%82 bytes"},
        {"..\\evil", "..%5Cevil"},
        {"C:evil", "C%3Aevil"},
        {"12:30 50%", "12:30 50%"},
        {"line\nbreak\x1b[m\x7f", "line%0Abreak%1B[m%7F"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        put(names[i][0], "x", 1);
    finish();
    /* It was written in the C locale, as the gate does; this is for libarchive's reading. */
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    struct archive *r = reader();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_next(r, names[i][1], "x", 1);
    assert_end(r);
    setlocale(LC_CTYPE, "C");
    assert_python("z.namelist()[0] == \"d\\u00e9j\\u00e0/\\u65e5.txt\"");
}

static void times_that_a_zip_has_no_room_for_are_bounded(void **state)
{
    struct err e = {0};
    (void)state;

    assert_int_equal(zip_file(z, "a", file_of("x", 1), 1, UINT64_MAX, &e), 0);
    assert_false(step());
    assert_int_equal(zip_file(z, "b", file_of("x", 1), 1, 0, &e), 0);
    assert_false(step());
    finish();
    assert_python(
        "z.getinfo(\"a\").date_time[0] == 2106 and z.getinfo(\"b\").date_time[0] == 1980");
}

static void what_cannot_be_read_is_an_error(void **state)
{
    struct err e = {0};
    int fd = open("/", O_RDONLY | O_CLOEXEC);
    (void)state;

    begin("a", fd, 5);
    assert_int_equal(zip_step(z, &e), -1);
    assert_non_null(strstr(e.text, "cannot read a file"));
}

static void descriptors_are_closed(void **state)
{
    struct err e = {0};
    int fd = file_of("x", 1), other = file_of("x", 1);
    (void)state;

    begin("a", fd, 1);
    assert_false(step());
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(zip_file(z, "b", other, UINT64_MAX, 0, &e), -1);
    assert_int_equal(fcntl(other, F_GETFD), -1);
    fd = file_of("x", 1);
    begin("c", fd, 1);
    zip_free(z); /* in the middle of it */
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    z = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(no_files_are_an_archive_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_file_goes_in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_over_4_gib_have_the_form_for_them, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_grows_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_is_filled_up, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_utf8_and_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(times_that_a_zip_has_no_room_for_are_bounded, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(descriptors_are_closed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
