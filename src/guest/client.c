/* client: see client.h. */
#include "guest/client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define CONNECT_SECONDS 15L
#define SILENCE_SECONDS 60u /* a stream has a comment every 10 */
#define BUFFER (256L << 10)
#define BATCH 16

/* What an epoll event is about; the descriptor is beside it. */
enum { FROM_SERVER, FROM_TIMER, FROM_WAKER, FROM_SOURCE };

struct client {
    CURLM *multi;
    int epoll;
    int timer; /* libcurl's */
    int waker; /* ours */
    struct call *calls;
    char *base;
    char *remedy;
    char *authorization; /* the header, or NULL */
    bool loopback;
    int64_t wake_ms; /* when the waker is due; 0: never */
    struct client_hook *hooks;
};

struct call_inside {
    CURL *easy;
    struct curl_slist *headers;
    char why[CURL_ERROR_SIZE];
    bool paused;  /* the source of the upload has nothing now */
    bool added;   /* to the multi handle */
    uint64_t got; /* bytes, in pieces */
};

/* ---- descriptors ---- */

static void watch(struct client *c, int op, int fd, int kind, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.u64 = (uint64_t)kind << 32 | (uint32_t)fd};

    /* libcurl closes a socket before it says so: then epoll has forgotten it already. */
    if (epoll_ctl(c->epoll, op, fd, &ev) < 0 && op == EPOLL_CTL_ADD)
        bug("epoll_ctl: %s", strerror(errno));
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct client *c = ctx;
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    (void)easy;

    if (what == CURL_POLL_REMOVE) {
        watch(c, EPOLL_CTL_DEL, fd, FROM_SERVER, 0);
        return 0;
    }
    watch(c, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, FROM_SERVER, events);
    curl_multi_assign(c->multi, fd, c);
    return 0;
}

static void set_timer(int fd, long ms)
{
    struct itimerspec spec = {0};

    if (ms >= 0) {
        spec.it_value.tv_sec = ms / 1000;
        spec.it_value.tv_nsec = ms % 1000 * 1000000 + 1; /* 0 would disarm it */
    }
    if (timerfd_settime(fd, 0, &spec, NULL) < 0)
        bug("timerfd_settime: %s", strerror(errno));
}

static int on_timer(CURLM *multi, long ms, void *ctx)
{
    const struct client *c = ctx;
    (void)multi;

    set_timer(c->timer, ms);
    return 0;
}

void client_wake(struct client *c, int ms)
{
    int64_t at_ms = clock_now_ms() + ms;

    if (c->wake_ms && c->wake_ms <= at_ms)
        return;
    c->wake_ms = at_ms;
    set_timer(c->waker, ms);
}

static void sleep_on(struct client *c)
{
    c->wake_ms = 0;
    set_timer(c->waker, -1);
}

/* ---- life ---- */

static int open_descriptors(struct client *c, struct err *e)
{
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    c->waker = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->epoll < 0 || c->timer < 0 || c->waker < 0)
        return err_set(e, errno, "cannot make an epoll descriptor and its timers");
    watch(c, EPOLL_CTL_ADD, c->timer, FROM_TIMER, EPOLLIN);
    watch(c, EPOLL_CTL_ADD, c->waker, FROM_WAKER, EPOLLIN);
    return 0;
}

struct client *client_new(const struct address *a, const char *remedy, struct err *e)
{
    struct client *c = xcalloc(1, sizeof(*c));

    *c = (struct client){.epoll = -1, .timer = -1, .waker = -1};
    c->base = xstrdup(a->base);
    c->remedy = xstrdup(remedy);
    c->loopback = a->loopback;
    if (a->token)
        c->authorization = xasprintf("Authorization: Bearer %s", a->token);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(c->multi = curl_multi_init())) {
        err_set(e, 0, "libcurl cannot be used");
        client_free(c);
        return NULL;
    }
    if (open_descriptors(c, e) < 0) {
        client_free(c);
        return NULL;
    }
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    return c;
}

void client_free(struct client *c)
{
    while (c->calls)
        call_end(c->calls);
    if (c->multi)
        curl_multi_cleanup(c->multi);
    fd_close(&c->epoll);
    fd_close(&c->timer);
    fd_close(&c->waker);
    free(c->base);
    free(c->remedy);
    if (c->authorization)
        explicit_bzero(c->authorization, strlen(c->authorization));
    free(c->authorization);
    free(c);
}

int client_fd(const struct client *c)
{
    return c->epoll;
}

void client_hook_on(struct client *c, struct client_hook *hook)
{
    hook->next = c->hooks;
    c->hooks = hook;
}

void client_hook_off(struct client *c, struct client_hook *hook)
{
    for (struct client_hook **at = &c->hooks; *at; at = &(*at)->next)
        if (*at == hook) {
            *at = hook->next;
            return;
        }
}

/* ---- one call, as libcurl sees it ---- */

