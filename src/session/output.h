/* output: collects what a cell writes and shows, within bounds that do not depend on the cell.
 *
 * Text is bytes from two pipes. Up to half of the limit it is the head: repaired to UTF-8, kept and
 * handed on at once. What follows goes into a ring that holds the last half, the tail; what the
 * ring loses is counted and gone. Ten gigabytes printed cost one copy of each byte and no memory.
 *
 *     head (≤ limit/2, ≤ HEAD_RUNS pieces) … dropped, counted … tail (≤ limit/2, ≤ TAIL_RUNS
 * pieces)
 *
 * Invariants:
 *  1. A character that a read cut in two is held back (at most 3 bytes a stream) until the rest of
 *     it comes, so a piece of text never ends within a character that was written whole.
 *  2. Positions in the tail count bytes since it began; the ring holds [first, end).
 *  3. Displays are not text: they have bounds of their own and survive where they stood, also in
 *     the dropped middle.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "session/session.h"

#define OUTPUT_HARD_LIMIT (1ull << 30) /* "none" means this */
#define OUTPUT_DISPLAYS 1000
#define OUTPUT_DISPLAY_BYTES (64ull << 20)
#define HEAD_RUNS 4000
#define TAIL_RUNS 4000

struct output_sink {
    void (*text)(void *ctx, enum output_kind kind, const char *text, size_t len);
    void (*display)(void *ctx, const struct output *o);
    void *ctx;
};

struct tail_run {
    uint64_t end; /* the position behind its last byte */
    unsigned stream;
};

struct late_display {
    uint64_t at; /* stands before this position */
    struct output output;
};

struct collector {
    uint64_t limit;
    struct output_sink sink;
    bool live; /* hand on at once; else keep until output_go_live */

    struct output *outputs;
    unsigned n_outputs, cap_outputs;
    struct buf open; /* the text of the last output while it still grows */
    bool is_open;
    size_t head_left; /* bytes */
    unsigned head_runs;

    char held[2][4]; /* invariant 1 */
    unsigned n_held[2];

    char *ring; /* NULL until the head is full */
    size_t ring_size;
    uint64_t first, end;
    struct tail_run *runs; /* a ring as well */
    unsigned first_run, n_runs;
    bool cut; /* the first run lost its beginning */
    struct late_display *late;
    unsigned n_late, cap_late;

    uint64_t written[2], dropped[2]; /* bytes, by stream */
    unsigned n_displays;
    uint64_t display_limit, display_bytes;
    uint64_t displays_dropped;
};

/* So many bytes of text are kept, and of displays. `stream` is OUTPUT_STDOUT or OUTPUT_STDERR. */
void output_init(struct collector *c, uint64_t limit, uint64_t display_limit,
                 const struct output_sink *sink);
void output_done(struct collector *c);

void output_text(struct collector *c, unsigned stream, const char *data, size_t len);
/* Takes over what is in *o. */
void output_display(struct collector *c, struct output *o);
/* From now on hand on as it comes, beginning with what is there. */
void output_go_live(struct collector *c);
/* Move everything into the cell: outputs and what was dropped. The tail is handed on now. The
 * collector is empty afterwards; call output_init to use it again. */
void output_finish(struct collector *c, struct cell *cell);

/* Has anything come? */
bool output_begun(const struct collector *c);
uint64_t output_dropped(const struct collector *c);
uint64_t output_written(const struct collector *c);
