/* fake: see fake.h. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "session/inside.h"
#include "wire/fields.h"

/* ---- the owner's side ---- */

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    struct fake *f = ctx;
    (void)s;

    assert_that(!f->opened && !f->failed);
    if (!e) {
        f->opened = true;
        return;
    }
    f->failed = true;
    snprintf(f->open_error, sizeof(f->open_error), "%s", e->text);
}

static void on_text(void *ctx, struct session *s, enum output_kind kind, const char *text,
                    size_t len)
{
    struct fake *f = ctx;
    (void)s;

    assert_that(len > 0);
    f->texts++;
    if ((int)kind != f->last_stream && f->text_len < sizeof(f->text))
        f->text[f->text_len++] = kind == OUTPUT_STDOUT ? '1' : '2';
    f->last_stream = (int)kind;
    size_t fits = sizeof(f->text) - f->text_len;
    memcpy(f->text + f->text_len, text, len < fits ? len : fits);
    f->text_len += len < fits ? len : fits;
    if (f->close_in_text) {
        session_close(f->session);
        f->session = NULL;
    }
}

static void on_display(void *ctx, struct session *s, const struct output *o)
{
    struct fake *f = ctx;
    (void)s;

    assert_that(o->n_parts > 0);
    f->displays++;
}

static void on_error(void *ctx, struct session *s, const struct cell *c)
{
    struct fake *f = ctx;
    (void)s;

    assert_that(c->error.name);
    f->errors++;
}

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    struct fake *f = ctx;
    (void)s;

    cell_free(f->cell);
    f->cell = c;
    f->done = true;
    if (f->close_in_done) {
        session_close(f->session);
        f->session = NULL;
    }
}

static void on_ended(void *ctx, struct session *s)
{
    struct fake *f = ctx;
    (void)s;

    f->ended = true;
}

static const struct session_events events = {
    .opened = on_opened,
    .text = on_text,
    .display = on_display,
    .error = on_error,
    .done = on_done,
    .ended = on_ended,
};

/* ---- life ---- */

static void reset(struct fake *f, const struct limits *limits)
{
    *f = (struct fake){.keeper = -1,
                       .stream = -1,
                       .orders = -1,
                       .out = -1,
                       .err = -1,
                       .files = -1,
                       .box = 7,
                       .workspace = -1};
    f->last_stream = -1;
    for (unsigned i = 0; i < METER_FDS; i++)
        f->meter_files[i] = -1;
    if (limits)
        f->limits = *limits;
    else
        limits_default(&f->limits);
}

void fake_start(struct fake *f, const struct limits *limits)
{
    struct err e;
    int pair[2];

    reset(f, limits);
    assert_that(msg_pair(pair, &e) == 0);
    f->keeper = pair[1];
    f->vessel = vessel_new(pair[0], &e);
    assert_that(f->vessel);
    f->session = session_open(f->vessel, 0, &f->limits, &events, f);
}

void fake_join(struct fake *second, struct fake *first, const struct limits *limits, unsigned meter)
{
    reset(second, limits);
    second->vessel = first->vessel;
    second->keeper = first->keeper;
    second->box = first->box + 1;
    second->session = session_open(second->vessel, 0, &second->limits, &events, second);
    fake_create(second, meter);
    assert_that(second->opened);
}

void fake_part(struct fake *second)
{
    if (second->session)
        session_close(second->session);
    second->session = NULL;
    second->vessel = NULL;
    second->keeper = -1;
    fake_stop(second);
}

static void make_pipe(int *ret_read, int *ret_write)
{
    int ends[2];

    assert_that(pipe2(ends, O_CLOEXEC) == 0);
    *ret_read = ends[0];
    *ret_write = ends[1];
}

