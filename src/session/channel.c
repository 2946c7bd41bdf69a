/* channel: bytes from a box: what it prints (two pipes) and what it says (frames).
 *
 * All of it is hostile. A frame that may not be sent, or is none, ends the session (course_fault).
 *
 * Order: the kernel process waits at a fence before it changes streams, and we let it pass when
 * both pipes are read empty; and before a display, an error or the end of a cell is handled the
 * pipes are read as well. "Empty" is what FIONREAD said when the frame came: a child that writes
 * all the time could hold us for ever otherwise.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "session/inside.h"
#include "wire/fields.h"

#define NOT_A_MESSAGE "the interpreter sent something that is not a message of retort's"
#define IDLE_BYTES (1u << 20)  /* dropped, or of frames, while no cell runs */
#define FENCES_WAITING 4096    /* answers to fences that nobody reads */
#define LEFT_BEHIND (8u << 20) /* of frames, that a dead interpreter's children add to */

static int fd_of(const struct session *s, enum source_kind kind)
{
    return s->sources[kind].fd;
}

static void close_source(struct session *s, enum source_kind kind)
{
    source_close(s->vessel, &s->sources[kind]);
}

static bool is_idle(const struct session *s)
{
    return s->state == IDLE;
}

/* ---- back-pressure while no cell runs ---- */

static void pause_if_noisy(struct session *s)
{
    if (!is_idle(s) || s->paused)
        return;
    if (output_dropped(&s->out) < IDLE_BYTES && s->idle_frames < IDLE_BYTES)
        return;
    s->paused = true;
    source_watch(s->vessel, &s->sources[FROM_STREAM], 0);
    source_watch(s->vessel, &s->sources[FROM_STDOUT], 0);
    source_watch(s->vessel, &s->sources[FROM_STDERR], 0);
}

void channel_resume(struct session *s)
{
    s->idle_frames = 0;
    if (!s->paused)
        return;
    s->paused = false;
    source_watch(s->vessel, &s->sources[FROM_STREAM], EPOLLIN);
    source_watch(s->vessel, &s->sources[FROM_STDOUT], EPOLLIN);
    source_watch(s->vessel, &s->sources[FROM_STDERR], EPOLLIN);
}

/* ---- the pipes ---- */

/* Read once, at most `max` bytes. False: there is nothing now, or ever. */
static bool read_pipe(struct session *s, enum source_kind kind, size_t max, size_t *ret_n)
{
    char *scratch = s->vessel->scratch;
    ssize_t n;

    if (fd_of(s, kind) < 0)
        return false;
    do
        n = read(fd_of(s, kind), scratch, max < SCRATCH ? max : SCRATCH);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        close_source(s, kind); /* every writer has closed it */
        return false;
    }
    output_text(&s->out, kind == FROM_STDOUT ? OUTPUT_STDOUT : OUTPUT_STDERR, scratch, (size_t)n);
    *ret_n = (size_t)n;
    return true;
}

static void drain_pipe(struct session *s, enum source_kind kind)
{
    int there = 0;
    size_t n;

    if (fd_of(s, kind) < 0 || ioctl(fd_of(s, kind), FIONREAD, &there) < 0)
        return;
    for (size_t left = there > 0 ? (size_t)there : 0; left > 0; left -= n)
        if (!read_pipe(s, kind, left, &n))
            return;
}

void channel_drain(struct session *s)
{
    drain_pipe(s, FROM_STDOUT);
    drain_pipe(s, FROM_STDERR);
}

/* ---- to the kernel process ---- */

/* How much could be sent, or -1: the other side is gone. */
static ssize_t send_some(struct session *s, const char *data, size_t len)
{
    ssize_t n;

    if (fd_of(s, TO_STREAM) < 0)
        return -1;
    do
        n = fd_write_quietly(fd_of(s, TO_STREAM), data, len);
    while (n < 0 && errno == EINTR);
    return n < 0 && errno == EAGAIN ? 0 : n;
}

static void flush(struct session *s)
{
    size_t left = s->unsent.len - s->unsent_at;
    ssize_t n = send_some(s, s->unsent.data + s->unsent_at, left);

    s->unsent_at += n > 0 ? (size_t)n : 0;
    if (n < 0 || (size_t)n == left) {
        buf_done(&s->unsent); /* gone: reading will tell */
        s->unsent_at = 0;
        s->fences_waiting = 0;
        source_watch(s->vessel, &s->sources[TO_STREAM], 0);
    }
}

void channel_send(struct session *s)
{
    struct buf *b = &s->vessel->frame;
    ssize_t n = s->unsent.len ? 0 : send_some(s, b->data, b->len);

    if (n < 0 || (size_t)n == b->len)
        return;
    buf_add(&s->unsent, b->data + n, b->len - (size_t)n);
    source_watch(s->vessel, &s->sources[TO_STREAM], EPOLLOUT);
}

/* ---- frames ---- */

