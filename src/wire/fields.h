/* fields: how values lie in a message.
 *
 * Little-endian integers and length-prefixed bytes, one after the other; the message's type says
 * which. The reader is for hostile bytes: it never reads past the end, it fails once and stays
 * failed, so callers read all the fields and look at the end whether it went well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void fields_put_u8(struct buf *b, uint8_t v);
void fields_put_u32(struct buf *b, uint32_t v);
void fields_put_u64(struct buf *b, uint64_t v);
void fields_put_bytes(struct buf *b, const void *data, size_t len);
void fields_put_text(struct buf *b, const char *text);

struct fields {
    const char *at;
    size_t left;
    bool failed;
};

void fields_init(struct fields *f, const void *data, size_t len);
uint8_t fields_get_u8(struct fields *f);
uint32_t fields_get_u32(struct fields *f);
uint64_t fields_get_u64(struct fields *f);
/* The bytes stay in the message's memory. An empty slice after a failure. */
const char *fields_get_bytes(struct fields *f, size_t *ret_len);
/* A copy as a string into `ret`; fails where it does not fit or holds a NUL. */
void fields_get_text(struct fields *f, char *ret, size_t size);
/* True when nothing failed and nothing is left over. */
bool fields_end(const struct fields *f);
