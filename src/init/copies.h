/* copies: what files of the workspace held, in memory that is given back when it is short.
 *
 * A process of its own has them, the holder: plain memory of its own, so that all of it is free at the moment when
 * the kernel ends the holder, which it does before it ends the interpreter. Making them is the holder's work too: no
 * copy can cost somebody else his life. (In a file without a name, as a memfd is, they would be freed a little
 * later, and the kernel would choose its next victim meanwhile.) Where no cgroup counts memory init has them itself,
 * in such a file, and gives them back when it sees that memory is short.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define COPIES_DUE 32

/* One of them, that is there or was. */
struct piece {
    uint64_t at; /* as its holder counts */
    uint64_t size;
    uint32_t life; /* 0: none */
};

struct copies {
    pid_t (*fork)(void *ctx); /* makes the holder as fork does; NULL: init has them */
    void *ctx;
    uint64_t most, used; /* bytes */
    uint32_t life;       /* which holder this is: what an earlier one had is gone */
    pid_t holder;
    pid_t ended;                   /* one before it, that is dying or dead, and not reaped yet */
    int line;                      /* to it */
    struct piece *due[COPIES_DUE]; /* what it has been asked for, in order */
    unsigned n_due;
    int fd; /* where init has them, up to: */
    uint64_t end;
};

void copies_init(struct copies *c, uint64_t most, pid_t (*fork)(void *ctx), void *ctx);
/* Copy so many bytes of a file, from its beginning. *ret is right after copies_settle, and stays in its place until
 * then: none, where not all of it was there, or there is no room. */
void copies_put(struct copies *c, int from, uint64_t size, struct piece *ret);
void copies_settle(struct copies *c);
/* Is it still there? */
bool copies_has(const struct copies *c, const struct piece *x);
/* Write it to a file, where that stands. */
int copies_get(struct copies *c, const struct piece *x, int to, struct err *e);
/* A file in which it is, from *ret_offset on. */
int copies_open(struct copies *c, const struct piece *x, uint64_t *ret_offset, struct err *e);
void copies_drop(struct copies *c, struct piece *x);
/* Give all of them back. */
void copies_forget(struct copies *c);
/* A child of ours has ended. True: it was the holder. */
bool copies_reaped(struct copies *c, pid_t pid);
