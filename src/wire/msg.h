/* msg: messages with descriptors between our own processes, on a SOCK_SEQPACKET socket.
 *
 * The kernel keeps the boundaries. A message is a type (u32) and fields. Descriptors that come with
 * a message nobody expected are closed, and a message that was cut off is an error.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define MSG_SIZE (64u << 10)
#define MSG_FDS 20

struct msg {
    uint32_t type;
    const char *data;
    size_t len;
    int fds[MSG_FDS];
    unsigned n_fds;
    pid_t from; /* who sent it, where the socket has SO_PASSCRED; else 0 */
    char bytes[MSG_SIZE];
};

/* A connected pair, close-on-exec. */
int msg_pair(int ret[2], struct err *e);

/* Start a message in an empty buffer; add fields; send it. Descriptors stay the caller's. */
void msg_begin(struct buf *b, uint32_t type);
int msg_send(int fd, const struct buf *b, const int *fds, unsigned n_fds, struct err *e);
/* The same to one who may never read: EAGAIN where it has to wait. */
int msg_try_send(int fd, const struct buf *b, const int *fds, unsigned n_fds, struct err *e);

/* 1: *ret is a message; 0: the other side is gone; -1: failed (e->code is EAGAIN when there is
 * nothing on a non-blocking socket; EMFILE when this process has no room for the descriptors that came: then
 * the rest of the message is in *ret, for whoever can do without). */
int msg_recv(int fd, struct msg *ret, struct err *e);

/* Take the i-th descriptor over, or -1 where the message has none. */
int msg_take_fd(struct msg *m, unsigned i);
/* Close what was not taken. */
void msg_done(struct msg *m);
#define cleanup_msg __attribute__((cleanup(msg_done)))
