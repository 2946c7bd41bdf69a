/* fd: see fd.h. */
#include "base/fd.h"

#include <errno.h>
#include <time.h>
#include <signal.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

void fd_close(int *fd)
{
    if (*fd < 0)
        return;
    int saved = errno;
    close(*fd);
    errno = saved;
    *fd = -1;
}

int fd_steal(int *fd)
{
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

int fd_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t fd_read_full(int fd, void *data, size_t len)
{
    size_t got = 0;

    while (got < len) {
        ssize_t n = read(fd, (char *)data + got, len - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

int fd_put_text(int dirfd, const char *path, const char *text, struct err *e)
{
    cleanup_fd int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno, "cannot open %s", path);
    if (fd_write_all(fd, text, strlen(text)) < 0)
        return err_set(e, errno, "cannot write \"%s\" to %s", text, path);
    return 0;
}

int fd_get_text(int dirfd, const char *path, char *ret, size_t size, struct err *e)
{
    cleanup_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno, "cannot open %s", path);
    ssize_t n = fd_read_full(fd, ret, size);
    if (n < 0)
        return err_set(e, errno, "cannot read %s", path);
    if ((size_t)n == size)
        return err_set(e, EFBIG, "cannot read %s", path);
    ret[n] = '\0';
    return 0;
}

static int make_dir(const char *path, mode_t mode, struct err *e)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return err_set(e, errno, "cannot make the directory %s", path);
    return 0;
}

int fd_make_dirs(const char *path, mode_t mode, struct err *e)
{
    cleanup_free char *part = xstrdup(path);

    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        if (make_dir(part, mode, e) < 0)
            return -1;
        *slash = '/';
    }
    return make_dir(part, mode, e);
}

int fd_set_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int fd_place(const int *from, unsigned n, int first, unsigned inherited)
{
    enum { MOST = 16 };
    int aside[MOST];

    assert_that(n <= MOST);
    for (unsigned i = 0; i < n; i++) {
        aside[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, first + (int)n);
        if (from[i] >= 0 && aside[i] < 0)
            return -1;
    }
    for (unsigned i = 0; i < n; i++)
        if (aside[i] < 0)
            close(first + (int)i); /* whatever lies there was not meant to stay */
        else if (dup3(aside[i], first + (int)i, i < inherited ? 0 : O_CLOEXEC) < 0)
            return -1;
    return 0;
}

ssize_t fd_write_quietly(int fd, const void *data, size_t len)
{
    const struct timespec now = {0};
    sigset_t pipe_only, before;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t n = write(fd, data, len);
    int saved = errno;
    if (n < 0 && saved == EPIPE && !sigismember(&before, SIGPIPE))
        sigtimedwait(&pipe_only, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return n;
}
