/* http_bench: the client's side of the benchmark of the server. The same for everything that answers HTTP.
 *
 * bench/run starts it; every run prints one JSON object: {"ns": […], "wrong": …, "elapsed_ns": …}.
 *
 *     http_bench ask --port P --path /v1/run --body '{"code":"1+1"}' --clients 8 --seconds 15
 *     http_bench put --port P --path /big --size 268435456 --n 3
 *     http_bench get --port P --path /big --size 268435456 --n 3
 *     http_bench branch --port P --path /v1/sessions/ID --body '{"code":"1+1"}' --rest 100
 *
 * It has to cost less than what it measures, on the same machine: one thread, keep-alive, each request
 * made beforehand; what is uploaded is sent from the page cache and what is downloaded is thrown away in
 * the kernel, so neither is copied here.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"

#define PATHS 1024
#define ROOM (64u << 10)   /* for one read of an answer */
#define SWALLOW (1u << 20) /* of a download at once */
#define SAID 3             /* wrong answers that are shown */
#define PATIENCE_S 60      /* for anything */

struct options {
    unsigned port;
    const char *token; /* NULL: none */
    const char *method;
    const char *paths[PATHS]; /* client i takes path i, and begins again after the last */
    unsigned n_paths;
    const char *body;
    const char *accept;
    const char *expect; /* has to be in the answer; NULL: nothing has to */
    const char *until;  /* what is timed ends when this has come; NULL: with the answer */
    unsigned clients;
    unsigned n;       /* requests of each client, */
    unsigned seconds; /* or how long */
    unsigned rest;    /* milliseconds before each */
    uint64_t size;
};

struct results {
    struct buf ns; /* int64_t each */
    uint64_t wrong;
    int64_t begun_ns;
};

struct client {
    int fd;
    struct buf request;
    size_t sent;
    struct buf answer;
    int64_t begun_ns, seen_ns; /* seen: when `until` had come; 0: not yet */
    unsigned left;
};

static struct options o = {.method = "POST", .clients = 1, .n = 1};
static struct results results;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "http_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void took(int64_t ns)
{
    buf_add(&results.ns, &ns, sizeof(ns));
}

static void wrong(const char *why, struct buf *answer)
{
    if (results.wrong++ < SAID)
        fprintf(stderr, "http_bench: %s: %.300s\n", why,
                answer && answer->len ? buf_text(answer) : "");
}

/* ---- connections and requests ---- */

static int connected(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)o.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
        die("cannot connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    return fd;
}

static void make_request(struct buf *ret, const char *method, const char *path, uint64_t len)
{
    buf_add_fmt(ret, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n", method, path, o.port);
    if (o.token)
        buf_add_fmt(ret, "Authorization: Bearer %s\r\n", o.token);
    if (o.accept)
        buf_add_fmt(ret, "Accept: %s\r\n", o.accept);
    if (o.body)
        buf_add_text(ret, "Content-Type: application/json\r\n");
    if (len > 0)
        buf_add_fmt(ret, "Content-Length: %" PRIu64 "\r\n", len);
    buf_add_text(ret, "\r\n");
}

/* ---- answers ---- */

/* Where the body begins; 0: the head is not whole yet. */
static size_t head_len(const struct buf *answer)
{
    const char *end = memmem(answer->data, answer->len, "\r\n\r\n", 4);

    return end ? (size_t)(end - answer->data) + 4 : 0;
}

static const char *header(struct buf *answer, const char *name)
{
    char *at = strcasestr(buf_text(answer), name);

    return at && (size_t)(at - answer->data) < head_len(answer) ? at + strlen(name) : NULL;
}

static unsigned status_of(struct buf *answer)
{
    unsigned status = 0;

    return sscanf(buf_text(answer), "HTTP/1.1 %u", &status) == 1 ? status : 0;
}

/* In JSON and events a CR is written as an escape: the last chunk cannot be mistaken. */
static bool is_whole(struct buf *answer)
{
    static const char last[] = "\r\n0\r\n\r\n";
    size_t head = head_len(answer), n = sizeof(last) - 1;

    if (head == 0)
        return false;
    const char *length = header(answer, "\r\nContent-Length:");
    if (length)
        return answer->len - head >= strtoull(length, NULL, 10);
    return status_of(answer) == 204 ||
           (answer->len >= n && memcmp(answer->data + answer->len - n, last, n) == 0);
}

static bool is_right(struct buf *answer)
{
    return status_of(answer) / 100 == 2 && (!o.expect || strstr(buf_text(answer), o.expect));
}

/* ---- ask: many small requests ---- */

static void push(struct client *c)
{
    while (c->sent < c->request.len) {
        ssize_t n = send(c->fd, c->request.data + c->sent, c->request.len - c->sent, MSG_NOSIGNAL);
        if (n <= 0)
            die("cannot send");
        c->sent += (size_t)n;
    }
}

static void begin(struct client *c)
{
    c->sent = c->answer.len = 0;
    c->seen_ns = 0;
    c->begun_ns = now_ns();
    push(c);
}

static void watch(int epoll, struct client *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

    c->fd = connected();
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &ev) < 0)
        die("epoll_ctl");
}