static unsigned make_meters(struct fake *f, unsigned kind, int *fds)
{
    static const char *const texts[][METER_FDS] = {
        [METER_V1] = {"1000\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "max 0\n", "0\n"},
        [METER_V2] = {"1000\n", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n",
                      "max 0\n", "usage_usec 0\nuser_usec 0\n"},
    };

    if (kind == METER_NONE)
        return 0;
    for (unsigned i = 0; i < METER_FDS; i++) {
        f->meter_files[i] = memfd_create("meter", MFD_CLOEXEC);
        fake_meter(f, i, texts[kind][i]);
        fds[i] = f->meter_files[i];
    }
    return METER_FDS;
}

void fake_create(struct fake *f, unsigned meter)
{
    cleanup_buf struct buf b = {0};
    cleanup_msg struct msg m;
    int fds[5 + METER_FDS + 1], pair[2];
    struct err e;

    assert_that(fake_keeper_next(f, &m) == KEEPER_CREATE);
    struct fields request;
    fields_init(&request, m.data, m.len);
    uint32_t req = fields_get_u32(&request);
    make_pipe(&fds[0], &f->stream);
    make_pipe(&f->orders, &fds[1]);
    make_pipe(&fds[2], &f->out);
    make_pipe(&fds[3], &f->err);
    assert_that(msg_pair(pair, &e) == 0);
    fds[4] = pair[0];
    f->files = pair[1];
    unsigned n = 5 + make_meters(f, meter, fds + 5);
    if (f->workspace >= 0)
        fds[n++] = f->workspace;
    msg_begin(&b, KEEPER_CREATED);
    fields_put_u32(&b, req);
    fields_put_u32(&b, f->box);
    fields_put_u8(&b, 1);
    fields_put_u8(&b, (uint8_t)meter);
    fields_put_u8(&b, f->has_files);
    assert_that(msg_send(f->keeper, &b, fds, n, &e) == 0);
    for (unsigned i = 0; i < 5; i++)
        close(fds[i]);
    fake_turn(f);
    fake_turn(f);
    if (meter == METER_NONE && f->opened)
        fake_init_answers(f);
}

void fake_open(struct fake *f)
{
    fake_start(f, NULL);
    fake_create(f, METER_V1);
    assert_that(f->opened);
}

void fake_stop(struct fake *f)
{
    if (f->session)
        session_close(f->session);
    vessel_free(f->vessel);
    cell_free(f->cell);
    frame_reader_done(&f->reader);
    fd_close(&f->keeper);
    fd_close(&f->stream);
    fd_close(&f->orders);
    fd_close(&f->out);
    fd_close(&f->err);
    fd_close(&f->files);
    fd_close(&f->workspace);
    for (unsigned i = 0; i < METER_FDS; i++)
        fd_close(&f->meter_files[i]);
}

void fake_turn(struct fake *f)
{
    struct err e;
    struct pollfd p = {.fd = vessel_fd(f->vessel), .events = POLLIN};

    for (int i = 0; i < 1000 && poll(&p, 1, 0) > 0; i++)
        if (vessel_dispatch(f->vessel, &e) < 0)
            return;
}

bool fake_wait(struct fake *f, const bool *flag, int timeout_ms)
{
    struct err e;

    return vessel_wait(f->vessel, flag, timeout_ms, &e) == 1;
}

void fake_time_is_up(struct fake *f)
{
    static const bool never = false;

    f->session->deadline_us = 1;
    vessel_arm(f->vessel, 1);
    fake_wait(f, &never, 50);
}

/* ---- cells ---- */

void fake_run(struct fake *f, const char *code)
{
    struct err e;
    struct frame frame;

    f->done = false;
    assert_that(session_run(f->session, code, strlen(code), 0, &e) == 0);
    assert_that(fake_heard(f, &frame) && frame.type == CELL_RUN);
}

void fake_ask_variables(struct fake *f)
{
    struct err e;
    struct frame frame;

    f->done = false;
    assert_that(session_variables(f->session, 0, &e) == 0);
    assert_that(fake_heard(f, &frame) && frame.type == CELL_VARIABLES && frame.len == 0);
}

void fake_print(int fd, const char *text)
{
    assert_that(fd_write_all(fd, text, strlen(text)) == 0);
}

void fake_frame(struct fake *f, uint32_t type, const struct buf *fields)
{
    cleanup_buf struct buf b = {0};

    frame_begin(&b, type);
    if (fields)
        buf_add(&b, fields->data, fields->len);
    frame_seal(&b);
    assert_that(fd_write_all(f->stream, b.data, b.len) == 0);
}

void fake_done(struct fake *f, unsigned status)
{
    cleanup_buf struct buf b = {0};

    fields_put_u32(&b, f->n);
    fields_put_u8(&b, (uint8_t)status);
    fields_put_u32(&b, status == DONE_EXIT ? 3 : 0);
    fields_put_u32(&b, f->same_as ? f->same_as - 1 : STATE_IS_NEW);
    fake_frame(f, CELL_DONE, &b);
}

void fake_fence(struct fake *f, uint32_t fence)
{
    cleanup_buf struct buf b = {0};

    fields_put_u32(&b, fence);
    fake_frame(f, CELL_FENCE, &b);
}

void fake_display(struct fake *f, const char *type, const char *data)
{
    cleanup_buf struct buf b = {0};

    fields_put_u8(&b, DISPLAY_SHOWN);
    fields_put_text(&b, "{\"a\": [1]}");
    fields_put_u32(&b, 1);
    fields_put_text(&b, type);
    fields_put_text(&b, data);
    fake_frame(f, CELL_DISPLAY, &b);
}

void fake_error(struct fake *f, const char *name, const char *value)
{
    cleanup_buf struct buf b = {0};

    fields_put_text(&b, name);
    fields_put_text(&b, value);
    fields_put_text(&b, "Traceback …");
    fake_frame(f, CELL_ERROR, &b);
}

bool fake_heard(struct fake *f, struct frame *ret)
{
    struct pollfd p = {.fd = f->orders, .events = POLLIN};

    while (frame_next(&f->reader, ret) == 0)
        if (poll(&p, 1, 0) <= 0 || frame_fill(&f->reader, f->orders) <= 0)
            return false;
    if (ret->type == CELL_RUN)
        memcpy(&f->n, ret->data, sizeof(f->n));
    else if (ret->type == CELL_VARIABLES)
        f->n = 0;
    return true;
}

/* ---- init ---- */

static void put_answer(struct buf *b, const struct fake *f, uint32_t type, uint32_t req)
{
    switch (type) {
    case FILE_EVICTIONS:
        msg_begin(b, FILE_EVICTED);
        fields_put_u32(b, req);
        fields_put_u32(b, f->evicted);
        break;
    case FILE_SPACE:
        msg_begin(b, FILE_USED);
        fields_put_u32(b, req);
        fields_put_u64(b, 4096);
        fields_put_u64(b, 3);
        break;
    case FILE_USAGE:
        msg_begin(b, FILE_USAGE_IS);
        fields_put_u32(b, req);
        fields_put_u64(b, 1000);
        fields_put_u64(b, 5000);
        fields_put_u64(b, 0);
        break;
    default:
        msg_begin(b, FILE_DONE);
        fields_put_u32(b, req);
        fields_put_u32(b, type == FILE_RESTORE ? ENOENT : 0);
        fields_put_text(b, type == FILE_RESTORE ? "none waits" : "");
        break;
    }
}

void fake_init_answers(struct fake *f)
{
    struct pollfd p = {.fd = f->files, .events = POLLIN};
    struct err e;

    while (poll(&p, 1, 0) > 0) {
        cleanup_msg struct msg m;
        cleanup_buf struct buf b = {0};
        struct fields fields;
        if (msg_recv(f->files, &m, &e) <= 0)
            return;
        fields_init(&fields, m.data, m.len);
        uint32_t req = fields_get_u32(&fields);
        if (m.type == FILE_RESTORE && f->restores) {
            f->restore_req = req;
            continue;
        }
        put_answer(&b, f, m.type, req);
        if (msg_send(f->files, &b, NULL, 0, &e) < 0)
            return; /* the owner gave this init up */
        fake_turn(f);
    }
}

void fake_successor(struct fake *f, int ret[4])
{
    int orders, stream, out, err;

    make_pipe(&ret[0], &stream);
    make_pipe(&orders, &ret[1]);
    make_pipe(&ret[2], &out);
    make_pipe(&ret[3], &err);
    frame_reader_done(&f->reader);
    f->reader = (struct frame_reader){0};
    fd_close(&f->stream);
    fd_close(&f->orders);
    fd_close(&f->out);
    fd_close(&f->err);
    f->stream = stream;
    f->orders = orders;
    f->out = out;
    f->err = err;
}

void fake_restored(struct fake *f, uint32_t req, uint32_t n, const int *fds, unsigned n_fds)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    msg_begin(&b, FILE_RESTORED);
    fields_put_u32(&b, req);
    fields_put_u32(&b, n);
    fields_put_text(&b, f->missing ? f->missing : "");
    assert_that(msg_send(f->files, &b, fds, n_fds, &e) == 0);
    fake_turn(f);
}

