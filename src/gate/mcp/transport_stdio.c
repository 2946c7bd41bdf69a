/* transport_stdio: messages as lines on two descriptors, which may be pipes, sockets, terminals or files.
 *
 * One peer speaks here, in either era. Descriptors that came from outside are shared with others, who would be
 * surprised to find them non-blocking; so they stay as they are: a read follows the word of epoll that there is
 * something, and a write never has more than a pipe takes that has room (PIPE_BUF). Regular files are always ready,
 * and epoll knows none: they are read and written piece by piece, once in a turn.
 *
 *     reading ──end of input──▶ answering what is under way ──all is said──▶ over
 *        └────────── nobody reads our output any more ──────────────────────▲
 *
 * What waits for a slow reader is bounded: progress is dropped first, then other notifications; while much waits
 * nothing more is read, so that nobody can ask for more than he takes; and of the answers to what was asked before, long
 * ones become errors.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "gate/mcp/protocol.h"
#include "gate/mcp/server.h"

#define READ_PIECE (64u << 10)
#define PROGRESS_WAITING_MAX (1u << 20)
#define NOTIFICATIONS_WAITING_MAX (4u << 20)
#define WAITING_MAX (8u << 20)
#define ANSWERS_WAITING_MAX (32u << 20) /* then long ones are not added any more */
#define ANSWER_SHORT (64u << 10)
#define ANSWER_MAX ((10u << 20) - 4096) /* what a client of the official kind takes in one line */

struct mcp_stdio {
    struct gate *gate;
    struct mcp_peer *peer;
    struct watch in, out;
    int in_fd, out_fd;
    bool in_plain, out_plain; /* always ready */
    bool in_over;             /* the end of input was read */
    bool broken;              /* nobody reads what we write, or it cannot be written */
    struct buf line;          /* what was read of one */
    bool skipping;            /* the rest of one that was too long */
    struct buf waiting;
    size_t sent;
};

struct stdio_call {
    struct mcp_call call; /* first */
    struct mcp_stdio *stdio;
};

static size_t waiting(const struct mcp_stdio *s)
{
    return s->waiting.len - s->sent;
}

/* ---- out ---- */

static ssize_t write_some(struct mcp_stdio *s)
{
    const char *from = s->waiting.data + s->sent;
    size_t len = waiting(s);
    struct pollfd out = {.fd = s->out_fd, .events = POLLOUT};

    ssize_t n = send(s->out_fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0 || errno != ENOTSOCK)
        return n;
    if (!s->out_plain && poll(&out, 1, 0) != 1) {
        errno = EAGAIN;
        return -1;
    }
    return write(s->out_fd, from, len < PIPE_BUF || s->out_plain ? len : PIPE_BUF);
}

/* Also where nothing waits: that the reader has left is told unasked, and by nothing else. */
static void watch_out(struct mcp_stdio *s)
{
    if (s->out_plain)
        return;
    if (s->broken)
        watch_clear(s->gate, &s->out);
    else
        watch_set(s->gate, &s->out, s->out_fd, waiting(s) > 0 ? EPOLLOUT : 0);
}

/* Never ends a call or a peer: whoever has something to say may be in the middle of anything. */
static void flush(struct mcp_stdio *s)
{
    while (waiting(s) > 0 && !s->broken) {
        ssize_t n = write_some(s);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR)
            s->broken = true;
        s->sent += n > 0 ? (size_t)n : 0;
    }
    if (waiting(s) == 0 || s->broken) {
        buf_done(&s->waiting);
        s->sent = 0;
    } else if (s->sent > WAITING_MAX) {
        buf_drop(&s->waiting, s->sent);
        s->sent = 0;
    }
    watch_out(s);
}

static void say(struct mcp_stdio *s, const json_t *message)
{
    if (s->broken)
        return;
    json_add(&s->waiting, message);
    buf_add(&s->waiting, "\n", 1);
    flush(s);
}

/* What may get lost does, where too much waits. */
static void say_unless_slow(struct mcp_stdio *s, json_t *message)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    bool progress = method && strcmp(method, "notifications/progress") == 0;

    if (json_object_get(message, "id") ||
        waiting(s) < (progress ? PROGRESS_WAITING_MAX : NOTIFICATIONS_WAITING_MAX))
        say(s, message);
    json_decref(message);
}

