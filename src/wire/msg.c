/* msg: see msg.h. */
#include "wire/msg.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/fields.h"

int msg_pair(int ret[2], struct err *e)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
        return err_set(e, errno, "cannot make a socket pair");
    return 0;
}

void msg_begin(struct buf *b, uint32_t type)
{
    assert_that(b->len == 0);
    fields_put_u32(b, type);
}

static int send_with(int fd, const struct buf *b, const int *fds, unsigned n_fds, int flags,
                     struct err *e)
{
    assert_that(b->len <= MSG_SIZE && n_fds <= MSG_FDS);
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * MSG_FDS)] = {0};
    struct iovec iov = {.iov_base = b->data, .iov_len = b->len};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (n_fds > 0) {
        h.msg_control = control;
        h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
    }
    do
        n = sendmsg(fd, &h, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(e, errno, "cannot send a message");
    return 0;
}

int msg_send(int fd, const struct buf *b, const int *fds, unsigned n_fds, struct err *e)
{
    return send_with(fd, b, fds, n_fds, 0, e);
}

int msg_try_send(int fd, const struct buf *b, const int *fds, unsigned n_fds, struct err *e)
{
    return send_with(fd, b, fds, n_fds, MSG_DONTWAIT, e);
}

static void take_descriptors(struct msghdr *h, struct msg *ret)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(c), sizeof(sender));
            ret->from = sender.pid;
        }
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (ret->n_fds < MSG_FDS)
                ret->fds[ret->n_fds++] = fd;
            else
                close(fd);
        }
    }
}

int msg_recv(int fd, struct msg *ret, struct err *e)
{
    _Alignas(struct cmsghdr) char
        control[CMSG_SPACE(sizeof(int) * MSG_FDS) + CMSG_SPACE(sizeof(struct ucred))];
    /* cppcheck-suppress ctuuninitvar; it is there to be filled */
    struct iovec iov = {.iov_base = ret->bytes, .iov_len = sizeof(ret->bytes)};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    ssize_t n;

    ret->n_fds = 0;
    ret->len = 0;
    ret->type = 0;
    ret->from = 0;
    do
        n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == ECONNRESET)
        return 0;
    if (n < 0)
        return err_set(e, errno, "cannot receive a message");
    /* Before anything else: also an empty message can carry descriptors. */
    take_descriptors(&h, ret);
    if (n == 0) {
        msg_done(ret);
        return 0;
    }
    bool cut = h.msg_flags & MSG_CTRUNC;
    if (n < 4 || (h.msg_flags & MSG_TRUNC) || (cut && ret->n_fds == MSG_FDS)) {
        msg_done(ret);
        return err_set(e, EBADMSG, "a message was cut off");
    }
    uint32_t type;
    memcpy(&type, ret->bytes, 4);
    ret->type = le32toh(type);
    ret->data = ret->bytes + 4;
    ret->len = (size_t)n - 4;
    if (cut) { /* fewer than could be: it is this process that has no room */
        msg_done(ret);
        return err_set(e, EMFILE, "a message's descriptors cannot be taken");
    }
    return 1;
}

int msg_take_fd(struct msg *m, unsigned i)
{
    return i < m->n_fds ? fd_steal(&m->fds[i]) : -1;
}

void msg_done(struct msg *m)
{
    for (unsigned i = 0; i < m->n_fds; i++)
        fd_close(&m->fds[i]);
    m->n_fds = 0;
}