void fake_finish(struct fake *f, unsigned status)
{
    fake_done(f, status);
    fake_turn(f);
    fake_init_answers(f);
    assert_that(f->done);
}

/* ---- the keeper ---- */

uint32_t fake_keeper_next(struct fake *f, struct msg *m)
{
    struct pollfd p = {.fd = f->keeper, .events = POLLIN};
    struct err e;

    m->n_fds = 0;
    if (poll(&p, 1, 0) <= 0 || msg_recv(f->keeper, m, &e) != 1)
        return 0;
    return m->type;
}

void fake_keeper_rests(struct fake *f)
{
    for (;;) {
        cleanup_msg struct msg m;
        if (fake_keeper_next(f, &m) == 0)
            return;
    }
}

void fake_keeper_answers(struct fake *f)
{
    struct msg m;
    struct err e;
    uint32_t type;

    while ((type = fake_keeper_next(f, &m)) != 0) {
        cleanup_buf struct buf b = {0};
        if (type != KEEPER_STATUS)
            continue;
        msg_begin(&b, KEEPER_STATE);
        buf_add(&b, m.data, 4);
        for (int i = 0; i < 4; i++)
            fields_put_u32(&b, 0);
        assert_that(msg_send(f->keeper, &b, NULL, 0, &e) == 0);
    }
    fake_turn(f);
}