static int on_fence(struct session *s, struct fields *f)
{
    uint32_t fence = fields_get_u32(f);

    if (!fields_end(f))
        return -1;
    channel_drain(s);
    struct buf *b = &s->vessel->frame;
    b->len = 0;
    frame_begin(b, CELL_PASS);
    fields_put_u32(b, fence);
    frame_seal(b);
    if (s->unsent.len > 0 && ++s->fences_waiting > FENCES_WAITING)
        return -1; /* it asks without end and reads no answer */
    channel_send(s);
    return 0;
}

static int on_display(struct session *s, const struct frame *f)
{
    struct output o = {0};

    if (display_parse(f, &o) < 0)
        return -1;
    channel_drain(s);
    if (o.n_parts > 0)
        output_display(&s->out, &o);
    else
        cell_output_done(&o);
    return 0;
}

static struct slice get_slice(struct fields *f)
{
    struct slice s;

    s.data = fields_get_bytes(f, &s.len);
    return s;
}

static int on_error(struct session *s, struct fields *f)
{
    struct slice name = get_slice(f);
    struct slice value = get_slice(f);
    struct slice traceback = get_slice(f);

    if (!fields_end(f) || !s->cell || s->cell->error.name)
        return -1;
    channel_drain(s);
    if (s->closed)
        return 0; /* by a callback: the slices are gone with the reader */
    cell_set_error(s->cell, name, value, traceback);
    if (s->events.error)
        s->events.error(s->ctx, s, s->cell);
    return 0;
}

static int on_done(struct session *s, struct fields *f)
{
    uint32_t n = fields_get_u32(f);
    unsigned status = fields_get_u8(f);
    uint32_t exit_code = fields_get_u32(f);
    uint32_t same_as = fields_get_u32(f);

    if (!fields_end(f) || !s->cell || n != s->cell->n || status > DONE_EXIT)
        return -1;
    if (same_as != STATE_IS_NEW)
        files_note_same(s, same_as, n);
    channel_drain(s);
    if (!s->closed)
        course_done(s, status, exit_code);
    return 0;
}

int channel_frame(struct session *s, const struct frame *f)
{
    bool running = s->state != IDLE && s->state != SETTLING;
    struct fields fields;

    fields_init(&fields, f->data, f->len);
    switch (f->type) {
    case CELL_FENCE:
        return on_fence(s, &fields);
    case CELL_DISPLAY:
        return on_display(s, f);
    case CELL_CHECKED:
        return check_answer(s, &fields);
    case CELL_ERROR:
        return running ? on_error(s, &fields) : -1;
    case CELL_DONE:
        return running ? on_done(s, &fields) : -1;
    default:
        return -1;
    }
}

/* Does it still matter what this box says? */
static bool listens(const struct session *s)
{
    return !s->closed && s->state != ENDED && !(s->cell && s->course.fault);
}

/* Handle the whole frames that are there. False: no more of them. */
static bool handle_frames(struct session *s)
{
    struct frame f;
    int got = 0;

    while (listens(s) && (got = frame_next(&s->reader, &f)) == 1) {
        if (channel_frame(s, &f) == 0)
            continue;
        if (!s->closed)
            course_fault(s, NOT_A_MESSAGE);
        return false;
    }
    if (got < 0 && listens(s))
        course_fault(s, NOT_A_MESSAGE);
    return listens(s);
}

static void read_frames(struct session *s)
{
    size_t before = s->reader.in.len - s->reader.at;
    int got = frame_fill(&s->reader, fd_of(s, FROM_STREAM));

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        close_source(s, FROM_STREAM);
        course_silent(s);
        return;
    }
    if (is_idle(s))
        s->idle_frames += s->reader.in.len - before;
    handle_frames(s);
}

void channel_drain_all(struct session *s)
{
    size_t seen = 0;

    while (fd_of(s, FROM_STREAM) >= 0 && seen < LEFT_BEHIND && handle_frames(s)) {
        size_t before = s->reader.in.len - s->reader.at;
        if (frame_fill(&s->reader, fd_of(s, FROM_STREAM)) <= 0)
            break;
        seen += s->reader.in.len - before;
    }
    if (!s->closed)
        channel_drain(s);
}

/* ---- one turn ---- */

static void read_in_turn(struct session *s, enum source_kind kind)
{
    size_t n;

    if (!s->closed && fd_of(s, kind) >= 0 && !s->paused)
        read_pipe(s, kind, SCRATCH, &n);
}

void channel_ready(struct session *s, unsigned ready)
{
    if (ready & (1u << TO_STREAM))
        flush(s);
    if (ready & (1u << FROM_STDOUT))
        read_in_turn(s, FROM_STDOUT);
    if (ready & (1u << FROM_STDERR))
        read_in_turn(s, FROM_STDERR);
    if (ready & (1u << FROM_STREAM) && listens(s) && fd_of(s, FROM_STREAM) >= 0)
        read_frames(s);
    if (ready & (1u << FROM_FILES) && !s->closed && fd_of(s, FROM_FILES) >= 0)
        files_read(s);
    if (!s->closed)
        pause_if_noisy(s);
}