static bool wants_more(const struct client *c)
{
    if (o.seconds > 0)
        return now_ns() - results.begun_ns < o.seconds * INT64_C(1000000000);
    return c->left > 0;
}

/* true: it has nothing left to ask. */
static bool next(int epoll, struct client *c, const char *why)
{
    if (why) { /* what else comes on this connection cannot be trusted */
        wrong(why, &c->answer);
        close(c->fd);
        watch(epoll, c);
    }
    c->left--;
    if (!wants_more(c))
        return true;
    begin(c);
    return false;
}

static bool pull(int epoll, struct client *c)
{
    ssize_t n = recv(c->fd, buf_room(&c->answer, ROOM), ROOM, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0)
        return next(epoll, c, n < 0 ? strerror(errno) : "the connection was closed");
    c->answer.len += (size_t)n;
    if (o.until && !c->seen_ns && strstr(buf_text(&c->answer), o.until))
        c->seen_ns = now_ns();
    if (!is_whole(&c->answer))
        return false;
    int64_t ended_ns = o.until ? c->seen_ns : now_ns();
    if (ended_ns == 0 || !is_right(&c->answer))
        return next(epoll, c, "a wrong answer");
    took(ended_ns - c->begun_ns);
    return next(epoll, c, NULL);
}

static void ask(void)
{
    struct client *clients = xcalloc(o.clients, sizeof(*clients));
    size_t len = o.body ? strlen(o.body) : 0;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    unsigned busy = o.clients;

    for (unsigned i = 0; i < o.clients; i++) {
        make_request(&clients[i].request, o.method, o.paths[i % o.n_paths], len);
        buf_add(&clients[i].request, o.body, len);
        clients[i].left = o.n;
        watch(epoll, &clients[i]);
    }
    results.begun_ns = now_ns();
    for (unsigned i = 0; i < o.clients; i++)
        begin(&clients[i]);
    while (busy > 0) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll, events, 64, PATIENCE_S * 1000);
        if (n <= 0)
            die(n == 0 ? "no answer" : "epoll_wait");
        for (int i = 0; i < n; i++)
            busy -= pull(epoll, events[i].data.ptr);
    }
}

/* ---- put and get: one large body ---- */

static int contents(void)
{
    int fd = memfd_create("contents", MFD_CLOEXEC);
    char block[4096];

    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)(i * 31 % 251);
    for (uint64_t at = 0; at < o.size; at += sizeof(block))
        if (pwrite(fd, block, sizeof(block), (off_t)at) != (ssize_t)sizeof(block))
            die("cannot make the contents");
    return fd;
}

static bool finish(int fd, struct buf *answer)
{
    while (!is_whole(answer)) {
        ssize_t n = recv(fd, buf_room(answer, ROOM), ROOM, 0);
        if (n <= 0)
            return false;
        answer->len += (size_t)n;
    }
    return true;
}

static void put_once(int fd, int file)
{
    cleanup_buf struct buf request = {0}, answer = {0};
    off_t at = 0;

    make_request(&request, "PUT", o.paths[0], o.size);
    int64_t begun_ns = now_ns();
    if (send(fd, request.data, request.len, MSG_NOSIGNAL | MSG_MORE) != (ssize_t)request.len)
        die("cannot send");
    while ((uint64_t)at < o.size)
        if (sendfile(fd, file, &at, o.size - (uint64_t)at) <= 0)
            die("cannot send the contents");
    if (!finish(fd, &answer) || !is_right(&answer))
        wrong("a wrong answer to an upload", &answer);
    else
        took(now_ns() - begun_ns);
}

static void get_once(int fd)
{
    cleanup_buf struct buf request = {0}, answer = {0};

    make_request(&request, "GET", o.paths[0], 0);
    int64_t begun_ns = now_ns();
    if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
        die("cannot send");
    while (head_len(&answer) == 0) {
        ssize_t n = recv(fd, buf_room(&answer, 1024), 1024, 0);
        if (n <= 0)
            die("no answer to a download");
        answer.len += (size_t)n;
    }
    uint64_t got = answer.len - head_len(&answer);
    const char *length = header(&answer, "\r\nContent-Length:");
    if (!is_right(&answer) || !length || strtoull(length, NULL, 10) != o.size) {
        wrong("a wrong answer to a download", &answer);
        return;
    }
    while (got < o.size) {
        ssize_t n = recv(fd, NULL, SWALLOW, MSG_TRUNC);
        if (n <= 0)
            die("a download ended early");
        got += (uint64_t)n;
    }
    took(now_ns() - begun_ns);
}