static void on_out(struct watch *w, uint32_t events)
{
    struct mcp_stdio *s = (struct mcp_stdio *)((char *)w - offsetof(struct mcp_stdio, out));

    s->broken = s->broken || (events & (EPOLLERR | EPOLLHUP));
    flush(s);
}

/* ---- calls ---- */

/* A client gives the whole connection up at a line that is too long for it; an error it can go on with. Nor are there
 * more of them than it reads. NULL: nothing is wrong with so many bytes. */
static json_t *refusal(const struct mcp_call *c, size_t len, size_t waited)
{
    if (len > ANSWER_MAX)
        return rpc_error(c->id, MCP_INTERNAL, NULL,
                         "the answer is too long for one line; ask for less of it");
    if (len > ANSWER_SHORT && waited > ANSWERS_WAITING_MAX)
        return rpc_error(c->id, MCP_BUSY, NULL,
                         "too many answers wait to be read; read them, and ask again");
    return NULL;
}

static void on_answer(struct mcp_call *c, json_t *message)
{
    struct mcp_stdio *s = ((struct stdio_call *)c)->stdio;
    size_t before = s->waiting.len, waited = waiting(s);

    if (!s->broken) {
        json_add(&s->waiting, message);
        json_t *refused = refusal(c, s->waiting.len - before, waited);
        if (refused) {
            s->waiting.len = before;
            json_add(&s->waiting, refused);
            json_decref(refused);
        }
        buf_add(&s->waiting, "\n", 1);
        flush(s);
    }
    json_decref(message);
}

static void on_notify(struct mcp_call *c, json_t *message)
{
    say_unless_slow(((struct stdio_call *)c)->stdio, message);
}

static void on_free(struct mcp_call *c)
{
    free(c);
}

static const struct mcp_outlet outlet = {on_answer, on_notify, on_free};

static void take_request(struct mcp_stdio *s, const struct rpc *m)
{
    struct stdio_call *c = xcalloc(1, sizeof(*c));
    bool modern = envelope_is_modern(m, NULL);

    c->stdio = s;
    c->call = (struct mcp_call){.outlet = &outlet,
                                .gate = s->gate,
                                .holder = s->peer->holder,
                                .era = modern ? MCP_MODERN : MCP_LEGACY,
                                .version = modern ? MCP_MODERN_VERSION : s->peer->version,
                                .peer = s->peer};
    mcp_call_fill(&c->call, m);
    mcp_start(&c->call, m, NULL);
}

/* ---- in ---- */

static void refuse(struct mcp_stdio *s, json_t *id, struct mcp_fault *f)
{
    json_t *message = rpc_fault(id, f);

    say(s, message);
    json_decref(message);
}

static void take_message(struct mcp_stdio *s, json_t *message)
{
    struct mcp_fault f = {0};
    struct rpc m;

    if (rpc_read(message, &m, &f) < 0)
        refuse(s, m.id, &f);
    else if (m.kind == RPC_REQUEST)
        take_request(s, &m);
    else if (m.kind == RPC_NOTIFICATION)
        peer_take_notification(s->peer, &m);
    else
        rounds_take_response(s->peer, &m);
}

/* One revision had batches. Their answers may come one by one: each has its id. */
static void take_batch(struct mcp_stdio *s, json_t *messages)
{
    const char *version = s->peer->version;
    struct mcp_fault f = {0};
    json_t *message;
    size_t i;

    if (!version || strcmp(version, "2025-03-26") != 0 || json_array_size(messages) == 0) {
        mcp_fault_set(&f, MCP_INVALID_REQUEST, "batches are not part of this version");
        refuse(s, NULL, &f);
        return;
    }
    json_array_foreach(messages, i, message)
    {
        take_message(s, message);
    }
}

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r", line[i]) || !line[i])
            return false;
    return true;
}

static void take_line(struct mcp_stdio *s, const char *line, size_t len)
{
    struct mcp_fault f = {0};

    if (is_blank(line, len))
        return;
    json_t *message = rpc_parse(line, len, &f);
    if (!message)
        refuse(s, NULL, &f);
    else if (json_is_array(message))
        take_batch(s, message);
    else
        take_message(s, message);
    json_decref(message);
}

