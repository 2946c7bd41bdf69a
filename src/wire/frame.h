/* frame: messages on a byte stream, used between a session's owner and the kernel process.
 *
 * A frame is a length (u32, of what follows the header), a type (u32), and that many bytes. What
 * comes from a box is hostile: a length over the bound ends the conversation, not our memory.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define FRAME_HEADER 8
#define FRAME_MAX (32u << 20) /* a box may not make us hold more than this at once */

struct frame_reader {
    struct buf in;
    size_t at; /* where the next frame begins: consumed bytes are dropped once per read, because a
                  box may send a million small frames */
};

struct frame {
    uint32_t type;
    const char *data; /* lies in the reader until frame_fill is called again */
    size_t len;
};

void frame_reader_done(struct frame_reader *r);

/* Read once what is there. 1: got bytes; 0: the other side is gone; -1: nothing now, or an error
 * (errno; EAGAIN when there is nothing). */
int frame_fill(struct frame_reader *r, int fd);

/* The next whole frame. 1: *ret is one; 0: more bytes are needed; -1: this is not a frame. */
int frame_next(struct frame_reader *r, struct frame *ret);

/* Start a frame in an empty buffer, add fields, then seal it. */
void frame_begin(struct buf *b, uint32_t type);
void frame_seal(struct buf *b);