static void transfer(bool put)
{
    int file = put ? contents() : -1;
    int fd = connected();

    results.begun_ns = now_ns();
    for (unsigned i = 0; i < o.n; i++) {
        if (put)
            put_once(fd, file);
        else
            get_once(fd);
    }
}

/* ---- branch: a session split, to its branch's first result ---- */

static bool call(int fd, const char *method, const char *path, const char *body, struct buf *ret)
{
    cleanup_buf struct buf request = {0};
    size_t len = body ? strlen(body) : 0;

    make_request(&request, method, path, len);
    buf_add(&request, body, len);
    if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
        die("cannot send");
    ret->len = 0;
    return finish(fd, ret) && status_of(ret) / 100 == 2;
}

/* Two times for each: when the branch stood, and when its cell was answered. */
static void branch_once(int fd)
{
    cleanup_buf struct buf answer = {0};
    char path[256], cells[300], id[128];

    usleep(o.rest * 1000);
    snprintf(path, sizeof(path), "%s/fork", o.paths[0]);
    int64_t begun_ns = now_ns();
    bool stands = call(fd, "POST", path, NULL, &answer);
    const char *at = stands ? strstr(buf_text(&answer), "\"id\":\"") : NULL;
    if (!at || sscanf(at, "\"id\":\"%127[^\"]", id) != 1) {
        wrong("no branch", &answer);
        return;
    }
    int64_t stood_ns = now_ns();
    snprintf(path, sizeof(path), "/v1/sessions/%s", id);
    snprintf(cells, sizeof(cells), "%s/cells", path);
    bool answered = call(fd, "POST", cells, o.body, &answer) && is_right(&answer);
    int64_t ended_ns = now_ns();
    if (answered) {
        took(stood_ns - begun_ns);
        took(ended_ns - begun_ns);
    } else {
        wrong("a wrong answer of a branch", &answer);
    }
    if (!call(fd, "DELETE", path, NULL, &answer))
        wrong("a branch did not end", &answer);
}

static void branch(void)
{
    int fd = connected();

    results.begun_ns = now_ns();
    for (unsigned i = 0; i < o.n; i++)
        branch_once(fd);
}

/* ---- the beginning and the end ---- */

static void print_results(void)
{
    size_t n = results.ns.len / sizeof(int64_t);
    const int64_t *ns = (const int64_t *)(const void *)results.ns.data;

    printf("{\"wrong\": %" PRIu64 ", \"elapsed_ns\": %" PRId64 ", \"ns\": [", results.wrong,
           now_ns() - results.begun_ns);
    for (size_t i = 0; i < n; i++)
        printf("%s%" PRId64, i ? "," : "", ns[i]);
    printf("]}\n");
}

static void set(const char *name)
{
    const char **text = strcmp(name, "token") == 0    ? &o.token
                        : strcmp(name, "method") == 0 ? &o.method
                        : strcmp(name, "body") == 0   ? &o.body
                        : strcmp(name, "accept") == 0 ? &o.accept
                        : strcmp(name, "expect") == 0 ? &o.expect
                        : strcmp(name, "until") == 0  ? &o.until
                                                      : NULL;
    unsigned *number = strcmp(name, "port") == 0      ? &o.port
                       : strcmp(name, "clients") == 0 ? &o.clients
                       : strcmp(name, "n") == 0       ? &o.n
                       : strcmp(name, "seconds") == 0 ? &o.seconds
                       : strcmp(name, "rest") == 0    ? &o.rest
                                                      : NULL;

    if (text)
        *text = optarg;
    else if (number)
        *number = (unsigned)strtoul(optarg, NULL, 10);
    else if (strcmp(name, "size") == 0)
        o.size = strtoull(optarg, NULL, 10);
    else if (o.n_paths < PATHS)
        o.paths[o.n_paths++] = optarg;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"port", 1, NULL, 0},    {"token", 1, NULL, 0},
        {"method", 1, NULL, 0},  {"path", 1, NULL, 0},
        {"body", 1, NULL, 0},    {"accept", 1, NULL, 0},
        {"expect", 1, NULL, 0},  {"until", 1, NULL, 0},
        {"clients", 1, NULL, 0}, {"n", 1, NULL, 0},
        {"seconds", 1, NULL, 0}, {"rest", 1, NULL, 0},
        {"size", 1, NULL, 0},    {0},
    };
    int i;

    while (getopt_long(argc, argv, "", options, &i) == 0)
        set(options[i].name);
    const char *verb = optind < argc ? argv[optind] : "";
    if (o.n_paths == 0 || o.clients == 0) {
        fprintf(stderr, "http_bench: --port and --path are needed\n");
        return 2;
    }
    if (strcmp(verb, "ask") == 0)
        ask();
    else if (strcmp(verb, "branch") == 0)
        branch();
    else
        transfer(strcmp(verb, "put") == 0);
    print_results();
    return 0;
}
