/* notebook_file: see notebook_file.h. */
#include "session/notebook_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "session/notebook.h"

#define WAITING_MAX (256u << 10) /* in memory, before it goes to the spool */

struct notebook {
    struct buf waiting; /* cells as text */
    int spool;          /* those before; -1: none yet */
    unsigned cells;
    json_t *retort;
};

struct notebook *notebook_new(void)
{
    struct notebook *nb = xcalloc(1, sizeof(*nb));

    nb->spool = -1;
    nb->retort = json_object();
    assert_that(nb->retort);
    notebook_begin(&nb->waiting);
    return nb;
}

void notebook_free(struct notebook *nb)
{
    if (!nb)
        return;
    buf_done(&nb->waiting);
    fd_close(&nb->spool);
    json_decref(nb->retort);
    free(nb);
}

/* ---- the spool ---- */

static int open_spool(struct err *e)
{
    const char *dir = secure_getenv("TMPDIR");
    cleanup_free char *path = xasprintf("%s/retort-notebook-XXXXXX", dir && *dir ? dir : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0)
        return err_set(e, errno, "cannot make a temporary file for the notebook");
    unlink(path);
    return fd;
}

static int spool(struct notebook *nb, struct err *e)
{
    if (nb->waiting.len < WAITING_MAX)
        return 0;
    if (nb->spool < 0 && (nb->spool = open_spool(e)) < 0)
        return -1;
    off_t end = lseek(nb->spool, 0, SEEK_END);
    if (end < 0 || fd_write_all(nb->spool, nb->waiting.data, nb->waiting.len) < 0) {
        err_set(e, errno, "cannot keep the notebook in a temporary file");
        if (end >= 0 && ftruncate(nb->spool, end) < 0)
            err_wrap(e, "it is broken now");
        return -1; /* it still waits: the next try may have more luck */
    }
    buf_done(&nb->waiting);
    return 0;
}

/* ---- filling it ---- */

int notebook_add_markdown(struct notebook *nb, const char *role, const char *text, struct err *e)
{
    notebook_text(&nb->waiting, role, text, strlen(text), nb->cells++);
    return spool(nb, e);
}

int notebook_add_cell(struct notebook *nb, const json_t *cell, bool undone, struct err *e)
{
    notebook_code(&nb->waiting, cell, undone, nb->cells++);
    return spool(nb, e);
}

void notebook_set(struct notebook *nb, const char *key, json_t *value)
{
    if (json_object_set_new(nb->retort, key, value) < 0)
        bug("cannot build a notebook (%s)", key);
}

/* ---- writing it ---- */

static int copy_spool(const struct notebook *nb, int to)
{
    cleanup_free char *piece = xcalloc(1, WAITING_MAX);

    for (off_t at = 0; nb->spool >= 0;) {
        ssize_t n = pread(nb->spool, piece, WAITING_MAX, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || fd_write_all(to, piece, (size_t)n) < 0)
            return -1;
        if (n == 0)
            break;
        at += n;
    }
    return 0;
}

static int put(const struct notebook *nb, int to)
{
    cleanup_buf struct buf end = {0};

    notebook_end(&end, json_deep_copy(nb->retort));
    if (copy_spool(nb, to) < 0 || fd_write_all(to, nb->waiting.data, nb->waiting.len) < 0)
        return -1;
    return fd_write_all(to, end.data, end.len);
}

/* As open() would have made it. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

int notebook_write(struct notebook *nb, const char *path, struct err *e)
{
    cleanup_free char *temp = xasprintf("%s.XXXXXX", path);
    cleanup_fd int fd = mkostemp(temp, O_CLOEXEC);

    if (fd < 0)
        return err_set(e, errno, "cannot write %s", path);
    if (put(nb, fd) < 0 || fchmod(fd, usual_mode()) < 0 || rename(temp, path) < 0) {
        err_set(e, errno, "cannot write %s", path);
        unlink(temp);
        return -1;
    }
    return 0;
}