static void too_long(struct mcp_stdio *s)
{
    struct mcp_fault f = {0};

    s->skipping = true;
    buf_done(&s->line);
    mcp_fault_set(&f, MCP_INVALID_REQUEST, "a message has at most %u bytes", RPC_MESSAGE_MAX);
    refuse(s, NULL, &f);
}

/* Whole lines of what was read; the rest is kept for the next piece. */
static void take_piece(struct mcp_stdio *s, const char *data, size_t len)
{
    while (len > 0) {
        const char *end = memchr(data, '\n', len);
        size_t n = end ? (size_t)(end - data) : len;
        if (!s->skipping && s->line.len + n > RPC_MESSAGE_MAX)
            too_long(s);
        if (!s->skipping)
            buf_add(&s->line, data, n);
        data += n;
        len -= n;
        if (!end)
            return;
        data++;
        len--;
        if (!s->skipping)
            take_line(s, s->line.data ? s->line.data : "", s->line.len);
        s->skipping = false;
        if (s->line.cap > READ_PIECE)
            buf_done(&s->line);
        s->line.len = 0;
    }
}

/* A last line that lacks its end is one all the same. */
static void end_input(struct mcp_stdio *s)
{
    s->in_over = true;
    watch_clear(s->gate, &s->in);
    if (!s->skipping && s->line.len > 0)
        take_line(s, s->line.data, s->line.len);
    buf_done(&s->line);
    /* Nobody else would end these. */
    listen_end(s->gate, NULL);
    rounds_end(s->peer);
}

static void read_some(struct mcp_stdio *s)
{
    static char piece[READ_PIECE]; /* one thread */
    ssize_t n = read(s->in_fd, piece, sizeof(piece));

    if (n > 0)
        take_piece(s, piece, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        end_input(s);
}

static void on_readable(struct watch *w, uint32_t events)
{
    struct mcp_stdio *s = (struct mcp_stdio *)((char *)w - offsetof(struct mcp_stdio, in));
    (void)events;

    read_some(s);
}

/* ---- the loop ---- */

static bool may_read(const struct mcp_stdio *s)
{
    return !s->in_over && !s->broken && waiting(s) < WAITING_MAX;
}

bool mcp_stdio_turn(struct gate *g)
{
    struct mcp_stdio *s = g->mcp->stdio;

    if (!s)
        return false;
    if (s->in_plain && may_read(s)) {
        read_some(s);
        return true;
    }
    if (!s->in_plain && may_read(s) && s->in.fd < 0)
        watch_set(g, &s->in, s->in_fd, EPOLLIN);
    else if (!s->in_plain && !may_read(s))
        watch_clear(g, &s->in);
    return false;
}

bool mcp_stdio_is_over(const struct gate *g)
{
    const struct mcp_stdio *s = g->mcp->stdio;

    return s && (s->broken || (s->in_over && s->peer->n_calls == 0 && waiting(s) == 0));
}

/* ---- beginning and end ---- */

static void line_send(struct mcp_peer *p, json_t *message)
{
    say_unless_slow(p->carrier, message);
}

static void line_closed(struct mcp_peer *p)
{
    (void)p;
}

static const struct mcp_line line = {line_send, line_closed};

/* Can it be waited for? */
static bool is_plain(const struct gate *g, int fd)
{
    struct epoll_event none = {0};

    if (epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &none) < 0)
        return errno == EPERM;
    epoll_ctl(g->epoll, EPOLL_CTL_DEL, fd, NULL);
    return false;
}

void mcp_stdio_open(struct gate *g, struct holder *h, int in_fd, int out_fd)
{
    struct mcp_stdio *s = xcalloc(1, sizeof(*s));

    *s = (struct mcp_stdio){.gate = g,
                            .in = {-1, on_readable},
                            .out = {-1, on_out},
                            .in_fd = in_fd,
                            .out_fd = out_fd,
                            .in_plain = is_plain(g, in_fd),
                            .out_plain = is_plain(g, out_fd)};
    s->peer = peer_new(g, h, &line);
    s->peer->carrier = s;
    g->mcp->stdio = s;
    watch_out(s);
}

void mcp_stdio_close(struct gate *g)
{
    struct mcp_stdio *s = g->mcp->stdio;

    if (!s)
        return;
    g->mcp->stdio = NULL;
    peer_end(s->peer);
    watch_clear(g, &s->in);
    watch_clear(g, &s->out);
    buf_done(&s->line);
    buf_done(&s->waiting);
    free(s);
}
