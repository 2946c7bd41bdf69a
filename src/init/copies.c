/* copies: see copies.h. Runs in init and, from hold() on, in the holder, a fork of it. */
#include "init/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/fields.h"
#include "wire/msg.h"
#include "wire/proto.h"

#define PAGE 4096u
#define PATIENCE_MS 60000 /* for one file */
#define LINE_AT 3         /* the holder's only descriptor */

static uint64_t whole_pages(uint64_t size)
{
    return (size + PAGE - 1) / PAGE * PAGE;
}

/* ---- the holder ---- */

/* Up to the size that it had: a file that grows while we read would keep us for ever. */
static bool read_all(int from, char *to, uint64_t size)
{
    for (uint64_t at = 0; at < size;) {
        ssize_t n = pread(from, to + at, size - at, (off_t)at);
        if (n <= 0)
            return false;
        at += (uint64_t)n;
    }
    return true;
}

static char *take_in(int from, uint64_t size)
{
    char *at = malloc(size);

    if (at && read_all(from, at, size))
        return at;
    free(at);
    return NULL;
}

static void answer(uint64_t value)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, HOLDER_ANSWER);
    fields_put_u64(&b, value);
    msg_send(LINE_AT, &b, NULL, 0, &ignored);
}

static void serve(struct msg *m)
{
    struct fields f;

    fields_init(&f, m->data, m->len);
    char *at = (char *)(uintptr_t)fields_get_u64(&f);
    uint64_t size = fields_get_u64(&f), result = 0;
    bool asks = m->type == HOLDER_PUT || m->type == HOLDER_GET;

    if (m->type == HOLDER_PUT && m->n_fds == 1)
        result = (uint64_t)(uintptr_t)take_in(m->fds[0], size);
    else if (m->type == HOLDER_GET && m->n_fds == 1)
        result = fd_write_all(m->fds[0], at, size) == 0;
    else if (!asks)
        free(at);
    msg_done(m); /* before the answer: a guest that removes the file then has its room at once */
    if (asks)
        answer(result);
}

/* Among those that wait (see set_scores in points.c). Refused: then it goes by size. */
static void offer_ourselves(void)
{
    static const char score[] = "950";

    /* Its own /proc is shut to itself, as to everybody: init opens files as the user does, and is undumpable. */
    setfsuid(geteuid());
    setfsgid(getegid());
    prctl(PR_SET_DUMPABLE, 1);
    cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, score, strlen(score)) < 0)
        errno = 0;
    prctl(PR_SET_DUMPABLE, 0);
}

_Noreturn static void hold(int line)
{
    static struct msg m;
    struct err e;

    if (fd_place(&line, 1, LINE_AT, 0) < 0)
        _exit(1);
    close_range(0, LINE_AT - 1, 0);
    close_range(LINE_AT + 1, ~0U, 0);
    prctl(PR_SET_NAME, "holder");
    offer_ourselves();
    while (msg_recv(LINE_AT, &m, &e) > 0)
        serve(&m);
    _exit(0); /* init has no use for it any more */
}

/* ---- asking it ---- */

static int start_holder(struct copies *c, struct err *e)
{
    int pair[2];

    if (c->line >= 0)
        return 0;
    if (msg_pair(pair, e) < 0)
        return -1;
    cleanup_fd int near = pair[0];
    cleanup_fd int far = pair[1];
    pid_t pid = c->fork(c->ctx);
    if (pid == 0)
        hold(far);
    if (pid < 0)
        return err_set(e, EAGAIN, "no process can be made to hold copies");
    c->holder = pid;
    c->line = fd_steal(&near);
    return 0;
}

static int order(struct copies *c, uint32_t type, const struct piece *x, const int *fd,
                 struct err *e)
{
    cleanup_buf struct buf b = {0};

    msg_begin(&b, type);
    fields_put_u64(&b, x->at);
    fields_put_u64(&b, x->size);
    return msg_send(c->line, &b, fd, fd != NULL, e);
}

static int lose(struct copies *c, struct err *e)
{
    if (c->holder > 0)
        kill(c->holder, SIGKILL);
    copies_forget(c);
    return err_set(e, ENOMEM, "the copies are gone");
}

/* It answers in order. A death is an answer too. */
static int hear(struct copies *c, uint64_t *ret, struct err *e)
{
    struct pollfd line = {.fd = c->line, .events = POLLIN};
    static struct msg m;
    struct fields f;

    if (poll(&line, 1, PATIENCE_MS) <= 0 || msg_recv(c->line, &m, e) <= 0)
        return lose(c, e);
    fields_init(&f, m.data, m.len);
    *ret = fields_get_u64(&f);
    msg_done(&m);
    return 0;
}

static int held_put(struct copies *c, int from, struct piece *x, struct err *e)
{
    if (c->n_due == COPIES_DUE)
        copies_settle(c);
    if (start_holder(c, e) < 0)
        return -1;
    if (order(c, HOLDER_PUT, x, &from, e) < 0)
        return lose(c, e);
    c->due[c->n_due++] = x;
    return 0;
}

