/* fonts: see fonts.h. Runs in the keeper while it starts, on files of the host's administrator. */
#include "box/fonts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/copy.h"

#define SEEN "/usr/"

/* How a cache of a 64-bit machine begins (fontconfig's struct _FcCache). What another kind of machine has made is no
 * use here, and has no such directory at this place. */
struct head {
    uint32_t magic, version;
    uint64_t size;
    uint64_t dir; /* where the name of its directory begins, counted from the beginning */
};

static bool is_of_usr(const char *path)
{
    struct head head;
    char dir[sizeof(SEEN) - 1];

    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fd_read_full(fd, &head, sizeof(head)) != sizeof(head))
        return false;
    if (head.dir > INT32_MAX || pread(fd, dir, sizeof(dir), (off_t)head.dir) != sizeof(dir))
        return false;
    return memcmp(dir, SEEN, sizeof(dir)) == 0;
}

int fonts_copy_caches(const char *from, const char *to, struct err *e)
{
    char path[PATH_MAX], copy[PATH_MAX];
    int result = 0;

    DIR *d = opendir(from);
    if (!d)
        return 0;
    if (mkdir(to, 0755) < 0)
        result = err_set(e, errno, "cannot make directory %s", to);
    for (struct dirent *entry; result == 0 && (entry = readdir(d));) {
        if (snprintf(path, PATH_MAX, "%s/%s", from, entry->d_name) < PATH_MAX &&
            snprintf(copy, PATH_MAX, "%s/%s", to, entry->d_name) < PATH_MAX && is_of_usr(path))
            result = copy_tree(path, copy, e);
    }
    closedir(d);
    return result;
}
