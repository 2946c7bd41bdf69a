/* fields: see fields.h. */
#include "wire/fields.h"

#include <endian.h>
#include <string.h>

#include "base/err.h"

void fields_put_u8(struct buf *b, uint8_t v)
{
    buf_add(b, &v, 1);
}

void fields_put_u32(struct buf *b, uint32_t v)
{
    v = htole32(v);
    buf_add(b, &v, 4);
}

void fields_put_u64(struct buf *b, uint64_t v)
{
    v = htole64(v);
    buf_add(b, &v, 8);
}

void fields_put_bytes(struct buf *b, const void *data, size_t len)
{
    assert_that(len <= UINT32_MAX);
    fields_put_u32(b, (uint32_t)len);
    buf_add(b, data, len);
}

void fields_put_text(struct buf *b, const char *text)
{
    fields_put_bytes(b, text, strlen(text));
}

void fields_init(struct fields *f, const void *data, size_t len)
{
    *f = (struct fields){.at = data, .left = len};
}

/* The next n bytes, or NULL once anything failed. */
static const char *take(struct fields *f, size_t n)
{
    if (f->failed || n > f->left) {
        f->failed = true;
        return NULL;
    }
    const char *at = f->at;
    f->at += n;
    f->left -= n;
    return at;
}

uint8_t fields_get_u8(struct fields *f)
{
    const char *at = take(f, 1);
    return at ? (uint8_t)*at : 0;
}

uint32_t fields_get_u32(struct fields *f)
{
    uint32_t v = 0;
    const char *at = take(f, 4);
    if (at)
        memcpy(&v, at, 4);
    return le32toh(v);
}

uint64_t fields_get_u64(struct fields *f)
{
    uint64_t v = 0;
    const char *at = take(f, 8);
    if (at)
        memcpy(&v, at, 8);
    return le64toh(v);
}

const char *fields_get_bytes(struct fields *f, size_t *ret_len)
{
    uint32_t len = fields_get_u32(f);
    const char *at = take(f, len);

    *ret_len = at ? len : 0;
    return at ? at : "";
}

void fields_get_text(struct fields *f, char *ret, size_t size)
{
    size_t len;
    const char *at = fields_get_bytes(f, &len);

    ret[0] = '\0';
    if (len >= size || memchr(at, '\0', len)) {
        f->failed = true;
        return;
    }
    memcpy(ret, at, len);
    ret[len] = '\0';
}

bool fields_end(const struct fields *f)
{
    return !f->failed && f->left == 0;
}
