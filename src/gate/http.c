/* http: requests, from libmicrohttpd to a handler and back. See inside.h for the states.
 *
 * libmicrohttpd parses; we decide. What can be refused is refused when the headers are there, before the
 * client has sent a body: unknown host or page, no token, no such call, a body too large.
 *
 * A suspended connection is not looked at by libmicrohttpd. So that a client who leaves is noticed while
 * its cell runs, we watch the socket ourselves.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "gate/headers.h"
#include "gate/inner.h"
#include "gate/inside.h"

/* Of one connection: headers have to fit in it, and half of it is what one read of a body can take. All of it
 * stays in memory while the connection does, whoever opened it. */
#define BUFFER (64u << 10)
#define GO_ON 4
#define DISCARD_MAX (256u << 20)
/* Descriptors. */
#define FDS_OWN 64
#define FDS_OF_SESSION 10   /* its channels, its meters and its workspace */
#define FDS_OF_CONNECTION 2 /* its socket, and a file or a pipe */
#define FEW_CONNECTIONS 16

/* ---- small things ---- */

const char *request_header(struct request *r, const char *name)
{
    if (r->inner)
        return inner_header(r, name);
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

const char *request_query(struct request *r, const char *name)
{
    if (r->inner)
        return inner_query(r, name);
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

void request_work(struct request *r, void (*abandon)(void *work), void *work)
{
    r->abandon = abandon;
    r->work = work;
}

void request_unwork(struct request *r)
{
    r->abandon = NULL;
    r->work = NULL;
}

void request_abandon(struct request *r)
{
    void (*tell)(void *) = r->abandon;
    void *work = r->work;

    request_unwork(r);
    if (tell)
        tell(work);
}

/* ---- waiting ---- */

/* The client has closed its side. While it waits for an answer that means that it has gone away. Else
 * libmicrohttpd will see it, or has what was sent before still to read; but an end that came together with the
 * last bytes it may never see, so we come back to it. */
static void on_hangup(struct watch *w, uint32_t events)
{
    struct client *c = (struct client *)((char *)w - offsetof(struct client, socket));
    struct request *r = c->request;
    (void)events;

    if (r && r->suspended) {
        r->gone = true;
        request_abandon(r);
        request_resume(r);
        return;
    }
    c->hung_up_ms = clock_wall_ms();
    gate_arm(c->gate, c->hung_up_ms + HANGUP_MS);
}

static void suspend(struct request *r)
{
    struct watch *socket = &r->client->socket;

    r->suspended = true;
    MHD_suspend_connection(r->connection);
    watch_set(r->gate, socket, socket->fd, EPOLLRDHUP | EPOLLONESHOT);
}

void request_resume(struct request *r)
{
    r->stalled = false;
    if (r->inner)
        inner_resume(r);
    if (!r->suspended)
        return;
    r->suspended = false;
    MHD_resume_connection(r->connection);
}

void request_pause(struct request *r)
{
    suspend(r);
}

void request_yield(struct request *r)
{
    struct request **last = &r->gate->yielding;

    suspend(r);
    while (*last)
        last = &(*last)->next_yielding;
    r->next_yielding = NULL;
    *last = r;
}

static void unyield(struct request *r)
{
    for (struct request **at = &r->gate->yielding; *at; at = &(*at)->next_yielding)
        if (*at == r) {
            *at = r->next_yielding;
            return;
        }
}

void requests_go_on(struct gate *g)
{
    /* A few at a time, however many there are: everybody waits for a turn to end. */
    for (unsigned i = 0; i < GO_ON && g->yielding; i++) {
        struct request *r = g->yielding;
        g->yielding = r->next_yielding;
        request_resume(r);
    }
}

void request_kick(struct request *r)
{
    r->gone = true;
    shutdown(r->client->socket.fd, SHUT_RDWR);
    request_resume(r);
}

void request_reply(struct request *r, unsigned status, struct MHD_Response *response)
{
    assert_that(!r->inner && !r->response && !r->queued);
    request_unwork(r);
    r->response = response;
    r->status = status;
    request_resume(r);
}

/* A page that may call us may read the answer too. */
static void allow_page(struct request *r)
{
    MHD_add_response_header(r->response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, r->origin);
    MHD_add_response_header(r->response, MHD_HTTP_HEADER_VARY, "Origin");
    MHD_add_response_header(r->response, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS,
                            "Mcp-Session-Id");
}

static enum MHD_Result queue(struct request *r)
{
    if (r->origin)
        allow_page(r);
    enum MHD_Result result = MHD_queue_response(r->connection, r->status, r->response);

    r->queued = true;
    MHD_destroy_response(r->response);
    r->response = NULL;
    return result;
}

/* ---- who and what ---- */

struct count {
    const char *name;
    unsigned n;
};

static enum MHD_Result count_one(void *ctx, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct count *c = ctx;
    (void)kind;
    (void)value;

    c->n += strcasecmp(name, c->name) == 0;
    return MHD_YES;
}

unsigned request_count_headers(struct request *r, const char *name)
{
    struct count c = {.name = name};

    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, count_one, &c);
    return c.n;
}

/* A page in somebody's browser can reach a server on loopback. It cannot choose "Host:" unless its own
 * name leads to us, and it cannot hide its "Origin:". */
static int check_page(struct request *r)
{
    const char *host = request_header(r, MHD_HTTP_HEADER_HOST);
    const char *origin = request_header(r, MHD_HTTP_HEADER_ORIGIN);
    char *const *hosts = r->gate->config->hosts;

    if (request_count_headers(r, MHD_HTTP_HEADER_HOST) > 1) {
        reply_error(r, 400, "bad_request", "a request has one host");
        return -1;
    }
    if (!header_host_ok(host ? host : "", hosts)) {
        reply_error(
            r, 421, "wrong_host",
            "this server is not known by that name; add it to \"hosts\" in its configuration");
        return -1;
    }
    r->origin = origin;
    if (origin && !header_origin_ok(origin, host ? host : "", r->gate->config->origins)) {
        r->origin = NULL;
        reply_error(
            r, 403, "forbidden_origin",
            "pages of that origin may not call this server; \"origins\" in its configuration "
            "names those that may");
        return -1;
    }
    return 0;
}

const char *request_token(struct request *r)
{
    static const char bearer[] = "Bearer ";
    const char *text = request_header(r, MHD_HTTP_HEADER_AUTHORIZATION);

    if (text && strncasecmp(text, bearer, sizeof(bearer) - 1) == 0)
        return text + sizeof(bearer) - 1 + strspn(text + sizeof(bearer) - 1, " ");
    return request_header(r, "X-API-Key");
}

static int check_token(struct request *r)
{
    const char *text = request_token(r);
    struct token token;
    struct err e = {0};

    int found = text ? store_token_find(r->gate->store, text, strlen(text), &token, &e) : 0;
    if (found < 0) {
        reply_store_failed(r, &e);
        return -1;
    }
    if (!found) {
        reply_error(r, 401, "unauthorized",
                    text ? "this token is not known here, or was revoked"
                         : "give a token: \"Authorization: Bearer TOKEN\"");
        return -1;
    }
    r->holder = holder_get(r->gate, &token);
    return 0;
}

/* Where the path begins: a client may name the whole of it, with scheme and host. */
static const char *path_of(const char *uri)
{
    const char *scheme_end = uri[0] == '/' ? NULL : strstr(uri, "://");
    const char *path = scheme_end ? strchr(scheme_end + 3, '/') : uri;

    return path ? path : "/";
}

static int check_route(struct request *r)
{
    cleanup_buf struct buf allow = {0};
    const char *from = path_of(r->uri);
    size_t len = strcspn(from, "?");
    cleanup_free char *path = xcalloc(1, len + 1);

    memcpy(path, from, len);
    r->route = route_find(r->method, path, r->params, &allow);
    if (r->route)
        return 0;
    if (allow.len > 0 && r->origin && strcmp(r->method, MHD_HTTP_METHOD_OPTIONS) == 0) {
        reply_preflight(r, buf_text(&allow));
        return -1;
    }
    if (allow.len == 0) {
        reply_error(r, 404, "not_found", "there is no such call; /openapi.json lists them");
        return -1;
    }
    reply_error(r, 405, "method_not_allowed", "this path takes %s", buf_text(&allow));
    response_header(r->response, MHD_HTTP_HEADER_ALLOW, buf_text(&allow));
    return -1;
}

static bool is_type(const char *type, const char *name)
{
    size_t len = strcspn(type, "; \t");

    return len == strlen(name) && strncasecmp(type, name, len) == 0;
}

/* JSON, or what curl says when it is told nothing. Not where programs alone call: what a page can send without being
 * asked for leave (a form, a body without a type) is none of theirs. */
static bool may_be_json(const struct route *route, const char *type)
{
    if (route->says_json)
        return type && is_type(type, "application/json");
    return !type || is_type(type, "application/json") ||
           is_type(type, "application/x-www-form-urlencoded");
}

/* What the headers say of the body. */
static int check_body(struct request *r)
{
    const char *length = request_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *coding = request_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    const char *type = request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);

    if (request_count_headers(r, MHD_HTTP_HEADER_CONTENT_LENGTH) > 1 || (length && coding)) {
        reply_error(r, 400, "bad_request", "a body has one length, or chunks");
        return -1;
    }
    if (coding && strcasecmp(coding, "chunked") != 0) {
        reply_error(r, 501, "not_implemented", "the only transfer coding is \"chunked\"");
        return -1;
    }
    if (r->route->body != BODY_JSON)
        return 0;
    if (!may_be_json(r->route, type)) {
        reply_error(r, 415, "unsupported_media_type", "send \"Content-Type: application/json\"");
        return -1;
    }
    if (length && strtoull(length, NULL, 10) > r->route->body_max) {
        reply_error(r, 413, "too_large", "a body of this call has at most %llu bytes",
                    (unsigned long long)r->route->body_max);
        return -1;
    }
    return 0;
}

