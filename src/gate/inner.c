/* inner: see inner.h. */
#include "gate/inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "gate/syntax.h"

#define QUERIES 4

struct query {
    char *name, *value;
};

struct inner {
    struct request request;
    struct inner *prev, *next; /* of all there are */
    struct inner *next_due;
    const struct inner_events *events;
    void *ctx;
    struct query queries[QUERIES];
    char length[24];     /* of the contents, as a header has it */
    struct buf contents; /* for the route's sink */
    size_t sent;
    uint64_t offset, max; /* of a file that is asked for */

    bool due, cancelled, is_answered;
    struct inner_answer answer;
    struct buf bytes; /* the answer's */
};

/* ---- a request without a connection ---- */

const char *inner_header(const struct request *r, const char *name)
{
    const struct inner *i = r->inner;

    return i->length[0] && strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 ? i->length : NULL;
}

const char *inner_query(const struct request *r, const char *name)
{
    const struct inner *i = r->inner;

    for (unsigned n = 0; n < QUERIES; n++)
        if (i->queries[n].name && strcmp(i->queries[n].name, name) == 0)
            return i->queries[n].value;
    return NULL;
}

static char *decoded(const char *text, size_t len)
{
    struct buf b = {0};

    if (syntax_percent_decode(&b, text, len) < 0)
        bug("an inner call has a bad query");
    buf_text(&b);
    return buf_steal(&b);
}

static void parse_query(struct inner *i, const char *text)
{
    for (struct query *q = i->queries; *text; q++) {
        size_t len = strcspn(text, "&"), name = strcspn(text, "=&");
        assert_that(q < i->queries + QUERIES && name < len);
        *q = (struct query){decoded(text, name), decoded(text + name + 1, len - name - 1)};
        text += len + (text[len] == '&');
    }
}

static void make_due(struct inner *i)
{
    struct inner **last = &i->request.gate->inner_due;

    if (i->due)
        return;
    i->due = true;
    while (*last)
        last = &(*last)->next_due;
    i->next_due = NULL;
    *last = i;
}

void inner_resume(struct request *r)
{
    make_due(r->inner);
}

/* ---- answers ---- */

void inner_reply(struct request *r, unsigned status, json_t *body)
{
    struct inner *i = r->inner;

    assert_that(!i->is_answered && !i->cancelled);
    request_unwork(r);
    i->is_answered = true;
    i->answer.status = status;
    i->answer.body = body;
    make_due(i);
}

/* A file that the guest cuts meanwhile is shorter; what it writes may be in it or not. */
static int read_contents(struct buf *ret, int fd, uint64_t offset, uint64_t len, struct err *e)
{
    char *to = buf_room(ret, len + 1);

    while (ret->len < len) {
        ssize_t n = pread(fd, to + ret->len, len - ret->len, (off_t)(offset + ret->len));
        if (n == 0)
            return 0;
        if (n > 0)
            ret->len += (size_t)n;
        else if (errno != EINTR)
            return err_set(e, errno, "it cannot be read");
    }
    return 0;
}

void inner_reply_file(struct request *r, json_t *file, int fd, uint64_t size)
{
    struct inner *i = r->inner;
    cleanup_fd int from = fd;
    uint64_t left = i->offset < size ? size - i->offset : 0;
    struct err e;

    i->answer.size = size;
    if (i->offset > size) {
        json_decref(file);
        reply_error(r, 416, "bad_range", "the file has %llu bytes", (unsigned long long)size);
        return;
    }
    left = left < i->max ? left : i->max;
    request_answer_holds(r, &r->answer_held, left);
    if (!request_has_room(r)) {
        json_decref(file);
        reply_later(r, 503, 1, "busy", "too many large requests and answers are under way");
    } else if (read_contents(&i->bytes, from, i->offset, left, &e) < 0) {
        json_decref(file);
        reply_file_failed(r, &e, false);
    } else {
        i->answer.bytes = buf_text(&i->bytes);
        i->answer.len = i->bytes.len;
        inner_reply(r, 200, file);
    }
}

void inner_wrote(struct request *r, const char *text, size_t len)
{
    const struct inner *i = r->inner;

    if (i->events->wrote)
        i->events->wrote(i->ctx, text, len);
}

/* ---- asking ---- */

static void inner_free(struct inner *i)
{
    struct gate *g = i->request.gate;

    if (i->prev)
        i->prev->next = i->next;
    else
        g->inners = i->next;
    if (i->next)
        i->next->prev = i->prev;
    request_done(&i->request);
    for (unsigned n = 0; n < QUERIES; n++) {
        free(i->queries[n].name);
        free(i->queries[n].value);
    }
    buf_done(&i->contents);
    buf_done(&i->bytes);
    json_decref(i->answer.body);
    free(i);
}

