/* transfer: see transfer.h. Runs in init. */
#include "init/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define NOT_YET (UINT64_MAX - 1)
#define GIVEN_UP UINT64_MAX
#define CHUNK (256 << 10)

int transfers_begin(struct transfers *t, uint32_t req, const char *path, int *pipe, struct err *e)
{
    if (files_check(path, e) < 0)
        return -1;
    if (t->n == TRANSFERS)
        return err_set(e, EBUSY, "%d uploads are under way; wait for one", TRANSFERS);
    /* Nameless until it is whole: the guest cannot even see it. */
    int file = openat(files_root(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0)
        return err_set(e, errno, "cannot make a file");
    struct transfer *x = &t->list[t->n++];
    *x = (struct transfer){.req = req, .pipe = fd_steal(pipe), .file = file, .size = NOT_YET};
    snprintf(x->path, sizeof(x->path), "%s", path);
    fd_set_nonblock(x->pipe);
    return 0;
}

void transfers_end(struct transfers *t, uint32_t req, uint64_t size)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->list[i].req == req)
            t->list[i].size = size;
}

nfds_t transfers_poll(struct transfers *t, struct pollfd *fds)
{
    for (unsigned i = 0; i < t->n; i++)
        fds[i] = (struct pollfd){.fd = t->list[i].ended ? -1 : t->list[i].pipe, .events = POLLIN};
    return t->n;
}

/* Give the file its name, over whatever has it now. Linking cannot replace, renaming can. */
static int name_it(struct transfer *x, struct err *e)
{
    char from[64], temporary[64];
    const char *name;

    cleanup_fd int dir = files_parent(x->path, &name, e);
    if (dir < 0)
        return -1;
    snprintf(from, sizeof(from), "/proc/self/fd/%d", x->file);
    snprintf(temporary, sizeof(temporary), ".upload-%u-%d", x->req, x->file);
    if (linkat(AT_FDCWD, from, dir, temporary, AT_SYMLINK_FOLLOW) < 0)
        return err_set(e, errno, "cannot name the file");
    if (renameat(dir, temporary, dir, name) < 0) {
        err_set(e, errno, "cannot put it at \"%s\"", name);
        unlinkat(dir, temporary, 0);
        return -1;
    }
    return 0;
}

/* 1: over, well or badly (*e has a text then); 0: not yet. */
static int move_some(struct transfer *x, struct err *e)
{
    static char chunk[CHUNK];
    ssize_t n = read(x->pipe, chunk, sizeof(chunk));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return err_set(e, errno, "cannot read the contents"), 1;
    x->ended = n == 0;
    if (fd_write_all(x->file, chunk, (size_t)n) < 0)
        return err_set(e, errno, "cannot write the file"), 1;
    x->got += (uint64_t)n;
    return 0;
}

static int step(struct transfer *x, bool readable, struct err *e)
{
    if (x->size == GIVEN_UP)
        return err_set(e, ECANCELED, "the upload was given up"), 1;
    if (readable && x->got != x->size && move_some(x, e))
        return 1;
    if (x->got > x->size && x->size != NOT_YET)
        return err_set(e, EFBIG, "more came than was announced"), 1;
    if (x->got != x->size && x->size != NOT_YET && x->ended)
        return err_set(e, EPIPE, "the contents ended early"), 1;
    if (x->got != x->size)
        return 0;
    name_it(x, e);
    return 1;
}

void transfers_move(struct transfers *t, const struct pollfd *fds, nfds_t n, transfer_over *over,
                    void *ctx)
{
    /* Backwards, because a finished one is replaced by the last. */
    for (unsigned i = t->n; i-- > 0;) {
        struct transfer *x = &t->list[i];
        struct err e = {0};
        if (!step(x, i < n && fds[i].revents != 0, &e))
            continue;
        over(ctx, x->req, x->path, e.text[0] ? &e : NULL);
        fd_close(&x->pipe);
        fd_close(&x->file);
        *x = t->list[--t->n];
    }
}