static int held_get(struct copies *c, const struct piece *x, int to, struct err *e)
{
    uint64_t whole = 0;

    if (order(c, HOLDER_GET, x, &to, e) < 0)
        return lose(c, e);
    if (hear(c, &whole, e) < 0)
        return -1;
    return whole ? 0 : err_set(e, EIO, "cannot write it");
}

/* ---- without one ---- */

static int make_file(void)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : memfd_create("copies", MFD_CLOEXEC);
}

static int send_all(int to, int from, uint64_t at, uint64_t size, struct err *e)
{
    for (off_t from_at = (off_t)at; size > 0;) {
        ssize_t n = sendfile(to, from, &from_at, size < (1u << 30) ? (size_t)size : 1u << 30);
        if (n <= 0)
            return err_set(e, n < 0 ? errno : EIO, "cannot copy it");
        size -= (uint64_t)n;
    }
    return 0;
}

static int own_put(struct copies *c, int from, struct piece *x, struct err *e)
{
    if (c->fd < 0)
        c->fd = make_file();
    if (c->fd < 0 || lseek(c->fd, (off_t)c->end, SEEK_SET) < 0)
        return err_set(e, errno, "cannot make room for copies");
    x->at = c->end;
    c->end += whole_pages(x->size); /* it only grows; what is dropped becomes a hole */
    return send_all(c->fd, from, 0, x->size, e);
}

static void own_drop(struct copies *c, const struct piece *x)
{
    if (fallocate(c->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)x->at,
                  (off_t)whole_pages(x->size)) < 0)
        errno = 0; /* then it stays until the end */
}

/* ---- either ---- */

void copies_init(struct copies *c, uint64_t most, pid_t (*fork)(void *ctx), void *ctx)
{
    *c = (struct copies){.most = most, .fork = fork, .ctx = ctx, .life = 1, .line = -1, .fd = -1};
}

void copies_forget(struct copies *c)
{
    fd_close(&c->line); /* the holder sees its end, and leaves */
    fd_close(&c->fd);
    c->ended = c->holder;
    c->holder = 0;
    for (unsigned i = 0; i < c->n_due; i++)
        *c->due[i] = (struct piece){0};
    c->n_due = 0;
    c->used = c->end = 0;
    c->life++;
}

bool copies_reaped(struct copies *c, pid_t pid)
{
    if (pid <= 0 || (pid != c->holder && pid != c->ended))
        return false;
    if (pid == c->holder)
        copies_forget(c);
    c->ended = 0;
    return true;
}

bool copies_has(const struct copies *c, const struct piece *x)
{
    return x->life == c->life;
}

static void give_up(struct copies *c, struct piece *x)
{
    if (copies_has(c, x))
        c->used -= whole_pages(x->size);
    *x = (struct piece){0};
}

void copies_put(struct copies *c, int from, uint64_t size, struct piece *ret)
{
    uint64_t room = whole_pages(size);
    struct err ignored;

    *ret = (struct piece){0};
    if (room < size || room > c->most || c->used > c->most - room)
        return;
    *ret = (struct piece){.size = size, .life = c->life};
    c->used += room;
    if (size > 0 &&
        (c->fork ? held_put(c, from, ret, &ignored) : own_put(c, from, ret, &ignored)) < 0)
        give_up(c, ret);
}

void copies_settle(struct copies *c)
{
    unsigned n = c->n_due;
    struct err ignored;

    for (unsigned i = 0; i < n && c->n_due > 0; i++)
        if (hear(c, &c->due[i]->at, &ignored) == 0 && c->due[i]->at == 0)
            give_up(c, c->due[i]);
    c->n_due = 0;
}

int copies_get(struct copies *c, const struct piece *x, int to, struct err *e)
{
    if (!copies_has(c, x))
        return err_set(e, ENOENT, "it is not kept");
    if (x->size == 0)
        return 0;
    return c->fork ? held_get(c, x, to, e) : send_all(to, c->fd, x->at, x->size, e);
}

int copies_open(struct copies *c, const struct piece *x, uint64_t *ret_offset, struct err *e)
{
    *ret_offset = c->fork ? 0 : x->at;
    if (!copies_has(c, x))
        return err_set(e, ENOENT, "it is not kept");
    if (!c->fork && c->fd >= 0)
        return fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
    cleanup_fd int fd = make_file();
    if (fd < 0 || copies_get(c, x, fd, e) < 0)
        return -1;
    return fd_steal(&fd);
}

void copies_drop(struct copies *c, struct piece *x)
{
    struct err ignored; /* it has just died */

    if (copies_has(c, x) && x->size > 0) {
        c->used -= whole_pages(x->size);
        if (c->fork)
            order(c, HOLDER_DROP, x, NULL, &ignored);
        else
            own_drop(c, x);
    }
    *x = (struct piece){0};
}