static long status_of(const struct call *call)
{
    long status = 0;

    curl_easy_getinfo(call->inside->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static bool too_much(struct call *call, uint64_t bytes)
{
    if (!call->spec.bounded || bytes <= call->spec.max)
        return false;
    err_set(&call->e, EFBIG, "it claims more bytes than the workspace may hold");
    call->ours = true;
    return true;
}

/* "Text/Event-Stream; charset=utf-8" is "text/event-stream". One that does not fit is none that we know. */
static void take_type(struct call *call)
{
    const char *said = NULL;

    curl_easy_getinfo(call->inside->easy, CURLINFO_CONTENT_TYPE, &said);
    size_t len = said ? strcspn(said, "; \t") : 0;
    if (len > CALL_TYPE_LONGEST)
        len = 0;
    for (size_t i = 0; i < len; i++)
        call->type[i] = (char)tolower((unsigned char)said[i]);
    call->type[len] = '\0';
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct call *call = ctx;
    curl_off_t length = -1;

    if (n > 2 || (data[0] != '\r' && data[0] != '\n'))
        return size * n;
    take_type(call);
    if (status_of(call) != 200)
        return size * n;
    call->answered = true;
    curl_easy_getinfo(call->inside->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return length > 0 && too_much(call, (uint64_t)length) ? 0 : size * n;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct call *call = ctx;
    size_t len = size * n, room = CALL_BODY_MAX - call->body.len;

    if (call->spec.piece && status_of(call) == 200) {
        call->inside->got += len;
        call->ours = too_much(call, call->inside->got) ||
                     call->spec.piece(call->spec.ctx, data, len, &call->e) < 0;
        return call->ours ? 0 : len;
    }
    buf_add(&call->body, data, len < room ? len : room);
    return len;
}

/* A pipe that has nothing yet must not hold the loop. */
static size_t on_read(char *to, size_t size, size_t n, void *ctx)
{
    struct call *call = ctx;
    struct pollfd p = {.fd = call->spec.upload_fd, .events = POLLIN};

    if (poll(&p, 1, 0) == 0) {
        call->inside->paused = true;
        watch(call->client, EPOLL_CTL_ADD, p.fd, FROM_SOURCE, EPOLLIN);
        return CURL_READFUNC_PAUSE;
    }
    ssize_t got = read(p.fd, to, size * n);
    if (got >= 0)
        return (size_t)got;
    err_set(&call->e, errno, "cannot read it");
    call->ours = true;
    return CURL_READFUNC_ABORT;
}

/* libcurl begins again where a connection that it kept was closed meanwhile. */
static int on_seek(void *ctx, curl_off_t offset, int origin)
{
    const struct call *call = ctx;

    return lseek(call->spec.upload_fd, offset, origin) < 0 ? CURL_SEEKFUNC_CANTSEEK
                                                           : CURL_SEEKFUNC_OK;
}

static void resume_source(struct client *c, int fd)
{
    watch(c, EPOLL_CTL_DEL, fd, FROM_SOURCE, 0);
    for (struct call *call = c->calls; call; call = call->next)
        if (call->inside->paused && call->spec.upload_fd == fd) {
            call->inside->paused = false;
            curl_easy_pause(call->inside->easy, CURLPAUSE_CONT);
            return;
        }
}

static void add_header(struct call *call, const char *line)
{
    assert_that(!strpbrk(line, "\r\n")); /* a second header would be in it */
    struct curl_slist *more = curl_slist_append(call->inside->headers, line);

    if (!more)
        bug("out of memory (a header)");
    call->inside->headers = more;
}

static void add_headers(struct call *call)
{
    const char *accept = call->spec.accept ? call->spec.accept : "application/json";
    cleanup_free char *line = xasprintf("Accept: %s", accept);

    add_header(call, line);
    if (call->client->authorization)
        add_header(call, call->client->authorization);
    if (call->spec.body) {
        add_header(call, "Content-Type: application/json");
        /* Else a large one waits for a word that many servers never say. */
        add_header(call, "Expect:");
    }
    for (const char *const *more = call->spec.headers; more && *more; more++)
        add_header(call, *more);
    curl_easy_setopt(call->inside->easy, CURLOPT_HTTPHEADER, call->inside->headers);
}

/* There may be keys in them. */
static void wipe_headers(struct curl_slist *headers)
{
    for (struct curl_slist *h = headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(headers);
}

/* true: its end is in sight, so that it may be waited for. */
static bool set_upload(struct call *call, CURL *easy)
{
    struct stat st;
    bool known = fstat(call->spec.upload_fd, &st) == 0 && S_ISREG(st.st_mode);

    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, call);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
                     known ? (curl_off_t)st.st_size : (curl_off_t)-1);
    return known;
}

static void set_method(struct call *call, CURL *easy)
{
    const char *body = call->spec.body ? call->spec.body : "";
    bool patient = false;

    if (call->spec.upload) {
        patient = !set_upload(call, easy);
    } else if (strcmp(call->spec.method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
    } else if (strcmp(call->spec.method, "GET") != 0) {
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->spec.method);
    }
    if (!patient) {
        unsigned silence_s = call->spec.silence_s ? call->spec.silence_s : SILENCE_SECONDS;
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)silence_s);
    }
}

