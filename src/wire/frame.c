/* frame: see frame.h. */
#include "wire/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "wire/fields.h"

#define READ_SIZE (64u << 10)

void frame_reader_done(struct frame_reader *r)
{
    buf_done(&r->in);
}

int frame_fill(struct frame_reader *r, int fd)
{
    ssize_t n;

    buf_drop(&r->in, r->at);
    r->at = 0;
    /* One big frame must not keep its memory for the rest of a session. */
    if (r->in.len == 0 && r->in.cap > 4 * READ_SIZE)
        buf_done(&r->in);
    do
        n = read(fd, buf_room(&r->in, READ_SIZE), READ_SIZE);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return (int)n;
    r->in.len += (size_t)n;
    return 1;
}

int frame_next(struct frame_reader *r, struct frame *ret)
{
    uint32_t header[2];

    size_t have = r->in.len - r->at;
    if (have < FRAME_HEADER)
        return 0;
    const char *start = r->in.data + r->at;
    memcpy(header, start, FRAME_HEADER);
    uint32_t len = le32toh(header[0]);
    if (len > FRAME_MAX)
        return -1;
    if (have - FRAME_HEADER < len)
        return 0;
    *ret = (struct frame){.type = le32toh(header[1]), .data = start + FRAME_HEADER, .len = len};
    r->at += FRAME_HEADER + len;
    return 1;
}

void frame_begin(struct buf *b, uint32_t type)
{
    assert_that(b->len == 0);
    fields_put_u32(b, 0);
    fields_put_u32(b, type);
}

void frame_seal(struct buf *b)
{
    assert_that(b->len >= FRAME_HEADER && b->len - FRAME_HEADER <= UINT32_MAX);
    uint32_t len = htole32((uint32_t)(b->len - FRAME_HEADER));
    memcpy(b->data, &len, 4);
}
