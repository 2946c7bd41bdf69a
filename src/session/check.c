/* check: is this a complete piece of Python? The interpreter says, while no cell runs.
 *
 * Answers come in the order of the questions. One that nobody waits for any more stays in the list until
 * its answer has come, or that would be taken for the next one's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/inside.h"

#define CHECK_US 1000000
#define CHECKS_MAX 16 /* without an answer: an interpreter that is mute is not asked for ever */
#define INDENT_MAX 1024

/* Oldest first. */
struct check_request {
    struct check_request *next;
    struct session *session;
    check_answered *done;
    void *ctx;
    int64_t deadline_us;
    bool forgotten; /* nobody waits */
};

/* ---- asking ---- */

static struct check_request *add(struct session *s, check_answered *done, void *ctx, struct err *e)
{
    struct check_request **at = &s->checks;
    unsigned n = 0;

    for (; *at; at = &(*at)->next)
        n++;
    if (n >= CHECKS_MAX) {
        err_set(e, EBUSY, "the interpreter has not answered %u such questions", n);
        return NULL;
    }
    struct check_request *r = *at = xcalloc(1, sizeof(*r));
    *r = (struct check_request){
        .session = s, .done = done, .ctx = ctx, .deadline_us = clock_now_us() + CHECK_US};
    vessel_arm(s->vessel, r->deadline_us);
    return r;
}

struct check_request *session_ask_check(struct session *s, const char *code, size_t len,
                                        check_answered *done, void *ctx, struct err *e)
{
    struct vessel *v = s->vessel;

    if (revive_under_way(s)) {
        err_set(e, 0, "another interpreter is about to take the place of one that died");
        e->code = EBUSY;
        return NULL;
    }
    if (session_must_be_idle(s, e) < 0 || session_must_fit(len, e) < 0)
        return NULL;
    /* One that does not read what it was sent gets no more: it would all be held here. */
    if (s->unsent.len > 0) {
        err_set(e, EBUSY, "the interpreter has not read the last question yet");
        return NULL;
    }
    struct check_request *r = add(s, done, ctx, e);
    if (!r)
        return NULL;
    vessel_enter(v);
    v->frame.len = 0;
    frame_begin(&v->frame, CELL_CHECK);
    fields_put_bytes(&v->frame, code, len);
    frame_seal(&v->frame);
    channel_resume(s);
    channel_send(s);
    vessel_leave(v);
    return r;
}

void session_check_cancel(struct check_request *r)
{
    r->forgotten = true;
    r->deadline_us = NEVER;
}

/* ---- answers ---- */

static struct check_request *take_first(struct session *s)
{
    struct check_request *r = s->checks;

    s->checks = r->next;
    return r;
}

/* It is off the list: tell its owner, who may close the session. */
static void tell(struct check_request *r, const struct check_answer *a)
{
    struct check_request was = *r;

    free(r);
    if (!was.forgotten)
        was.done(was.ctx, a);
}

int check_answer(struct session *s, struct fields *f)
{
    unsigned state = fields_get_u8(f);
    size_t len;
    const char *indent = fields_get_bytes(f, &len);
    char blanks[INDENT_MAX + 1];

    if (!fields_end(f) || state > CHECK_INVALID || len > INDENT_MAX || !s->checks)
        return -1;
    for (size_t i = 0; i < len; i++)
        if (indent[i] != ' ' && indent[i] != '\t')
            return -1;
    memcpy(blanks, indent, len);
    blanks[len] = '\0';
    tell(take_first(s), &(struct check_answer){.state = (int)state, .indent = blanks});
    return 0;
}

void checks_lost(struct session *s)
{
    struct err e;

    err_set(&e, EPIPE, "the session has ended");
    while (!s->closed && s->checks)
        tell(take_first(s), &(struct check_answer){.e = &e});
}

void checks_close(struct session *s)
{
    while (s->checks)
        free(take_first(s));
}

int64_t checks_due_us(const struct session *s)
{
    int64_t due = NEVER;

    for (const struct check_request *r = s->checks; r; r = r->next)
        if (r->deadline_us < due)
            due = r->deadline_us;
    return due;
}

void checks_timer(struct session *s, int64_t now_us)
{
    struct err e;

    err_set(&e, ETIMEDOUT, "the interpreter does not answer");
    while (!s->closed && checks_due_us(s) <= now_us) {
        struct check_request *r = s->checks;
        while (r->deadline_us > now_us)
            r = r->next;
        session_check_cancel(r);
        r->done(r->ctx, &(struct check_answer){.e = &e});
    }
}

/* ---- for who waits ---- */

struct outcome {
    bool answered;
    int state;
    char *indent;
    struct err e; /* e.text is empty: there is an answer */
};

static void note(void *ctx, const struct check_answer *a)
{
    struct outcome *o = ctx;

    o->answered = true;
    o->state = a->state;
    if (a->e)
        o->e = *a->e;
    else
        o->indent = xstrdup(a->indent);
}

int session_check(struct session *s, const char *code, size_t len, int *ret_state,
                  char **ret_indent, struct err *e)
{
    struct vessel *v = s->vessel;
    struct outcome o = {0};
    int result = 0;

    vessel_enter(v); /* *s stays in memory */
    struct check_request *r = session_ask_check(s, code, len, note, &o, e);
    while (r && !o.answered && !s->closed && result == 0)
        result = vessel_step(v, -1, e);
    if (r && !o.answered && !s->closed)
        session_check_cancel(r);
    vessel_leave(v);
    if (!r || (!o.answered && result < 0))
        return -1;
    if (!o.answered)
        return err_set(e, 0, "the session was closed");
    if (o.e.text[0]) {
        *e = o.e;
        return -1;
    }
    *ret_state = o.state;
    *ret_indent = o.indent;
    return 0;
}
