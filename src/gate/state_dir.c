/* state_dir: see state_dir.h. */
#include "gate/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/home.h"

static char *default_dir(void)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = home_directory();

    if (geteuid() == 0)
        return xstrdup("/var/lib/retort");
    if (xdg && xdg[0] == '/')
        return xasprintf("%s/retort", xdg);
    return home ? xasprintf("%s/.local/state/retort", home) : NULL;
}

static int open_dir(const char *dir, struct stat *ret, struct err *e)
{
    cleanup_fd int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, ret) < 0)
        return err_set(e, errno, "the state directory %s", dir);
    return fd_steal(&fd);
}

int state_dir(const char *given, bool make, char **ret, struct err *e)
{
    cleanup_free char *dir = given ? xstrdup(given) : default_dir();
    struct stat sb;

    if (!dir)
        return err_set(e, 0, "there is no home directory to keep anything in: name one (--state)");
    if (!*dir)
        return err_set(e, 0, "the state directory has an empty name");
    /* 0700, as the XDG specification has it. */
    if (make && fd_make_dirs(dir, 0700, e) < 0)
        return -1;
    cleanup_fd int fd = open_dir(dir, &sb, e);
    if (fd < 0)
        return -1;
    if (sb.st_mode & 022)
        return err_set(e, 0,
                       "others may write to the state directory %s: take that right from them "
                       "(chmod go-w), or name another one",
                       dir);
    *ret = xstrdup(dir);
    return 0;
}

int state_dir_enter(const char *dir, struct err *e)
{
    struct stat sb;
    cleanup_fd int fd = open_dir(dir, &sb, e);

    if (fd < 0)
        return -1;
    if (fchdir(fd) < 0)
        return err_set(e, errno, "cannot go to the state directory %s", dir);
    if (geteuid() != 0 || sb.st_uid == 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(sb.st_gid, sb.st_gid, sb.st_gid) < 0 ||
        setresuid(sb.st_uid, sb.st_uid, sb.st_uid) < 0)
        return err_set(e, errno, "cannot become uid %u, who owns %s", (unsigned)sb.st_uid, dir);
    return 0;
}

int state_dir_give(const char *dir, uid_t uid, gid_t gid, struct err *e)
{
    static const char *const files[] = {"retort.db", "retort.db-wal", "retort.db-shm"};
    struct stat sb;
    cleanup_fd int fd = open_dir(dir, &sb, e);

    if (fd < 0)
        return -1;
    if (sb.st_uid == uid)
        return 0;
    /* Whoever owns it has chosen what its names lead to, so only what is root's own is given away. */
    if (sb.st_uid != 0)
        return err_set(e, 0,
                       "the state directory %s belongs to uid %u and not to uid %u, as whom the "
                       "server runs: change its owner, or name another one",
                       dir, (unsigned)sb.st_uid, (unsigned)uid);
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (fchownat(fd, files[i], uid, gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
            return err_set(e, errno, "cannot give %s/%s to uid %u", dir, files[i], (unsigned)uid);
    }
    if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
        return err_set(e, errno, "cannot give the state directory %s to uid %u", dir,
                       (unsigned)uid);
    return 0;
}