static void set_connection(struct call *call, CURL *easy)
{
    const char *authorities = getenv("SSL_CERT_FILE");

    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "retort/" RETORT_VERSION);
    if (call->client->loopback)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (authorities && *authorities)
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
}

struct call *call_begin(struct client *c, const struct call_spec *spec)
{
    struct call *call = xcalloc(1, sizeof(*call));
    cleanup_free char *url = xasprintf("%s%s", c->base, spec->path);
    CURL *easy = curl_easy_init();

    if (!easy)
        bug("out of memory (a call)");
    call->client = c;
    call->spec = *spec;
    call->inside = xcalloc(1, sizeof(*call->inside));
    call->inside->easy = easy;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->inside->why);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    set_connection(call, easy);
    set_method(call, easy);
    add_headers(call);
    call->spec.headers = NULL; /* the caller's, who may free them now */
    if (curl_multi_add_handle(c->multi, easy) != CURLM_OK)
        bug("a call was made where none can be");
    call->inside->added = true;
    call->next = c->calls;
    c->calls = call;
    return call;
}

static void take_off(struct call *call)
{
    if (call->inside->paused)
        watch(call->client, EPOLL_CTL_DEL, call->spec.upload_fd, FROM_SOURCE, 0);
    call->inside->paused = false;
    if (call->inside->added)
        curl_multi_remove_handle(call->client->multi, call->inside->easy);
    call->inside->added = false;
}

void call_end(struct call *call)
{
    struct call **at = &call->client->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    take_off(call);
    curl_easy_cleanup(call->inside->easy);
    wipe_headers(call->inside->headers);
    free(call->inside);
    free(call->spec.body);
    buf_done(&call->body);
    free(call);
}

/* ---- its end ---- */

/* What a person can do about it. */
static void explain(struct call *call, CURLcode code)
{
    const char *base = call->client->base;
    const char *why = call->inside->why[0] ? call->inside->why : curl_easy_strerror(code);

    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        call->fault = CALL_ABSENT;
        err_set(&call->e, 0, "there is no server at %s (%s): %s", base, why, call->client->remedy);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        call->fault = CALL_UNTRUSTED;
        err_set(&call->e, 0,
                "the certificate of %s is not trusted (%s): SSL_CERT_FILE may name the authority's",
                base, why);
        break;
    case CURLE_SSL_CONNECT_ERROR:
        call->fault = CALL_UNTRUSTED;
        err_set(&call->e, 0, "%s does not speak TLS (%s): is it http://?", base, why);
        break;
    case CURLE_OPERATION_TIMEDOUT:
        call->fault = CALL_SILENT;
        err_set(&call->e, 0, "the server at %s does not answer (%s)", base, why);
        break;
    default:
        call->fault = CALL_LOST;
        err_set(&call->e, 0, "the connection to %s is lost (%s)", base, why);
    }
}

static void finish(struct call *call, CURLcode code)
{
    curl_off_t seconds = 0;

    if (code == CURLE_OK) {
        call->status = (unsigned)status_of(call);
        curl_easy_getinfo(call->inside->easy, CURLINFO_RETRY_AFTER, &seconds);
        call->retry_after_s = seconds > 0 && seconds < 86400 ? (unsigned)seconds : 0;
    } else if (!call->e.text[0]) {
        explain(call, code);
    }
    take_off(call);
    call->over = true;
    if (call->spec.over)
        call->spec.over(call->spec.ctx);
}

static void take_finished(struct client *c)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(c->multi, &left))) {
        struct call *call = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call);
        finish(call, code);
    }
}

static void handle(struct client *c, const struct epoll_event *ev)
{
    int fd = (int)(uint32_t)ev->data.u64, running;
    int how = (ev->events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
              (ev->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
              (ev->events & EPOLLERR ? CURL_CSELECT_ERR : 0);
    uint64_t times;

    switch (ev->data.u64 >> 32) {
    case FROM_SOURCE:
        resume_source(c, fd);
        break;
    case FROM_SERVER:
        curl_multi_socket_action(c->multi, fd, how, &running);
        break;
    case FROM_TIMER:
        if (read(fd, &times, sizeof(times)) > 0)
            curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        break;
    default:
        if (read(fd, &times, sizeof(times)) < 0)
            return;
    }
}

void client_dispatch(struct client *c)
{
    struct epoll_event events[BATCH];
    int n = epoll_wait(c->epoll, events, BATCH, 0);

    sleep_on(c);
    for (int i = 0; i < n; i++)
        handle(c, &events[i]);
    take_finished(c);
    for (struct client_hook *hook = c->hooks; hook; hook = hook->next)
        hook->after(hook->ctx);
}

/* ---- paths ---- */

void call_add_path(struct buf *url, const char *path)
{
    for (; *path; path++) {
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/", *path))
            buf_add(url, path, 1);
        else
            buf_add_fmt(url, "%%%02X", (unsigned char)*path);
    }
}
