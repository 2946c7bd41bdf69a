/* answers: see answers.h. */
#include "answers.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

/* false: it is to end. */
static bool wait_for(const struct answers *a, int fd, int ms)
{
    struct pollfd p[] = {{.fd = a->stop[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    poll(p, 2, ms);
    return !p[0].revents;
}

/* Of a request that begins with this, and of which `len` bytes have come. */
static size_t missing(const char *request, size_t len)
{
    const char *end = strstr(request, "\r\n\r\n");
    const char *length = strcasestr(request, "\r\nContent-Length:");
    size_t body = end && length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    size_t whole = end ? (size_t)(end + 4 - request) + body : len + 1;

    return whole > len ? whole - len : 0;
}

/* Its beginning is kept. */
static void hear(const struct answers *a, int fd, char *request)
{
    char piece[ANSWERS_REQUEST];
    size_t len = 0;

    while (missing(request, len) && wait_for(a, fd, -1)) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n <= 0)
            return;
        size_t room = len < ANSWERS_REQUEST - 1 ? ANSWERS_REQUEST - 1 - len : 0;
        memcpy(request + len * (room > 0), piece, (size_t)n < room ? (size_t)n : room);
        len += (size_t)n;
    }
}

static void say(const struct answer *what, int fd)
{
    char x[4096];

    memset(x, 'x', sizeof(x));
    if (what->bytes && send(fd, what->bytes, strlen(what->bytes), MSG_NOSIGNAL) < 0)
        return;
    for (size_t left = what->more; left > 0;) {
        ssize_t n = send(fd, x, left < sizeof(x) ? left : sizeof(x), MSG_NOSIGNAL);
        if (n <= 0)
            return;
        left -= (size_t)n;
    }
}

static void serve(struct answers *a, int fd)
{
    const struct answer *what = &a->list[a->served];

    hear(a, fd, a->request[a->served]);
    a->served++;
    if (what->after_ms && !wait_for(a, -1, what->after_ms))
        return;
    say(what, fd);
    if (what->holds)
        a->held[a->n_held++] = dup(fd);
}

static void *run(void *ctx)
{
    struct answers *a = ctx;

    while (wait_for(a, a->listener, -1)) {
        cleanup_fd int fd = accept(a->listener, NULL, NULL);
        if (fd >= 0 && a->served < a->n)
            serve(a, fd);
    }
    return NULL;
}

void answers_start(struct answers *a, const struct answer *list, unsigned n)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    *a = (struct answers){.list = list, .n = n};
    a->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (n > ANSWERS_MAX || pipe(a->stop) < 0 || a->listener < 0 ||
        bind(a->listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(a->listener, 8) < 0 ||
        getsockname(a->listener, (struct sockaddr *)&at, &len) < 0)
        bug("no server for a test");
    snprintf(a->url, sizeof(a->url), "http://127.0.0.1:%u", ntohs(at.sin_port));
    if (pthread_create(&a->thread, NULL, run, a) != 0)
        bug("no thread for a test");
}

void answers_stop(struct answers *a)
{
    fd_close(&a->stop[1]);
    pthread_join(a->thread, NULL);
    for (unsigned i = 0; i < a->n_held; i++)
        fd_close(&a->held[i]);
    fd_close(&a->stop[0]);
    fd_close(&a->listener);
}
