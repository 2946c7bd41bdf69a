/* session: the calls of session.h that open, close and ask. See inside.h for the states. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fd.h"
#include "session/inside.h"

#define SHARED_TEXT (64ull << 20) /* bytes that the cells of those who share may have together */

/* ---- what it tells its owner ---- */

static void tell_text(void *ctx, enum output_kind kind, const char *text, size_t len)
{
    struct session *s = ctx;

    if (!s->closed && s->events.text)
        s->events.text(s->ctx, s, kind, text, len);
}

static void tell_display(void *ctx, const struct output *o)
{
    struct session *s = ctx;

    if (!s->closed && s->events.display)
        s->events.display(s->ctx, s, o);
}

void session_collect(struct session *s)
{
    const struct output_sink sink = {.text = tell_text, .display = tell_display, .ctx = s};
    uint64_t text = s->limits.output;

    if (s->sharers > 1 && text > SHARED_TEXT / s->sharers)
        text = SHARED_TEXT / s->sharers;
    output_done(&s->out);
    output_init(&s->out, text, OUTPUT_DISPLAY_BYTES / s->sharers, &sink);
}

void session_share(struct session *s, unsigned n)
{
    s->sharers = n;
    if (!output_begun(&s->out))
        session_collect(s);
}

void session_deadline(struct session *s, int64_t at_us)
{
    s->deadline_us = at_us;
    vessel_arm(s->vessel, at_us);
}

/* ---- opening ---- */

static struct session *session_new(struct vessel *v, const struct limits *limits,
                                   const struct session_events *events, void *ctx)
{
    struct session *s = xcalloc(1, sizeof(*s));

    *s = (struct session){.vessel = v,
                          .limits = *limits,
                          .checkpoints = CHECKPOINTS_DEFAULT,
                          .sharers = 1,
                          .events = *events,
                          .ctx = ctx,
                          .state = OPENING,
                          .req = vessel_req(v),
                          .workspace.fd = -1,
                          .deadline_us = NEVER,
                          .cpu_check_us = NEVER};
    for (unsigned i = 0; i < N_SOURCES; i++)
        s->sources[i] = (struct source){.session = s, .kind = (enum source_kind)i, .fd = -1};
    s->next = v->sessions;
    if (s->next)
        s->next->prev = s;
    v->sessions = s;
    session_collect(s);
    return s;
}

struct session *session_open(struct vessel *v, unsigned environment, const struct limits *limits,
                             const struct session_events *events, void *ctx)
{
    struct session *s = session_new(v, limits, events, ctx);

    link_create(s, environment);
    return s;
}

void session_keep(struct session *s, unsigned checkpoints)
{
    s->checkpoints = checkpoints;
}

void session_pictures(struct session *s, unsigned side)
{
    s->pictures = side;
}

struct session *session_branch(struct session *from, const struct session_departure *at,
                               const struct limits *limits, const struct session_events *events,
                               void *ctx)
{
    struct session *s = session_new(from->vessel, limits, events, ctx);

    s->state_n = at->n;
    s->n_cells = at->last > at->n ? at->last : at->n;
    files_tell_same(from); /* else it may not know the state by this number */
    link_branch(s, from->box, at);
    return s;
}

static void tell_opened(struct session *s, const struct err *e)
{
    if (!s->closed && s->events.opened)
        s->events.opened(s->ctx, s, e);
}

void session_failed(struct session *s, const char *why)
{
    struct err e = {0};

    s->state = ENDED;
    s->broken = true;
    snprintf(e.text, sizeof(e.text), "%s", why);
    tell_opened(s, &e);
}

int session_take_sources(struct session *s, struct msg *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        s->sources[i].fd = msg_take_fd(m, i);
        if (s->sources[i].fd < 0 || fd_set_nonblock(s->sources[i].fd) < 0)
            return -1;
    }
    for (unsigned i = 0; i < n; i++)
        source_watch(s->vessel, &s->sources[i], i == TO_STREAM ? 0 : EPOLLIN);
    return 0;
}

