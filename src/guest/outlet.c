/* outlet: see outlet.h. */
#include "guest/outlet.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define WAITING_MAX (4u << 20)
#define WRITTEN_MAX (1u << 20) /* bytes and runs already written that may lie in the queue */
#define ERASE "\r\033[K"
#define ERASE_REST "\033[K"
#define PIECE 4096 /* PIPE_BUF: what a pipe that polls writable takes without blocking */

void outlet_init(struct outlet *o)
{
    *o = (struct outlet){.waiting_max = WAITING_MAX};
    for (int fd = 1; fd <= 2; fd++)
        o->tty[fd] = isatty(fd) == 1;
}

void outlet_done(struct outlet *o)
{
    buf_done(&o->bytes);
    free(o->runs);
    *o = (struct outlet){0};
}

static void queue_reset(struct outlet *o)
{
    o->bytes.len = o->at = 0;
    o->n_runs = o->first_run = 0;
}

/* A reader that never lets the queue run empty must not let it grow for ever. */
static void forget_written(struct outlet *o)
{
    if (o->at > WRITTEN_MAX) {
        buf_drop(&o->bytes, o->at);
        o->at = 0;
    }
    if (o->first_run > WRITTEN_MAX / sizeof(o->runs[0])) {
        o->n_runs -= o->first_run;
        memmove(o->runs, o->runs + o->first_run, o->n_runs * sizeof(o->runs[0]));
        o->first_run = 0;
    }
}

static void add_run(struct outlet *o, int fd, size_t len)
{
    if (o->n_runs > o->first_run && o->runs[o->n_runs - 1].fd == fd) {
        o->runs[o->n_runs - 1].len += len;
        return;
    }
    if (o->n_runs == o->runs_cap) {
        o->runs_cap = o->runs_cap ? o->runs_cap * 2 : 16;
        o->runs = reallocarray(o->runs, o->runs_cap, sizeof(o->runs[0]));
        if (!o->runs)
            bug("out of memory");
    }
    o->runs[o->n_runs++] = (struct outlet_run){fd, len};
}

static void queue(struct outlet *o, int fd, const char *text, size_t len)
{
    if (o->bytes.len - o->at > o->waiting_max)
        outlet_flush(o);
    forget_written(o);
    buf_add(&o->bytes, text, len);
    add_run(o, fd, len);
}

static void take_transient_away(struct outlet *o)
{
    if (o->transient)
        queue(o, o->transient, ERASE, strlen(ERASE));
    o->transient = 0;
}

static void add(struct outlet *o, int fd, const char *text, size_t len)
{
    if (len == 0 || (fd == 1 && o->closed))
        return;
    if (o->tty[fd])
        take_transient_away(o);
    queue(o, fd, text, len);
    if (o->tty[fd])
        o->midline = text[len - 1] != '\n';
}

void outlet_guest(struct outlet *o, int fd, const char *text, size_t len)
{
    cleanup_buf struct buf harmless = {0};

    if (!o->tty[fd]) {
        add(o, fd, text, len);
        return;
    }
    sanitise(&o->sanitiser[fd], text, len, &harmless);
    add(o, fd, harmless.data, harmless.len);
}

void outlet_guest_end(struct outlet *o)
{
    for (int fd = 1; fd <= 2; fd++) {
        cleanup_buf struct buf reset = {0};
        bool midline = o->midline;
        sanitise_end(&o->sanitiser[fd], &reset);
        add(o, fd, reset.data, reset.len);
        o->midline = midline; /* switching a colour off moves nothing */
    }
}

__attribute__((format(printf, 3, 0))) static void add_fmt(struct outlet *o, int fd, const char *fmt,
                                                          va_list ap)
{
    char *text;
    int n = vasprintf(&text, fmt, ap);
    if (n < 0)
        bug("out of memory");
    add(o, fd, text, (size_t)n);
    free(text);
}

void outlet_line(struct outlet *o, int fd, const char *text)
{
    add(o, fd, text, strlen(text));
    add(o, fd, "\n", 1);
}

void outlet_say(struct outlet *o, int fd, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_fmt(o, fd, fmt, ap);
    va_end(ap);
}

void outlet_put(struct outlet *o, int fd, const char *data, size_t len)
{
    add(o, fd, data, len);
}

void outlet_transient(struct outlet *o, int fd, const char *line, size_t len)
{
    if (len == 0) {
        take_transient_away(o);
    } else if (o->tty[fd] && !o->midline && outlet_wants(o) == 0 && !(fd == 1 && o->closed)) {
        queue(o, fd, "\r", 1);
        queue(o, fd, line, len);
        queue(o, fd, ERASE_REST, strlen(ERASE_REST));
        o->transient = fd;
    }
}

void outlet_fresh_line(struct outlet *o)
{
    int fd = o->tty[1] ? 1 : 2;
    if (o->midline && o->tty[fd])
        add(o, fd, "\n", 1);
}

/* In a note, a guest may have chosen a name: it stays on its line, whatever that holds. */
__attribute__((format(printf, 2, 0))) static void add_note(struct outlet *o, const char *fmt,
                                                           va_list ap)
{
    char *text;
    int n = vasprintf(&text, fmt, ap);
    if (n < 0)
        bug("out of memory");
    char *line = xcalloc(1, (size_t)n + 1);
    sanitise_name(text, line, (size_t)n + 1);
    add(o, 2, line, strlen(line));
    free(line);
    free(text);
}

void outlet_note(struct outlet *o, const char *fmt, ...)
{
    va_list ap;

    if (o->tty[2])
        outlet_fresh_line(o);
    add(o, 2, "retort: ", 8);
    va_start(ap, fmt);
    add_note(o, fmt, ap);
    va_end(ap);
    add(o, 2, "\n", 1);
}

int outlet_wants(const struct outlet *o)
{
    return o->first_run < o->n_runs ? o->runs[o->first_run].fd : 0;
}

static void advance(struct outlet *o, size_t n)
{
    struct outlet_run *run = &o->runs[o->first_run];

    o->at += n;
    run->len -= n;
    if (run->len == 0)
        o->first_run++;
    if (o->first_run == o->n_runs)
        queue_reset(o);
}

void outlet_ready(struct outlet *o)
{
    struct outlet_run *run = &o->runs[o->first_run];
    size_t len = run->len < PIECE ? run->len : PIECE;

    if (run->fd == 1 && o->closed) {
        advance(o, run->len);
        return;
    }
    ssize_t n = write(run->fd, o->bytes.data + o->at, len);
    if (n >= 0) {
        advance(o, (size_t)n);
    } else if (errno != EINTR && errno != EAGAIN) {
        /* The reader is gone (EPIPE) or the disk is full. A lost stderr is no reason to stop. */
        if (run->fd == 1)
            o->closed = true;
        advance(o, run->len);
    }
}

void outlet_flush(struct outlet *o)
{
    while (outlet_wants(o)) {
        struct pollfd p = {.fd = outlet_wants(o), .events = POLLOUT};
        if (poll(&p, 1, -1) > 0)
            outlet_ready(o);
    }
}