static void begin(struct request *r)
{
    if (check_page(r) < 0 || check_route(r) < 0 || (!r->route->open && check_token(r) < 0))
        return;
    if (r->gate->draining && !r->route->open) {
        reply_later(r, 503, 5, "draining", "the server is about to stop; try again soon");
        return;
    }
    if (check_body(r) < 0)
        return;
    if (r->route->sink)
        r->route->sink->begin(r);
}

/* ---- libmicrohttpd's callbacks ---- */

static void collect(struct request *r, const char *data, size_t len)
{
    if (r->body.len + len > r->route->body_max)
        reply_error(r, 413, "too_large", "a body of this call has at most %llu bytes",
                    (unsigned long long)r->route->body_max);
    else if (!request_has_room(r))
        reply_later(r, 503, 1, "busy", "too many large requests and answers are under way");
    if (r->response)
        buf_done(&r->body);
    else
        buf_add(&r->body, data, len);
    request_holds(r, &r->body_held, r->body.cap);
}

static enum MHD_Result take_piece(struct request *r, const char *data, size_t *len)
{
    if (r->response ||
        r->route->body == BODY_NONE) { /* the answer is known: the rest is read past */
        r->discarded += *len;
        *len = 0;
        return r->discarded > DISCARD_MAX ? MHD_NO : MHD_YES;
    }
    if (r->route->body == BODY_JSON) {
        collect(r, data, *len);
        *len = 0;
        return MHD_YES;
    }
    r->stalled = false;
    size_t taken = r->route->sink->piece(r, data, *len);
    if (r->response)
        *len = 0;
    else
        *len -= taken;
    if (r->stalled)
        suspend(r);
    return MHD_YES;
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *len, void **of)
{
    struct request *r = *of;
    (void)ctx;
    (void)url;
    (void)version;

    r->gate->idle_turns = 0;
    if (r->gone)
        return MHD_NO;
    if (!r->started) {
        r->started = true;
        r->connection = connection;
        r->method = method;
        begin(r);
        if (r->response)
            return queue(r);
        r->in_begin = r->stalled;
        if (r->stalled)
            suspend(r);
        return MHD_YES;
    }
    if (r->in_begin) { /* the call that suspended it is made once more */
        r->in_begin = false;
        return r->response ? queue(r) : MHD_YES;
    }
    if (*len > 0)
        return take_piece(r, data, len);
    if (!r->body_over && !r->response) {
        r->body_over = true;
        if (r->route->sink)
            r->route->sink->end(r);
        else
            r->route->handle(r);
        buf_done(&r->body); /* whoever needs it has it in another form, for which it still counts */
    }
    if (r->response)
        return queue(r);
    suspend(r);
    return MHD_YES;
}