void session_created(struct session *s, uint32_t box, struct fields *f, struct msg *m)
{
    struct limits usual;

    limits_default(&usual);
    s->box = box;
    s->has_box = true;
    s->from_pool = fields_get_u8(f) != 0;
    unsigned meter = fields_get_u8(f);
    bool has_files = fields_get_u8(f) != 0;
    s->state = IDLE;
    bool sound = !f->failed && meter_init(&s->meter, meter, m, N_SOURCES) == 0;
    if (!sound || session_take_sources(s, m, N_SOURCES) < 0) {
        session_failed(s, "the keeper's answer cannot be understood");
        return;
    }
    unsigned last = N_SOURCES + (s->meter.kind == METER_NONE ? 0 : METER_FDS);
    workspace_init(&s->workspace, msg_take_fd(m, last), has_files);
    if (s->checkpoints != CHECKPOINTS_DEFAULT || s->limits.memory != usual.memory)
        files_tell_keep(s, s->checkpoints);
    meter_read(&s->meter, &s->usage);
    if (s->meter.kind == METER_NONE)
        s->usage_req = files_ask(s, FILE_USAGE);
    tell_opened(s, NULL);
}

/* ---- closing ---- */

void session_free(struct session *s)
{
    struct vessel *v = s->vessel;

    if (s->prev)
        s->prev->next = s->next;
    else
        v->sessions = s->next;
    if (s->next)
        s->next->prev = s->prev;
    cell_free(s->cell);
    buf_done(&s->course.missing);
    buf_done(&s->course.there);
    output_done(&s->out);
    output_done(&s->aside);
    free(s);
}

void session_close(struct session *s)
{
    session_close_then(s, NULL, NULL);
}

void session_close_then(struct session *s, void (*gone)(void *ctx), void *ctx)
{
    struct vessel *v = s->vessel;
    bool has_box = s->has_box && !v->gone;

    if (s->closed)
        return;
    s->closed = true;
    checks_close(s);
    requests_close(s);
    revive_forget(s);
    /* A box is ended as a whole, and not begun to be by its interpreter, which would go to its end when it sees that of
     * its channel: so that one stays open until the box is gone. */
    if (has_box) {
        source_watch(v, &s->sources[TO_STREAM], 0);
        link_await_end(v, s->box, fd_steal(&s->sources[TO_STREAM].fd), gone, ctx);
    }
    /* One that is still being made is destroyed when it comes: see link.c. */
    if (s->has_box)
        link_destroy(v, s->box);
    else if (s->state == OPENING)
        link_give_up(s); /* a branch's making takes as long as a guest likes */
    for (unsigned i = 0; i < N_SOURCES; i++)
        source_close(v, &s->sources[i]);
    meter_done(&s->meter);
    workspace_done(&s->workspace);
    frame_reader_done(&s->reader);
    buf_done(&s->unsent);
    if (v->depth > 0)
        v->sweep = true;
    else
        session_free(s);
    if (gone && !has_box)
        gone(ctx);
}

/* ---- asking ---- */

bool session_busy(const struct session *s)
{
    return s->later || (s->cell && !revive_under_way(s));
}

bool session_ended(const struct session *s)
{
    return s->state == ENDED;
}

uint32_t session_state_n(const struct session *s)
{
    return s->state_n;
}

uint32_t session_last_n(const struct session *s)
{
    return s->n_cells;
}

void session_give(struct session *s, const struct session_events *events, void *ctx)
{
    s->events = *events;
    s->ctx = ctx;
}

bool session_from_pool(const struct session *s)
{
    return s->from_pool;
}

int session_must_be_idle(const struct session *s, struct err *e)
{
    if (s->vessel->gone)
        return vessel_gone_err(s->vessel, e);
    if (s->closed || s->state == ENDED)
        return err_set(e, 0, "the session has ended");
    if (s->state == OPENING)
        return err_set(e, 0, "the session is not open yet");
    if (s->state != IDLE && (!revive_under_way(s) || s->later))
        return err_set(e, EBUSY, "the session runs a cell");
    return 0;
}

