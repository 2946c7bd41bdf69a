/* files: see files.h. Runs in init. The guest may change anything below the workspace at any moment,
 * while we walk: every step is relative to a descriptor, and the kernel refuses links, other mounts
 * and anything above the start. */
#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"

#define SAFE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

static int root = -1;

int files_init(struct err *e)
{
    root = open(BOX_WORKSPACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? err_set(e, errno, "cannot open " BOX_WORKSPACE) : 0;
}

int files_root(void)
{
    return root;
}

static int open_safely(int dir, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC | O_NOFOLLOW, .resolve = SAFE};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Relative, no empty, "." or ".." component. The kernel would refuse the dangerous ones; this is for
 * a clear answer, and so that one file has one name. */
static int check_path(const char *path, struct err *e)
{
    const char *p = path;

    do {
        size_t n = strcspn(p, "/");
        if (n == 0)
            return err_set(e, EINVAL, "a path must be relative and have no empty part");
        if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return err_set(e, EINVAL, "a path must not have \".\" or \"..\" in it");
        if (n > 255)
            return err_set(e, ENAMETOOLONG, "a part of the path is longer than 255 bytes");
        p += n;
    } while (*p++ == '/');
    return 0;
}

int files_open(const char *path, struct file_facts *ret, struct err *e)
{
    struct stat st;

    if (check_path(path, e) < 0)
        return -1;
    /* O_NONBLOCK: opening a FIFO would wait for its other end. */
    cleanup_fd int fd = open_safely(root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return err_set(e, errno,
                       errno == ELOOP ? "symbolic links are not followed" : "cannot open the file");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, EINVAL, "this is not a regular file");
    ret->size = (uint64_t)st.st_size;
    ret->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    return fd_steal(&fd);
}

int files_parent(const char *path, const char **ret_name, struct err *e)
{
    char part[256];

    if (check_path(path, e) < 0)
        return -1;
    cleanup_fd int dir = dup(root);
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
            return err_set(e, errno, "cannot make the directory \"%s\"", part);
        int next = open_safely(dir, part, O_PATH | O_DIRECTORY);
        if (next < 0)
            return err_set(e, errno, "\"%s\" is not a directory to write into", part);
        fd_close(&dir);
        dir = next;
    }
    *ret_name = path;
    return fd_steal(&dir);
}

void files_space(uint64_t *ret_bytes, uint64_t *ret_files)
{
    struct statvfs s;

    *ret_bytes = *ret_files = 0;
    if (fstatvfs(root, &s) < 0)
        return;
    *ret_bytes = (uint64_t)(s.f_blocks - s.f_bfree) * s.f_frsize;
    *ret_files = s.f_files ? s.f_files - s.f_ffree - 1 : 0; /* the root itself does not count */
}