/* The first that we hear of a request: its line was read. */
static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    struct gate *g = ctx;
    struct request *r = xcalloc(1, sizeof(*r));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    *r = (struct request){.gate = g,
                          .client = info->socket_context,
                          .connection = connection,
                          .uri = xstrdup(uri),
                          .began_us = clock_now_us()};
    r->client->request = r;
    gate_arm(g, clock_wall_ms() + CLIENT_ASK_MS);
    g->n_requests++;
    return r;
}

void request_done(struct request *r)
{
    request_abandon(r);
    request_holds_nothing(r);
    r->gate->n_requests--;
    buf_done(&r->body);
    for (unsigned i = 0; i < PARAMS; i++)
        free(r->params[i]);
    free(r->uri);
}

static void complete(struct request *r, bool whole)
{
    r->client->request = NULL;
    r->client->idle_ms = clock_now_ms();
    unyield(r);
    request_abandon(r);
    count_request(r, whole || r->queued ? r->status : 0);
    if (r->response)
        MHD_destroy_response(r->response);
    request_done(r);
    free(r);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **of,
                         enum MHD_RequestTerminationCode how)
{
    (void)ctx;
    (void)connection;
    if (*of)
        complete(*of, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *of = NULL;
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **of,
                          enum MHD_ConnectionNotificationCode what)
{
    struct gate *g = ctx;
    struct client *c = *of;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        /* libmicrohttpd tells no end of a request whose query it could not take apart. */
        if (c->request)
            complete(c->request, false);
        watch_clear(g, &c->socket);
        *c->at = c->next;
        if (c->next)
            c->next->at = c->at;
        free(c);
        return;
    }
    c = *of = xcalloc(1, sizeof(*c));
    *c = (struct client){.gate = g,
                         .socket = {-1, on_hangup},
                         .idle_ms = clock_now_ms(),
                         .next = g->clients,
                         .at = &g->clients};
    if (c->next)
        c->next->at = &c->next;
    g->clients = c;
    gate_arm(g, clock_wall_ms() + CLIENT_IDLE_S * 1000);
    watch_set(g, &c->socket,
              MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
              EPOLLRDHUP | EPOLLONESHOT);
}

