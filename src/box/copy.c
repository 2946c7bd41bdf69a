/* copy: see copy.h. Runs in the keeper while it starts, on files of the host's administrator. */
#include "box/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define MAX_ENTRIES 20000
#define MAX_FILE (64 << 20)

/* nftw takes no context; one copy runs at a time, in one thread. */
static struct {
    size_t from_len;
    const char *to;
    unsigned left;
    struct err *e;
} job;

static int copy_file(const char *from, const char *to, const struct stat *st)
{
    cleanup_fd int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0)
        return 0; /* not for us to read */
    cleanup_fd int out =
        open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (st->st_mode & 0111) | 0444);
    if (out < 0)
        return err_set(job.e, errno, "cannot make %s", to);
    for (off_t left = st->st_size; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        if (n < 0)
            return err_set(job.e, errno, "cannot copy %s", from);
        if (n == 0)
            break;
        left -= n;
    }
    return 0;
}

static int copy_link(const char *from, const char *to)
{
    char target[PATH_MAX];
    ssize_t n = readlink(from, target, sizeof(target) - 1);

    if (n < 0)
        return 0;
    target[n] = '\0';
    if (symlink(target, to) < 0)
        return err_set(job.e, errno, "cannot make the link %s", to);
    return 0;
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    char to[PATH_MAX];
    (void)at;

    if (job.left-- == 0)
        return err_set(job.e, E2BIG, "%s has more than %d entries", job.to, MAX_ENTRIES);
    if ((size_t)snprintf(to, sizeof(to), "%s%s", job.to, path + job.from_len) >= sizeof(to))
        return err_set(job.e, ENAMETOOLONG, "%s", path);
    if (kind == FTW_D && mkdir(to, 0755) < 0 && errno != EEXIST)
        return err_set(job.e, errno, "cannot make directory %s", to);
    if (kind == FTW_SL || kind == FTW_SLN)
        return copy_link(path, to);
    if (kind == FTW_F && S_ISREG(st->st_mode) && st->st_size <= MAX_FILE)
        return copy_file(path, to, st);
    return 0;
}

int copy_tree(const char *from, const char *to, struct err *e)
{
    struct stat st;

    if (lstat(from, &st) < 0)
        return 0;
    job.from_len = strlen(from);
    job.to = to;
    job.left = MAX_ENTRIES;
    job.e = e;
    if (nftw(from, visit, 32, FTW_PHYS | FTW_MOUNT) != 0)
        return -1;
    return 0;
}
