/* calls_ask: a question for a model, which the asker answers (asker/asker.h).
 *
 *     client ──question──▶ gate ──order──▶ asker ──▶ the model
 *        ◀────events───── gate ◀──events──── └──▶ gate: sessions, cells and files, as any client has them
 *
 * The gate has no key and no way out; the asker has no box. An order goes through a pipe of its own, with the token
 * of who asked: what the asker does with it is done in that token's name, within its quota. Events come back through
 * another, framed as a client gets them. When the client goes away that pipe is closed, and the asker stops.
 *
 * The asker reads what models say, so it is trusted with the client's own question only: what it sends is bounded,
 * and no event of another name than those that are known gets through.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "asker/asker.h"
#include "base/fd.h"
#include "gate/calls.h"
#include "gate/headers.h"
#include "wire/msg.h"

#define QUESTION_MAX (256u << 10)
#define HISTORY_MAX 100u
#define EVENT_MAX (192u << 20) /* a display of 64 MiB, in base64, and what is around it */
#define ANSWER_MAX (256u << 20)
#define BLOCK (64u << 10)

struct question {
    struct question *next;
    struct gate *gate;
    struct request *request; /* NULL: it has its answer */
    struct stream *stream;   /* NULL: one answer at the end */
    struct watch pipe;
    struct buf in;
    size_t searched; /* bytes of it that have no end of an event */
    uint64_t held;
    /* for one answer at the end; all are JSON */
    struct buf cells;
    char *session, *answer;
};

static struct question *questions;
static unsigned n_questions;

/* ---- its end ---- */

static void question_free(struct question *q)
{
    struct question **at = &questions;
    int fd = q->pipe.fd;

    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    n_questions--;
    watch_clear(q->gate, &q->pipe);
    fd_close(&fd); /* the asker hears it */
    buf_done(&q->in);
    buf_done(&q->cells);
    free(q->session);
    free(q->answer);
    free(q);
}

static void on_abandoned(void *work)
{
    question_free(work);
}

static struct request *take_request(struct question *q)
{
    struct request *r = q->request;

    q->request = NULL;
    request_unwork(r);
    return r;
}

static void fail(struct question *q, unsigned status, const char *code, const char *why)
{
    struct request *r = take_request(q);

    if (q->stream)
        stream_fail(q->stream, why);
    else
        reply_error(r, status, code, "%s", why);
    question_free(q);
}

void questions_refuse(void)
{
    while (questions)
        fail(questions, 503, "draining", "the server is about to stop; try again soon");
}

static void answer(struct question *q)
{
    struct request *r = take_request(q);
    struct buf text = {0};

    if (!q->stream) {
        buf_add_fmt(&text, "{\"session\":%s,\"cells\":[", q->session ? q->session : "null");
        buf_add(&text, q->cells.data, q->cells.len);
        buf_add_fmt(&text, "],\"answer\":%s}\n", q->answer);
        reply_text(r, 200, "application/json", &text);
        buf_done(&text);
    }
    question_free(q);
}

/* ---- events ---- */

/* What the asker could not do. */
static void take_failure(struct question *q, const char *data, size_t len)
{
    json_t *j = json_loadb(data, len, 0, NULL);
    const char *code = json_string_value(json_object_get(j, "code"));
    const char *message = json_string_value(json_object_get(j, "message"));
    json_int_t status = json_integer_value(json_object_get(j, "status"));

    fail(q, status >= 400 && status <= 599 ? (unsigned)status : 502, code ? code : "model_failed",
         message ? message : "the model could not be asked");
    json_decref(j);
}

