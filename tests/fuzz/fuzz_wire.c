/* The readers of fields and frames, on any bytes. Slices lie within the message; a reader that has
 * failed stays failed. */
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "wire/fields.h"
#include "wire/frame.h"
#include "wire/limits_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first bytes say which fields are read, in which order. */
static void read_fields(const char *data, size_t size, unsigned plan)
{
    struct fields f;
    struct limits l;
    char text[16];
    size_t len;
    bool failed = false;

    fields_init(&f, data, size);
    for (int i = 0; i < 12; i++, plan >>= 3) {
        const char *at = data;
        len = 0;
        switch (plan & 7) {
        case 0:
            fields_get_u8(&f);
            break;
        case 1:
            fields_get_u32(&f);
            break;
        case 2:
            fields_get_u64(&f);
            break;
        case 3:
            limits_get(&f, &l);
            break;
        case 4:
            fields_get_text(&f, text, sizeof(text));
            assert_that(strlen(text) < sizeof(text));
            break;
        default:
            at = fields_get_bytes(&f, &len);
            assert_that(len == 0 || (at >= data && at + len <= data + size));
            break;
        }
        assert_that(f.failed || !failed);
        assert_that(f.left <= size);
        failed = f.failed;
    }
    assert_that(!(fields_end(&f) && failed));
}

static void read_frames(const char *data, size_t size)
{
    static struct frame_reader r;
    struct frame f;
    size_t seen = 0, given = 0;
    int got = 0;

    r.in.len = r.at = 0;
    while (given < size && got == 0) {
        size_t piece = size - given < 50 ? size - given : 50;
        buf_add(&r.in, data + given, piece);
        given += piece;
        while ((got = frame_next(&r, &f)) == 1) {
            assert_that(memcmp(data + seen + FRAME_HEADER, f.data, f.len) == 0);
            seen += FRAME_HEADER + f.len;
            assert_that(seen <= size);
            read_fields(f.data, f.len, f.type * 2654435761u);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned plan;

    if (size < sizeof(plan))
        return 0;
    memcpy(&plan, data, sizeof(plan));
    read_fields((const char *)data + sizeof(plan), size - sizeof(plan), plan);
    read_frames((const char *)data, size);
    return 0;
}
