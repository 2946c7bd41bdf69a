/* handover: see handover.h. Both sides run in init, one as the box's and one as the branch's. What comes is taken as
 * a guest's: paths cannot lead out of the workspace, and the workspace's own size is the bound. */
#include "init/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files.h"
#include "wire/fields.h"
#include "wire/msg.h"
#include "wire/proto.h"

/* ---- sending ---- */

struct sending {
    int to;
    struct err *e;
};

static int send_one(void *ctx, const struct past_item *x)
{
    struct sending *s = ctx;
    cleanup_buf struct buf b = {0};

    msg_begin(&b, HANDOVER_ENTRY);
    fields_put_u32(&b, x->mode);
    fields_put_u64(&b, x->mtime_ns);
    fields_put_u64(&b, x->size);
    fields_put_u64(&b, x->offset);
    fields_put_text(&b, x->path);
    fields_put_text(&b, x->target ? x->target : "");
    return msg_send(s->to, &b, &x->fd, x->fd >= 0, s->e);
}

int handover_send(const struct past *p, int to, struct err *e)
{
    struct sending s = {.to = to, .e = e};

    return past_each(p, send_one, &s);
}

/* ---- receiving ---- */

static int fill(int to, int from, off_t at, uint64_t size)
{
    while (size > 0) {
        ssize_t n = sendfile(to, from, &at, size < (1u << 30) ? (size_t)size : 1u << 30);
        if (n <= 0)
            return -1;
        size -= (uint64_t)n;
    }
    return 0;
}

static int make_one(const struct past_item *x, struct err *e)
{
    const struct timespec at = {.tv_sec = (time_t)(x->mtime_ns / 1000000000u),
                                .tv_nsec = (long)(x->mtime_ns % 1000000000u)};
    const struct timespec times[2] = {at, at};
    const char *name;

    cleanup_fd int dir = files_parent(x->path, &name, e);
    if (dir < 0)
        return -1;
    if (S_ISLNK(x->mode))
        return symlinkat(x->target, dir, name) < 0 ? err_set(e, errno, "cannot make %s", x->path)
                                                   : 0;
    if (S_ISDIR(x->mode)) {
        if (mkdirat(dir, name, x->mode & 07777) < 0 && errno != EEXIST)
            return err_set(e, errno, "cannot make %s", x->path);
        return 0;
    }
    cleanup_fd int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || x->fd < 0 || fill(fd, x->fd, (off_t)x->offset, x->size) < 0 ||
        fchmod(fd, x->mode & 07777) < 0 || futimens(fd, times) < 0)
        return err_set(e, errno, "cannot make %s", x->path);
    return 0;
}

int handover_receive(int from, struct err *e)
{
    static struct msg m;
    char path[FILES_PATH], target[FILES_PATH];
    struct fields f;
    int r;

    while ((r = msg_recv(from, &m, e)) > 0) {
        fields_init(&f, m.data, m.len);
        struct past_item x = {.mode = fields_get_u32(&f),
                              .mtime_ns = fields_get_u64(&f),
                              .size = fields_get_u64(&f),
                              .offset = fields_get_u64(&f),
                              .path = path,
                              .target = target,
                              .fd = m.n_fds > 0 ? m.fds[0] : -1};
        fields_get_text(&f, path, sizeof(path));
        fields_get_text(&f, target, sizeof(target));
        int made =
            !fields_end(&f) ? err_set(e, EBADMSG, "bad words about a file") : make_one(&x, e);
        msg_done(&m);
        if (made < 0)
            return -1;
    }
    return r;
}
