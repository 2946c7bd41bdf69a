/* landlock: see landlock.h. Runs in the kernel process of a box, before any user code and before any
 * other thread exists: below version 8 it binds the calling thread only. */
#include "box/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* Names that Debian 12's headers do not have yet. */
#define ACCESS_REFER (1ULL << 13)     /* ABI 2 */
#define ACCESS_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define ACCESS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1) /* both ABI 6 */

struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

#define READ_ACCESS                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_ACCESS                                                                               \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                               \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |  \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define DEVICE_ACCESS (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

int landlock_abi(void)
{
    long abi =
        syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

static int allow(int ruleset, const char *path, uint64_t access, struct err *e)
{
    cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno, "cannot open %s", path);
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_set(e, errno, "rule for %s", path);
    return 0;
}

static int allow_all(int ruleset, const char *const *paths, uint64_t access, struct err *e)
{
    for (; *paths; paths++)
        if (allow(ruleset, *paths, access, e) < 0)
            return -1;
    return 0;
}

int landlock_confine(const struct landlock_places *places, struct err *e)
{
    int abi = landlock_abi();

    if (abi == 0)
        return 0;
    uint64_t writes = WRITE_ACCESS;
    writes |= abi >= 2 ? ACCESS_REFER : 0;
    writes |= abi >= 3 ? ACCESS_TRUNCATE : 0;
    struct ruleset_attr attr = {
        .handled_access_fs =
            READ_ACCESS | writes | DEVICE_ACCESS | (abi >= 5 ? ACCESS_IOCTL_DEV : 0),
        .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
    };
    size_t size = abi >= 6   ? sizeof(attr)
                  : abi >= 4 ? offsetof(struct ruleset_attr, scoped)
                             : sizeof(attr.handled_access_fs);
    cleanup_fd int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    if (ruleset < 0)
        return err_set(e, errno, "landlock_create_ruleset");
    if (allow_all(ruleset, places->read, READ_ACCESS, e) < 0 ||
        allow_all(ruleset, places->write, READ_ACCESS | writes, e) < 0)
        return -1;
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return err_set(e, errno, "landlock_restrict_self");
    return 0;
}
