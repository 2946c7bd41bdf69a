/* link: messages between a vessel and its keeper.
 *
 * The keeper is ours and is believed, but it is another process: its socket may be full, so what it
 * does not take at once waits in the outbox, in order; and a message may be about a session that
 * its owner has closed meanwhile, which is not an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fd.h"
#include "session/inside.h"
#include "wire/fields.h"
#include "wire/limits_wire.h"

#define TURN 64 /* messages in one turn of the loop */

/* ---- to the keeper ---- */

static void enqueue(struct vessel *v)
{
    v->outbox = realloc(v->outbox, (v->n_outbox + 1) * sizeof(*v->outbox));
    if (!v->outbox)
        bug("out of memory (%u messages)", v->n_outbox + 1);
    v->outbox[v->n_outbox++] = v->frame;
    v->frame = (struct buf){0};
    source_watch(v, &v->keeper, EPOLLIN | EPOLLOUT);
}

static void post(struct vessel *v)
{
    struct err e;

    if (v->gone)
        return;
    if (v->n_outbox > 0)
        enqueue(v);
    else if (msg_send(v->keeper.fd, &v->frame, NULL, 0, &e) < 0 && e.code == EAGAIN)
        enqueue(v);
    /* Any other failure means that the keeper is gone, which link_read will see. */
}

void link_flush(struct vessel *v)
{
    unsigned sent = 0;
    struct err e;

    for (; sent < v->n_outbox; sent++) {
        if (msg_send(v->keeper.fd, &v->outbox[sent], NULL, 0, &e) < 0 && e.code == EAGAIN)
            break;
        buf_done(&v->outbox[sent]);
    }
    v->n_outbox -= sent;
    if (v->n_outbox > 0)
        memmove(v->outbox, v->outbox + sent, v->n_outbox * sizeof(*v->outbox));
    else
        source_watch(v, &v->keeper, EPOLLIN);
}

static struct buf *begin(struct vessel *v, uint32_t type)
{
    v->frame.len = 0;
    msg_begin(&v->frame, type);
    return &v->frame;
}

void link_create(struct session *s, unsigned environment)
{
    struct buf *b = begin(s->vessel, KEEPER_CREATE);

    fields_put_u32(b, s->req);
    fields_put_u32(b, environment);
    limits_put(b, &s->limits);
    post(s->vessel);
}

void link_branch(struct session *s, uint32_t box, const struct session_departure *at)
{
    struct buf *b = begin(s->vessel, KEEPER_BRANCH);

    fields_put_u32(b, s->req);
    fields_put_u32(b, box);
    fields_put_u32(b, at->n);
    fields_put_u8(b, at->present);
    limits_put(b, &s->limits);
    post(s->vessel);
}

void link_give_up(struct session *s)
{
    fields_put_u32(begin(s->vessel, KEEPER_GIVE_UP), s->req);
    post(s->vessel);
}

void link_signal(struct session *s, int sig)
{
    struct buf *b = begin(s->vessel, KEEPER_SIGNAL);

    fields_put_u32(b, s->box);
    fields_put_u32(b, (uint32_t)sig);
    post(s->vessel);
}

void link_destroy(struct vessel *v, uint32_t box)
{
    fields_put_u32(begin(v, KEEPER_DESTROY), box);
    post(v);
}

void link_status(struct vessel *v, uint32_t req)
{
    fields_put_u32(begin(v, KEEPER_STATUS), req);
    post(v);
}

void link_await_end(struct vessel *v, uint32_t box, int held, void (*gone)(void *ctx), void *ctx)
{
    struct end_request *r = xcalloc(1, sizeof(*r));

    *r = (struct end_request){.next = v->ends, .box = box, .held = held, .gone = gone, .ctx = ctx};
    v->ends = r;
}

/* ---- from the keeper ---- */

/* `all`: whatever box they wait for. */
static void tell_ended(struct vessel *v, uint32_t box, bool all)
{
    for (struct end_request **at = &v->ends; *at;) {
        struct end_request *r = *at;
        if (!all && r->box != box) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        void (*gone)(void *) = r->gone;
        void *ctx = r->ctx;
        fd_close(&r->held);
        free(r);
        if (gone)
            gone(ctx);
        at = &v->ends; /* it may have changed the list */
    }
}

static struct session *opening(struct vessel *v, uint32_t req)
{
    for (struct session *s = v->sessions; s; s = s->next)
        if (!s->closed && s->state == OPENING && s->req == req)
            return s;
    return NULL;
}

static void on_created(struct vessel *v, struct fields *f, struct msg *m)
{
    uint32_t req = fields_get_u32(f);
    uint32_t box = fields_get_u32(f);
    struct session *s = opening(v, req);

    if (s)
        session_created(s, box, f, m);
    else if (!f->failed)
        link_destroy(v, box); /* closed while it was being made */
}