static struct inner *inner_new(struct gate *g, struct holder *h, const char *method,
                               const char *path, const struct inner_events *events, void *ctx)
{
    struct inner *i = xcalloc(1, sizeof(*i));
    cleanup_free char *plain = xstrdup(path);
    cleanup_buf struct buf allow = {0};
    size_t len = strcspn(path, "?");

    *i = (struct inner){.request = {.gate = g,
                                    .inner = i,
                                    .method = method,
                                    .uri = xstrdup(path),
                                    .holder = h,
                                    .started = true,
                                    .began_us = clock_now_us()},
                        .next = g->inners,
                        .events = events,
                        .ctx = ctx};
    if (i->next)
        i->next->prev = i;
    g->inners = i;
    g->n_requests++;
    plain[len] = '\0';
    i->request.route = route_find(method, plain, i->request.params, &allow);
    if (path[len])
        parse_query(i, path + len + 1);
    return i;
}

/* What is asked before a request of HTTP comes to its handler, but for who it is. True: it is answered. */
static bool refuse(struct request *r, size_t body)
{
    if (!r->route)
        reply_error(r, 404, "not_found", "there is no such call");
    else if (r->gate->draining)
        reply_later(r, 503, 5, "draining", "the server is about to stop; try again soon");
    else if (r->route->body == BODY_JSON && body > r->route->body_max)
        reply_error(r, 413, "too_large", "a body of this call has at most %llu bytes",
                    (unsigned long long)r->route->body_max);
    else if (!request_has_room(r))
        reply_later(r, 503, 1, "busy", "too many large requests and answers are under way");
    return r->inner->is_answered;
}

struct inner *inner_call(struct gate *g, struct holder *h, const char *method, const char *path,
                         json_t *body, const struct inner_events *events, void *ctx)
{
    struct inner *i = inner_new(g, h, method, path, events, ctx);
    struct request *r = &i->request;

    if (body)
        json_add(&r->body, body);
    json_decref(body);
    request_holds(r, &r->body_held, r->body.cap);
    if (!refuse(r, r->body.len)) {
        r->body_over = true;
        r->route->handle(r);
    }
    buf_done(&r->body);
    return i;
}

/* Give the sink what it takes. Whoever works for it may answer meanwhile. */
static void feed(struct inner *i)
{
    struct request *r = &i->request;
    const struct body_sink *sink = r->route->sink;

    while (!i->is_answered && !r->stalled && i->sent < i->contents.len)
        i->sent += sink->piece(r, i->contents.data + i->sent, i->contents.len - i->sent);
    if (i->is_answered || r->stalled || r->body_over)
        return;
    r->body_over = true;
    sink->end(r);
}

struct inner *inner_put(struct gate *g, struct holder *h, const char *path, struct buf *contents,
                        const struct inner_events *events, void *ctx)
{
    struct inner *i = inner_new(g, h, "PUT", path, events, ctx);
    struct request *r = &i->request;

    i->contents = *contents;
    *contents = (struct buf){0};
    snprintf(i->length, sizeof(i->length), "%zu", i->contents.len);
    request_holds(r, &r->body_held, i->contents.cap);
    if (!refuse(r, i->contents.len)) {
        r->route->sink->begin(r);
        feed(i);
    }
    return i;
}

struct inner *inner_get(struct gate *g, struct holder *h, const char *path, uint64_t offset,
                        uint64_t max, const struct inner_events *events, void *ctx)
{
    struct inner *i = inner_new(g, h, "GET", path, events, ctx);

    i->offset = offset;
    i->max = max;
    if (!refuse(&i->request, 0))
        i->request.route->handle(&i->request);
    return i;
}

const struct inner_answer *inner_untold(const struct inner *i)
{
    return i->is_answered ? &i->answer : NULL;
}

void inner_cancel(struct inner *i)
{
    i->cancelled = true;
    if (!i->is_answered)
        request_abandon(&i->request);
    make_due(i);
}

/* ---- the loop's part ---- */

static void work_off(struct inner *i)
{
    i->due = false;
    if (i->cancelled) {
        inner_free(i);
    } else if (i->is_answered) {
        if (i->events->answered)
            i->events->answered(i->ctx, &i->answer);
        inner_free(i);
    } else if (i->contents.data || i->length[0]) {
        feed(i);
    }
}

void inner_turn(struct gate *g)
{
    struct inner *next = g->inner_due;

    g->inner_due = NULL; /* what these bring about has the next turn */
    while (next) {
        struct inner *i = next;
        next = i->next_due;
        work_off(i);
    }
}

void inner_close(struct gate *g)
{
    for (struct inner *i = g->inners; i; i = i->next)
        if (!i->cancelled)
            inner_cancel(i);
    while (g->inner_due)
        inner_turn(g);
}