void fake_died(struct fake *f, int wait_status, bool memory_short)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    fake_keeper_answers(f); /* in order */
    msg_begin(&b, KEEPER_DIED);
    fields_put_u32(&b, f->box);
    fields_put_u32(&b, (uint32_t)wait_status);
    fields_put_u8(&b, memory_short);
    assert_that(msg_send(f->keeper, &b, NULL, 0, &e) == 0);
    fake_turn(f);
}

void fake_meter(struct fake *f, unsigned i, const char *text)
{
    assert_that(ftruncate(f->meter_files[i], 0) == 0);
    assert_that(pwrite(f->meter_files[i], text, strlen(text), 0) == (ssize_t)strlen(text));
}

bool fake_keeper_hears(struct fake *f, uint32_t type, uint32_t second)
{
    cleanup_msg struct msg m;
    struct fields fields;

    if (fake_keeper_next(f, &m) != type)
        return false;
    fields_init(&fields, m.data, m.len);
    return fields_get_u32(&fields) == f->box &&
           (type != KEEPER_SIGNAL || fields_get_u32(&fields) == second);
}

bool fake_crashed(const struct fake *f, const char *sentence)
{
    const struct cell *c = f->cell;

    return f->done && c->status == CELL_CRASHED && c->session_ended && session_ended(f->session) &&
           strcmp(c->error.name, "Crashed") == 0 && strcmp(c->error.value, sentence) == 0 &&
           strcmp(c->error.traceback, sentence) == 0;
}