/* A box whose descriptors we had no room for: of no use to anybody, and the others go on. */
static void on_created_in_vain(struct vessel *v, const struct msg *m)
{
    struct fields f;

    fields_init(&f, m->data, m->len);
    struct session *s = opening(v, fields_get_u32(&f));
    uint32_t box = fields_get_u32(&f);
    if (!f.failed)
        link_destroy(v, box);
    if (s)
        session_failed(s, "there are no descriptors left: raise their number (ulimit -n, or "
                          "LimitNOFILE of the service)");
}

static void on_failed(struct vessel *v, struct fields *f)
{
    char why[sizeof(((struct err *)0)->text)];
    uint32_t req = fields_get_u32(f);
    size_t len;
    const char *text = fields_get_bytes(f, &len);
    struct session *s = opening(v, req);

    snprintf(why, sizeof(why), "%.*s", (int)(len < sizeof(why) ? len : sizeof(why)), text);
    if (s)
        session_failed(s, why);
}

static void on_died(struct vessel *v, struct fields *f)
{
    uint32_t box = fields_get_u32(f);
    int status = (int)fields_get_u32(f);
    bool memory_short = fields_get_u8(f) != 0;

    for (struct session *s = v->sessions; s; s = s->next) {
        if (!s->closed && s->has_box && s->box == box) {
            course_died(s, status, memory_short);
            return;
        }
    }
}

void link_forget_ends(struct vessel *v)
{
    tell_ended(v, 0, true);
}

static void on_state(struct vessel *v, struct fields *f)
{
    uint32_t req = fields_get_u32(f);

    v->last_state.boxes = fields_get_u32(f);
    v->last_state.ready = fields_get_u32(f);
    v->last_state.blank = fields_get_u32(f);
    v->last_state.zygote_pid = (int)fields_get_u32(f);
    v->last_state.zygotes_started = fields_get_u32(f);
    v->state_known = true;
    if (req == v->state_req)
        v->state_req = 0;
    for (struct state_request *r = v->states; r; r = r->next) {
        if (r->req != req)
            continue;
        r->state = v->last_state;
        r->answered = true;
        return;
    }
    for (struct session *s = v->sessions; s; s = s->next) {
        if (!s->closed && s->cell && s->course.barrier_req == req) {
            s->course.barrier_req = 0;
            course_answer(s, AWAIT_BARRIER);
            return;
        }
    }
}

static void on_gone(struct vessel *v, struct fields *f)
{
    size_t len;
    const char *text = fields_get_bytes(f, &len);

    snprintf(v->why, sizeof(v->why), "%.*s", (int)(len < sizeof(v->why) ? len : sizeof(v->why)),
             text);
    link_lost(v, v->why);
}

static void hear(struct vessel *v, struct msg *m)
{
    struct fields f;

    fields_init(&f, m->data, m->len);
    switch (m->type) {
    case KEEPER_CREATED:
        on_created(v, &f, m);
        break;
    case KEEPER_FAILED:
        on_failed(v, &f);
        break;
    case KEEPER_DIED:
        on_died(v, &f);
        break;
    case KEEPER_STATE:
        on_state(v, &f);
        break;
    case KEEPER_GONE:
        on_gone(v, &f);
        break;
    case KEEPER_DESTROYED:
        tell_ended(v, fields_get_u32(&f), false);
        break;
    default:
        break;
    }
}

void link_read(struct vessel *v)
{
    struct err e;

    for (unsigned i = 0; i < TURN && !v->gone; i++) {
        cleanup_msg struct msg m;
        int got = msg_recv(v->keeper.fd, &m, &e);
        if (got < 0 && e.code == EAGAIN)
            return;
        if (got < 0 && e.code == EMFILE && m.type == KEEPER_CREATED)
            on_created_in_vain(v, &m);
        else if (got <= 0)
            link_lost(v, got < 0 ? e.text : "");
        else
            hear(v, &m);
    }
}

void link_lost(struct vessel *v, const char *why)
{
    if (v->gone)
        return;
    v->gone = true;
    if (why != v->why)
        snprintf(v->why, sizeof(v->why), "%.*s", (int)sizeof(v->why) - 1, why);
    source_watch(v, &v->keeper, 0);
    for (struct session *s = v->sessions; s; s = s->next) {
        if (!s->closed)
            course_lost(s, "retort's keeper is gone");
        if (!s->closed)
            requests_lost(s); /* its init goes with the keeper, but nobody reads its socket now */
    }
    tell_ended(v, 0, true);
}