/* Those that a slow reader of a stream does not miss. */
static bool is_dear(const char *name)
{
    static const char *const names[] = {"session", "cell", "note", "again", "answer"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void keep(struct question *q, const char *name, const char *data, size_t len)
{
    if (strcmp(name, "cell") == 0 && q->cells.len + len < ANSWER_MAX) {
        buf_add(&q->cells, ",", q->cells.len > 0);
        buf_add(&q->cells, data, len);
    }
    char **kept = strcmp(name, "session") == 0  ? &q->session
                  : strcmp(name, "answer") == 0 ? &q->answer
                                                : NULL;
    if (!kept)
        return;
    free(*kept);
    *kept = xcalloc(1, len + 1);
    memcpy(*kept, data, len);
}

static bool is_known(const char *name)
{
    static const char *const names[] = {"session", "asking",  "text",   "code",   "again",
                                        "reply",   "running", "stdout", "stderr", "display",
                                        "result",  "cell",    "note",   "answer", ASKER_FAILED};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* "event: NAME\ndata: JSON" without more lines, and a name that we know. Returns the data. */
static const char *split(const char *text, size_t len, char name[ASKER_NAME_MAX], size_t *ret_len)
{
    static const char event[] = "event: ", data[] = "\ndata: ";
    const char *line = memchr(text, '\n', len);
    size_t name_len = line ? (size_t)(line - text) - strlen(event) : 0;

    if (!line || len < strlen(event) + strlen(data) || memcmp(text, event, strlen(event)) != 0 ||
        name_len == 0 || name_len >= ASKER_NAME_MAX || len < (size_t)(line - text) + strlen(data) ||
        memcmp(line, data, strlen(data)) != 0 ||
        memchr(line + 1, '\n', len - (size_t)(line + 1 - text)))
        return NULL;
    memcpy(name, text + strlen(event), name_len);
    name[name_len] = '\0';
    *ret_len = len - (size_t)(line + strlen(data) - text);
    return is_known(name) ? line + strlen(data) : NULL;
}

/* False: it is over, and gone. */
static bool take_event(struct question *q, const char *text, size_t len)
{
    char name[ASKER_NAME_MAX];
    size_t data_len;
    const char *data = split(text, len, name, &data_len);

    if (!data) {
        fail(q, 502, "model_failed", "the asker cannot be understood");
        return false;
    }
    if (strcmp(name, ASKER_FAILED) == 0) {
        take_failure(q, data, data_len);
        return false;
    }
    bool last = strcmp(name, "answer") == 0;
    if (q->stream)
        stream_event(q->stream, text, len, is_dear(name), last);
    else
        keep(q, name, data, data_len);
    if (last)
        answer(q);
    return !last;
}

/* False: it is over, and gone. */
static bool take_events(struct question *q)
{
    const char *end;
    size_t from = q->searched > 0 ? q->searched - 1 : 0;

    while (q->in.len > from && (end = memmem(q->in.data + from, q->in.len - from, "\n\n", 2))) {
        size_t len = (size_t)(end - q->in.data);
        if (!take_event(q, q->in.data, len))
            return false;
        buf_drop(&q->in, len + 2);
        from = 0;
    }
    q->searched = q->in.len;
    if (q->in.len <= EVENT_MAX)
        return true;
    fail(q, 502, "model_failed", "the asker sends too much at once");
    return false;
}

static void on_events(struct watch *w, uint32_t events)
{
    struct question *q = (struct question *)((char *)w - offsetof(struct question, pipe));
    ssize_t n = read(w->fd, buf_room(&q->in, BLOCK), BLOCK);
    (void)events;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        fail(q, 502, "model_failed", "the answer ended before its end; ask again");
        return;
    }
    q->in.len += (size_t)n;
    if (take_events(q))
        request_holds(q->request, &q->held, q->in.cap + q->cells.cap);
}

/* ---- its beginning ---- */

static int ask_text(struct request *r, const json_t *j, const char *what)
{
    if (json_is_string(j) && json_string_length(j) > 0 && json_string_length(j) <= QUESTION_MAX)
        return 0;
    reply_error(r, 400, "bad_request", "%s must be a text of 1 to %u bytes", what, QUESTION_MAX);
    return -1;
}

/* Earlier questions and their answers. */
static int ask_history(struct request *r, const json_t *history)
{
    const json_t *one;
    size_t i;

    if (!history || json_is_null(history))
        return 0;
    if (!json_is_array(history) || json_array_size(history) > HISTORY_MAX) {
        reply_error(r, 400, "bad_request",
                    "\"history\" must be a list of at most %u {\"question\",\"answer\"}",
                    HISTORY_MAX);
        return -1;
    }
    json_array_foreach(history, i, one)
    {
        if (ask_text(r, json_object_get(one, "question"), "each \"question\" in \"history\"") < 0 ||
            ask_text(r, json_object_get(one, "answer"), "each \"answer\" in \"history\"") < 0)
            return -1;
    }
    return 0;
}

/* How far it may go: as the server has it, or less. */
static int ask_bounds(struct request *r, const json_t *body)
{
    const struct config *c = r->gate->config;
    const struct {
        const char *name;
        double most;
    } bounds[] = {{"attempts", 1000},
                  {"max_cells", c->ask_cells},
                  {"max_time", c->ask_time_s},
                  {"max_tokens", c->ask_tokens}};

    for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
        const json_t *j = json_object_get(body, bounds[i].name);
        double value = json_number_value(j);
        if (!j || json_is_null(j) || (value >= 1 && value <= bounds[i].most))
            continue;
        reply_error(r, 400, "bad_request", "\"%s\" must be a number from 1 to %.0f", bounds[i].name,
                    bounds[i].most);
        return -1;
    }
    const json_t *clean = json_object_get(body, "clean_retries");
    if (!clean || json_is_null(clean) || json_is_boolean(clean))
        return 0;
    reply_error(r, 400, "bad_request", "\"clean_retries\" must be true or false");
    return -1;
}

/* Its own session, or the one that the asker is to make. */
static int ask_where(struct request *r, const json_t *body)
{
    const json_t *session = json_object_get(body, "session");
    struct limits limits;
    unsigned environment;

    if (session && !json_is_null(session)) {
        if (!json_is_string(session)) {
            reply_error(r, 400, "bad_request", "\"session\" must be the id of a session");
            return -1;
        }
        for (const struct live *l = r->gate->lives; l; l = l->next)
            if (l->holder == r->holder && strcmp(l->id, json_string_value(session)) == 0)
                return 0;
        reply_error(r, 404, "not_found", "there is no such session");
        return -1;
    }
    return ask_limits(r, json_object_get(body, "limits"), &limits) < 0 ||
                   ask_environment(r, json_object_get(body, "environment"), &environment) < 0
               ? -1
               : 0;
}

/* The order and the pipe for its events, to the asker. Returns where the events come, or -1. */
static int send_order(const struct gate *g, const char *order)
{
    int order_pipe[2] = {-1, -1}, event_pipe[2] = {-1, -1}, from = -1;
    size_t len = strlen(order);
    cleanup_buf struct buf m = {0};
    struct err e;

    if (pipe2(order_pipe, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(event_pipe, O_CLOEXEC) == 0) {
        /* So that it takes the whole order at once. */
        (void)fcntl(order_pipe[1], F_SETPIPE_SZ, ASKER_ORDER_MAX);
        const int fds[] = {order_pipe[0], event_pipe[1]};
        msg_begin(&m, ASKER_ORDER);
        if (write(order_pipe[1], order, len) == (ssize_t)len &&
            fcntl(event_pipe[0], F_SETFL, O_NONBLOCK) == 0 &&
            msg_try_send(g->asker_fd, &m, fds, 2, &e) == 0)
            from = fd_steal(&event_pipe[0]);
    }
    for (unsigned i = 0; i < 2; i++) {
        fd_close(&order_pipe[i]);
        fd_close(&event_pipe[i]);
    }
    return from;
}

static void begin(struct request *r, json_t *body)
{
    struct gate *g = r->gate;

    json_object_set_new(body, "token", json_string(request_token(r)));
    cleanup_free char *order = json_text(body);
    int from = strlen(order) < ASKER_ORDER_MAX ? send_order(g, order) : -1;
    explicit_bzero(order, strlen(order));
    if (from < 0) {
        reply_later(r, 503, 5, "busy", "the question cannot be handed on now; try again soon");
        return;
    }
    struct question *q = xcalloc(1, sizeof(*q));
    *q = (struct question){.next = questions, .gate = g, .request = r, .pipe = {-1, on_events}};
    questions = q;
    n_questions++;
    const char *accept = request_header(r, MHD_HTTP_HEADER_ACCEPT);
    if (accept && header_wants_events(accept))
        q->stream = stream_new(r);
    request_work(r, on_abandoned, q); /* a stream is an answer already, and ends other work */
    watch_set(g, &q->pipe, from, EPOLLIN);
}

void call_ask(struct request *r)
{
    static const char *const members[] = {"question",    "history",    "session",       "limits",
                                          "environment", "summary",    "attempts",      "max_cells",
                                          "max_time",    "max_tokens", "clean_retries", NULL};
    const struct config *c = r->gate->config;
    json_t *body = ask_object(r, members);
    unsigned summary;

    if (!body)
        return;
    if (r->gate->asker_fd < 0) {
        reply_error(r, 501, "no_model",
                    "this server has no model: \"model\" in its configuration names one");
    } else if (ask_text(r, json_object_get(body, "question"), "\"question\"") == 0 &&
               ask_history(r, json_object_get(body, "history")) == 0 &&
               ask_summary(r, json_object_get(body, "summary"), &summary) == 0 &&
               ask_bounds(r, body) == 0 && ask_where(r, body) == 0) {
        if (n_questions >= c->max_asks)
            reply_later(r, 503, 5, "busy", "%u questions are being answered; try again soon",
                        n_questions);
        else
            begin(r, body);
    }
    json_decref(body);
}
