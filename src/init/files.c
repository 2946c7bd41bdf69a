/* files: see files.h. Runs in init. The guest may change anything below the workspace at any moment,
 * while we walk: every step is relative to a descriptor, and the kernel refuses links, other mounts
 * and anything above the start. */
#include "init/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"

#define SAFE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

/* How deep a tree may be that is deleted, and how many things may be in it: somebody in the box may add
 * to it all the time. */
#define DELETE_DEPTH 64
#define DELETE_MOST 1000000

static int root = -1;

int files_init(const char *path, struct err *e)
{
    fd_close(&root);
    root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? err_set(e, errno, "cannot open %s", path) : 0;
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

int files_check(const char *path, struct err *e)
{
    enum path_fault fault = path_check(path, strlen(path));

    if (!fault)
        return 0;
    return err_set(e, fault == PATH_LONG || fault == PATH_LONG_PART ? ENAMETOOLONG : EINVAL, "%s",
                   path_fault_text(fault));
}

int files_open(const char *path, struct err *e)
{
    struct stat st;

    if (files_check(path, e) < 0)
        return -1;
    /* O_NONBLOCK: opening a FIFO would wait for its other end. */
    cleanup_fd int fd = open_safely(root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return err_set(e, errno,
                       errno == ELOOP ? "symbolic links are not followed" : "cannot open the file");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, EINVAL, "this is not a regular file");
    return fd_steal(&fd);
}

int files_open_to_write(const char *path, struct err *e)
{
    struct stat st;
    cleanup_fd int fd = open_safely(root, path, O_RDWR | O_NONBLOCK);

    if (fd < 0)
        return err_set(e, errno, "cannot open the file");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, EINVAL, "this is not a regular file");
    return fd_steal(&fd);
}

int files_stat(const char *path, struct stat *ret)
{
    cleanup_fd int fd = open_safely(root, path, O_PATH);

    return fd < 0 || fstat(fd, ret) < 0 ? errno : 0;
}

int files_parent(const char *path, const char **ret_name, struct err *e)
{
    char part[PATH_PART_LONGEST + 1];

    if (files_check(path, e) < 0)
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

/* ---- deleting ---- */

/* A directory that its owner has made unreadable is to go like any other. By a descriptor, so that the
 * right one is changed whatever has the name by now. */
static int open_shut(int parent, const char *name)
{
    char self[64];
    cleanup_fd int place = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (place < 0)
        return -1;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
    if (chmod(self, 0700) < 0)
        return -1;
    return openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int delete_in(int dir, unsigned depth, unsigned *left, struct err *e);

static int delete_one(int parent, const char *name, unsigned depth, unsigned *left, struct err *e)
{
    if ((*left)-- == 0)
        return err_set(e, EBUSY, "there is more and more in the directory"), *left = 0, -1;
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return err_set(e, errno, "cannot delete \"%s\"", name);
    if (depth == 0)
        return err_set(e, E2BIG, "the directories are nested more than %d deep", DELETE_DEPTH);
    int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno == EACCES)
        dir = open_shut(parent, name);
    if (dir < 0)
        return err_set(e, errno, "cannot open the directory \"%s\"", name);
    if (delete_in(dir, depth - 1, left, e) < 0)
        return -1;
    if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_set(e, errno, "cannot delete the directory \"%s\"", name);
    return 0;
}

/* Empty `dir`, which is taken over. */
static int delete_in(int dir, unsigned depth, unsigned *left, struct err *e)
{
    DIR *d = fdopendir(dir);
    int result = 0;

    if (!d) {
        close(dir);
        return err_set(e, ENOMEM, "cannot read a directory");
    }
    for (struct dirent *entry; result == 0 && (entry = readdir(d));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = delete_one(dirfd(d), entry->d_name, depth, left, e);
    closedir(d);
    return result;
}

int files_delete(const char *path, struct err *e)
{
    char parent[FILES_PATH] = ".";
    unsigned left = DELETE_MOST;
    struct stat st;

    if (files_check(path, e) < 0)
        return -1;
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
    cleanup_fd int dir = open_safely(root, parent, O_PATH | O_DIRECTORY);
    if (dir < 0)
        return err_set(e, errno,
                       errno == ELOOP ? "symbolic links are not followed" : "cannot find it");
    const char *name = slash ? slash + 1 : path;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(e, errno, "cannot find it");
    return delete_one(dir, name, DELETE_DEPTH, &left, e);
}

void files_delete_all(void)
{
    static const char *const places[] = {BOX_WORKSPACE, BOX_HOME, "/tmp", "/dev/shm"};
    struct err ignored;

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        unsigned left = DELETE_MOST;
        int dir = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0)
            delete_in(dir, DELETE_DEPTH, &left, &ignored);
    }
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
