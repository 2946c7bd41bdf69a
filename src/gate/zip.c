/* zip: see zip.h. Runs in the gate, on libarchive, which only writes here. */
#include "gate/zip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/fd.h"
#include "session/utf8.h"

#define PIECE (128u << 10)
/* The lowest level: the network is rarely faster, and a zip of pictures gains nothing. */
#define OPTIONS "zip:compression=deflate,zip:compression-level=1,zip:hdrcharset=UTF-8"
#define MTIME_MAX UINT32_MAX /* what a zip can hold, in seconds */

struct zip {
    struct archive *writer;
    struct buf out;
    int fd; /* of the present entry; -1: there is none */
    uint64_t at, size;
    char piece[PIECE];
};

static int failed(const struct zip *z, struct err *e)
{
    const char *why = archive_error_string(z->writer);

    return err_set(e, 0, "cannot write the archive: %s", why ? why : "libarchive does not say why");
}

static la_ssize_t add_piece(struct archive *writer, void *ctx, const void *data, size_t len)
{
    struct zip *z = ctx;
    (void)writer;

    buf_add(&z->out, data, len);
    return (la_ssize_t)len;
}

struct zip *zip_new(void)
{
    struct zip *z = xcalloc(1, sizeof(*z));

    z->fd = -1;
    z->writer = archive_write_new();
    if (!z->writer || archive_write_set_format_zip(z->writer) != ARCHIVE_OK ||
        archive_write_set_options(z->writer, OPTIONS) != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(z->writer, 0) != ARCHIVE_OK ||
        archive_write_open(z->writer, z, NULL, add_piece, NULL) != ARCHIVE_OK)
        bug("libarchive cannot write zip files");
    return z;
}

void zip_free(struct zip *z)
{
    if (!z)
        return;
    /* It finishes what was left in the middle, into a buffer that nobody reads: told to give up instead
     * (archive_write_fail) it would forget the compressor, a quarter of a megabyte. */
    archive_write_free(z->writer);
    fd_close(&z->fd);
    buf_done(&z->out);
    free(z);
}

struct buf *zip_out(struct zip *z)
{
    return &z->out;
}

/* ---- names ---- */

/* Could this character of a name mean something else to whoever unpacks it? A backslash is a separator on
 * Windows, and "C:" a drive there: "..\x" and "C:\x" would be files outside. */
static bool is_unsafe(const char *path, size_t i)
{
    unsigned char c = (unsigned char)path[i];
    char first = path[0] | 0x20;

    return c < 0x20 || c == 0x7f || c == '\\' ||
           (c == ':' && i == 1 && first >= 'a' && first <= 'z');
}

static void put_name(struct buf *b, const char *path)
{
    size_t len = strlen(path), n;

    for (size_t i = 0; i < len; i += n) {
        bool whole = utf8_next(path + i, len - i, &n) == UTF8_WHOLE;
        if (whole && !is_unsafe(path, i)) {
            buf_add(b, path + i, n);
            continue;
        }
        for (size_t k = 0; k < n; k++)
            buf_add_fmt(b, "%%%02X", (unsigned char)path[i + k]);
    }
}

/* ---- entries ---- */

static int put_header(struct zip *z, const char *path, uint64_t mtime_ns, struct err *e)
{
    uint64_t mtime = mtime_ns / 1000000000;
    cleanup_buf struct buf name = {0};
    struct archive_entry *entry = archive_entry_new2(z->writer);

    if (!entry)
        bug("out of memory (an entry)");
    put_name(&name, path);
    archive_entry_set_pathname_utf8(entry, buf_text(&name));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)z->size);
    archive_entry_set_mtime(entry, (time_t)(mtime < MTIME_MAX ? mtime : MTIME_MAX), 0);
    int r = archive_write_header(z->writer, entry);
    archive_entry_free(entry);
    return r == ARCHIVE_OK ? 0 : failed(z, e);
}

int zip_file(struct zip *z, const char *path, int fd, uint64_t size, uint64_t mtime_ns,
             struct err *e)
{
    assert_that(z->fd < 0);
    z->fd = fd;
    z->at = 0;
    z->size = size;
    if (size <= INT64_MAX && put_header(z, path, mtime_ns, e) == 0)
        return 0;
    if (size > INT64_MAX)
        err_set(e, EFBIG, "cannot archive a file of such a size");
    fd_close(&z->fd);
    return -1;
}

/* The next piece of the file into z->piece: its length, or -1. */
static ssize_t read_piece(struct zip *z)
{
    size_t want = z->size - z->at < PIECE ? (size_t)(z->size - z->at) : PIECE;
    ssize_t n;

    if (want == 0)
        return 0;
    do
        n = pread(z->fd, z->piece, want, (off_t)z->at);
    while (n < 0 && errno == EINTR);
    if (n != 0)
        return n;
    memset(z->piece, 0, want); /* it has become shorter */
    return (ssize_t)want;
}

int zip_step(struct zip *z, struct err *e)
{
    assert_that(z->fd >= 0);
    ssize_t n = read_piece(z);
    if (n < 0)
        return err_set(e, errno, "cannot read a file for the archive");
    if (n > 0 && archive_write_data(z->writer, z->piece, (size_t)n) != n)
        return failed(z, e);
    z->at += (uint64_t)n;
    if (z->at < z->size)
        return 1;
    fd_close(&z->fd);
    return archive_write_finish_entry(z->writer) == ARCHIVE_OK ? 0 : failed(z, e);
}

int zip_close(struct zip *z, struct err *e)
{
    assert_that(z->fd < 0);
    return archive_write_close(z->writer) == ARCHIVE_OK ? 0 : failed(z, e);
}
