/* export: see export.h. */
#include "cli/export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"

#define FIGURES_MAX 100000
#define BOUND_MAX (64ull << 30) /* also where the workspace has no limit */

/* ---- the directory ---- */

static bool is_empty(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool empty = true;

    if (!d) {
        fd_close(&fd);
        return false;
    }
    for (struct dirent *entry; empty && (entry = readdir(d));)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(d);
    return empty;
}

int export_open(struct export *x, const char *dir, uint64_t bound, struct err *e)
{
    if (!*dir)
        return err_set(e, 0, "the directory for results has an empty name");
    if (fd_make_dirs(dir, 0777, e) < 0)
        return -1;
    cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno, "cannot open the directory %s", dir);
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return err_set(e, errno, "cannot write to the directory %s", dir);
    *x = (struct export){.name = xstrdup(dir), .fresh = is_empty(fd)};
    export_bound(x, bound);
    /* "out/" and "out" print alike. */
    for (size_t n = strlen(x->name); n > 1 && x->name[n - 1] == '/'; n--)
        x->name[n - 1] = '\0';
    x->fd = fd_steal(&fd);
    return 0;
}

void export_bound(struct export *x, uint64_t bound)
{
    x->left = bound < BOUND_MAX ? bound : BOUND_MAX;
}

void export_close(struct export *x)
{
    fd_close(&x->fd);
    free(x->name);
    x->name = NULL;
}

/* ---- names ---- */

static int check_path(const struct export *x, const char *path, struct err *e)
{
    if (path_check(path, strlen(path)))
        return err_set(e, 0, "not a name for a file");
    if (!x->fresh && (path[0] == '.' || strstr(path, "/.")))
        return err_set(e, 0, "hidden names are copied only into a directory that was empty");
    return 0;
}

static int open_beneath(int dir_fd, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
}

/* Walk down to the directory of `path`, making what is missing; *ret_last is the name in it. */
static int walk(int root_fd, const char *path, int *ret_fd, const char **ret_last, struct err *e)
{
    cleanup_fd int at = open_beneath(root_fd, ".");

    if (at < 0)
        return err_set(e, errno, "cannot open the directory");
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        char name[PATH_PART_LONGEST + 1];
        memcpy(name, path, (size_t)(slash - path));
        name[slash - path] = '\0';
        if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
            return err_set(e, errno, "cannot make a directory for it");
        int next = open_beneath(at, name);
        if (next < 0)
            return err_set(e, errno, "cannot enter its directory");
        fd_close(&at);
        at = next;
    }
    *ret_fd = fd_steal(&at);
    *ret_last = path;
    return 0;
}

/* ---- contents ---- */

static int copy(struct export *x, int from, int to, uint64_t *ret_size, struct err *e)
{
    static char piece[256 << 10];
    uint64_t size = 0;

    for (;;) {
        ssize_t n = read(from, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(e, errno, "cannot read it");
        if (n == 0)
            break;
        if ((uint64_t)n > x->left - size)
            return err_set(e, 0, "it holds more than the workspace may");
        if (fd_write_all(to, piece, (size_t)n) < 0)
            return err_set(e, errno, "cannot write it");
        size += (uint64_t)n;
    }
    x->left -= size;
    *ret_size = size;
    return 0;
}

static int check_contents(const struct export *x, int fd, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set(e, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode))
        return err_set(e, 0, "it is not a regular file");
    if ((uint64_t)st.st_size > x->left)
        return err_set(e, EFBIG, "it claims more bytes than the workspace may hold");
    return 0;
}

int export_file(struct export *x, const char *path, int fd, uint64_t *ret_size, struct err *e)
{
    cleanup_fd int dir = -1, to = -1;
    const char *last = NULL;
    uint64_t nonce, size = 0;
    char temp[40];

    if (check_path(x, path, e) < 0 || check_contents(x, fd, e) < 0 ||
        walk(x->fd, path, &dir, &last, e) < 0)
        return -1;
    if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
        return err_set(e, errno, "getrandom");
    snprintf(temp, sizeof(temp), ".retort-%016llx", (unsigned long long)nonce);
    to = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (to < 0)
        return err_set(e, errno, "cannot make a file");
    int r = copy(x, fd, to, &size, e);
    if (r == 0 && renameat(dir, temp, dir, last) < 0)
        r = err_set(e, errno, "cannot give it its name");
    if (r < 0)
        unlinkat(dir, temp, 0);
    else
        *ret_size = size;
    return r;
}

int export_figure(struct export *x, unsigned *number, const char *extension, const char *data,
                  size_t len, struct err *e)
{
    char name[64];

    for (unsigned n = *number; n < FIGURES_MAX; n++) {
        snprintf(name, sizeof(name), "figure-%u.%s", n, extension);
        cleanup_fd int to =
            openat(x->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (to < 0 && errno == EEXIST)
            continue;
        if (to < 0)
            return err_set(e, errno, "cannot make %s", name);
        if (fd_write_all(to, data, len) < 0) {
            int failed = errno;
            unlinkat(x->fd, name, 0);
            return err_set(e, failed, "cannot write %s", name);
        }
        *number = n;
        return 0;
    }
    return err_set(e, 0, "there are %u figures in the directory already", FIGURES_MAX);
}
