/* identity: see identity.h. Runs in every process of ours on its way down. */
#include "box/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_LAST_CAP_AT_LEAST CAP_AUDIT_READ /* every kernel that we run on has it: Linux 3.16 */

int identity_become(uid_t uid, gid_t gid, bool groups, struct err *e)
{
    /* Without this the change of uid would clear the capabilities that the next steps need; they
     * are given up one by one there. */
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_NOROOT) < 0)
        return err_set(e, errno, "cannot set the secure bits");
    if (groups && setgroups(0, NULL) < 0)
        return err_set(e, errno, "cannot give up the supplementary groups");
    if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return err_set(e, errno, "cannot become user %u", uid);
    return 0;
}

int identity_files_as(uid_t id, struct err *e)
{
    /* These calls report nothing: asking again is the only check. */
    setfsgid(id);
    setfsuid(id);
    if ((uid_t)setfsuid((uid_t)-1) != id || (gid_t)setfsgid((gid_t)-1) != id)
        return err_set(e, EPERM, "cannot open files as user %u", id);
    return 0;
}

static int set_capabilities(uint64_t set, bool inherited, struct err *e)
{
    uint32_t low = (uint32_t)set, high = (uint32_t)(set >> 32);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = low, .permitted = low, .inheritable = inherited ? low : 0},
        {.effective = high, .permitted = high, .inheritable = inherited ? high : 0},
    };

    if (syscall(SYS_capset, &header, data) < 0)
        return err_set(e, errno, "cannot set the capabilities");
    return 0;
}

/* Nothing that is executed from here on gets a capability back. The first number that is none tells the
 * end: asking for each beforehand would double the calls, in both processes of every box. */
static int empty_bounding_set(struct err *e)
{
    unsigned long cap = 0;

    while (prctl(PR_CAPBSET_DROP, cap) == 0)
        cap++;
    if (errno != EINVAL || cap <= CAP_LAST_CAP_AT_LEAST)
        return err_set(e, errno, "cannot drop capability %lu", cap);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_set(e, errno, "cannot clear the ambient capabilities");
    return 0;
}

static int drop_but(uint64_t kept, struct err *e)
{
    if (empty_bounding_set(e) < 0 || set_capabilities(kept, false, e) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(e, errno, "cannot set no_new_privs");
    return 0;
}

int identity_drop(struct err *e)
{
    return drop_but(0, e);
}

int identity_drop_but_numbers(struct err *e)
{
    return drop_but(1ULL << CAP_CHECKPOINT_RESTORE, e);
}

int identity_keep_making(struct err *e)
{
    /* Namespaces and mounts; taking hold of a box's namespaces; mapping its ids (also from our own
     * uid 0); ending its processes. */
    static const int kept[] = {CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SETUID,
                               CAP_SETGID,    CAP_SETFCAP,    CAP_KILL};
    uint64_t set = 0;

    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        set |= 1ULL << kept[i];
    return set_capabilities(set, true, e);
}

int identity_keep_entering(struct err *e)
{
    if (set_capabilities(1ULL << CAP_SYS_ADMIN, true, e) < 0)
        return -1;
    /* So that it survives the exec of the interpreter, which has no capabilities of its own. */
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) < 0)
        return err_set(e, errno, "cannot pass CAP_SYS_ADMIN on");
    return 0;
}