int session_must_fit(size_t len, struct err *e)
{
    if (len > FRAME_MAX - 64)
        return err_set(e, EFBIG, "a cell of %zu bytes is too long; the most is %u", len,
                       FRAME_MAX - 64);
    return 0;
}

/* Begin with s->cell, by the order that is in v->frame. */
static void begin(struct session *s, uint64_t timeout_ms)
{
    struct buf *b = &s->vessel->frame;

    vessel_enter(s->vessel);
    course_begin(s, timeout_ms ? timeout_ms : s->limits.timeout_ms);
    frame_seal(b);
    channel_send(s);
    if (b->cap > (1u << 20))
        buf_done(b);
    channel_resume(s);
    output_go_live(&s->out);
    vessel_leave(s->vessel);
}

static void begin_run(struct session *s, const struct order *o)
{
    struct buf *b = &s->vessel->frame;

    s->cell = cell_new(++s->n_cells, o->code, o->len);
    b->len = 0;
    frame_begin(b, CELL_RUN);
    fields_put_u32(b, s->cell->n);
    fields_put_bytes(b, o->code, o->len);
    fields_put_u8(b, (uint8_t)(o->flags | (s->checkpoints == 0 ? RUN_KEEP_NOTHING : 0)));
    fields_put_u32(b, s->pictures);
    begin(s, o->timeout_ms);
}

void session_set_aside(struct session *s)
{
    s->cell = cell_new(0, "", 0);
    s->aside = s->out;
    s->out = (struct collector){0};
    session_collect(s);
}

static void begin_variables(struct session *s, const struct order *o)
{
    session_set_aside(s);
    s->vessel->frame.len = 0;
    frame_begin(&s->vessel->frame, CELL_VARIABLES);
    begin(s, o->timeout_ms);
}

static void begin_rollback(struct session *s, const struct order *o)
{
    session_set_aside(s);
    vessel_enter(s->vessel);
    course_rollback(s, o->to);
    vessel_leave(s->vessel);
}

int session_begin(struct session *s, const struct order *o, struct err *e)
{
    if (session_must_be_idle(s, e) < 0 || session_must_fit(o->len, e) < 0)
        return -1;
    if (revive_under_way(s))
        revive_hold(s, o);
    else if (o->kind == ORDER_RUN)
        begin_run(s, o);
    else if (o->kind == ORDER_VARIABLES)
        begin_variables(s, o);
    else
        begin_rollback(s, o);
    return 0;
}

int session_run(struct session *s, const char *code, size_t len, uint64_t timeout_ms, struct err *e)
{
    const struct order o = {.code = (char *)(uintptr_t)code, .len = len, .timeout_ms = timeout_ms};

    return session_begin(s, &o, e);
}

int session_run_undoable(struct session *s, const char *code, size_t len, uint64_t timeout_ms,
                         struct err *e)
{
    const struct order o = {.code = (char *)(uintptr_t)code,
                            .len = len,
                            .timeout_ms = timeout_ms,
                            .flags = RUN_UNDOABLE | (s->new_files ? RUN_NEW_FILES : 0)};

    if (session_begin(s, &o, e) < 0)
        return -1;
    s->new_files = false;
    return 0;
}

int session_run_at_once(struct session *s, const char *code, size_t len, uint64_t timeout_ms,
                        struct err *e)
{
    const struct order o = {.code = (char *)(uintptr_t)code,
                            .len = len,
                            .timeout_ms = timeout_ms,
                            .flags = RUN_AT_ONCE};

    return session_begin(s, &o, e);
}

int session_variables(struct session *s, uint64_t timeout_ms, struct err *e)
{
    return session_begin(s, &(struct order){.kind = ORDER_VARIABLES, .timeout_ms = timeout_ms}, e);
}

int session_rollback(struct session *s, uint32_t n, struct err *e)
{
    return session_begin(s, &(struct order){.kind = ORDER_ROLLBACK, .to = n}, e);
}

void session_interrupt(struct session *s)
{
    if (s->later)
        s->later->stop = true;
    course_stop(s, STOP_CLIENT);
}