/* Its complaints are about clients, who have been answered. */
static void on_log(void *ctx, const char *fmt, va_list ap)
{
    (void)ctx;
    (void)fmt;
    (void)ap;
}

/* Sessions go before: a box whose descriptors find no place cannot be used, a connection can wait outside. */
static unsigned connections_most(const struct config *c)
{
    struct rlimit l;
    uint64_t taken = FDS_OWN + (uint64_t)FDS_OF_SESSION * c->max_sessions, most = FEW_CONNECTIONS;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
        return c->max_connections;
    if (l.rlim_cur > taken + FEW_CONNECTIONS * FDS_OF_CONNECTION)
        most = (l.rlim_cur - taken) / FDS_OF_CONNECTION;
    if (most >= c->max_connections)
        return c->max_connections;
    log_line("descriptors=%llu connections=%llu: raise the number of descriptors (ulimit -n, or "
             "LimitNOFILE of the service) for more",
             (unsigned long long)l.rlim_cur, (unsigned long long)most);
    return (unsigned)most;
}

/* Paths are decoded by us, from the raw text, once; queries by libmicrohttpd. */
int http_start(struct gate *g, int listen_fd, struct err *e)
{
    g->http = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_access, g,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, g, MHD_OPTION_NOTIFY_COMPLETED, on_completed, g,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, g, MHD_OPTION_CONNECTION_LIMIT,
        connections_most(g->config), MHD_OPTION_CONNECTION_TIMEOUT, CLIENT_IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)BUFFER, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (!g->http)
        return err_set(e, errno, "cannot start the HTTP server");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(g->http, MHD_DAEMON_INFO_EPOLL_FD);
    watch_set(g, &g->http_watch, info->epoll_fd, EPOLLIN);
    return 0;
}

bool http_is_sending(const struct gate *g)
{
    for (const struct client *c = g->clients; c; c = c->next) {
        struct pollfd socket = {.fd = c->socket.fd, .events = POLLOUT};
        if (c->request && c->request->queued && !c->request->suspended &&
            poll(&socket, 1, 0) == 1 && (socket.revents & POLLOUT))
            return true;
    }
    return false;
}

int http_turn(struct gate *g)
{
    MHD_UNSIGNED_LONG_LONG wait;

    if (!g->http)
        return -1;
    MHD_run(g->http);
    if (MHD_get_timeout(g->http, &wait) != MHD_YES)
        return -1;
    return wait > 60000 ? 60000 : (int)wait;
}

void http_stop_accepting(struct gate *g)
{
    int fd = g->http ? MHD_quiesce_daemon(g->http) : -1;

    if (fd >= 0)
        close(fd);
}

void http_stop(struct gate *g)
{
    /* libmicrohttpd does not stop, it aborts, while a connection is suspended: those that still wait for a cell
     * or a session's end are let go. One turn has it see that. */
    for (struct client *c = g->clients; c; c = c->next)
        if (c->request && c->request->suspended)
            request_kick(c->request);
    MHD_run(g->http);
    watch_clear(g, &g->http_watch);
    MHD_stop_daemon(g->http);
    g->http = NULL;
}
