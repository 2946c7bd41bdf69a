/* confine: see confine.h. Runs once, in the process that becomes the gate, when its keeper stands and its
 * socket listens: from here on it has no right on the host but those two and one directory. */
#include "gate/confine.h"

#include <errno.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/identity.h"
#include "box/landlock.h"

/* Above the ranges that keepers take for boxes (keeper/start.c), below 2^31: no account has it. */
#define OWN_UID 2013265920u

/* Sanitizers look at themselves with calls that a gate has no use for. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

int confine_user(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct err *e)
{
    const struct passwd *pw;

    errno = 0;
    pw = getpwnam(name ? name : "retort");
    if (!pw && name)
        return err_set(e, errno, "there is no user \"%s\" (\"user\" in the configuration)", name);
    *ret_uid = pw ? pw->pw_uid : OWN_UID;
    *ret_gid = pw ? pw->pw_gid : OWN_UID;
    return 0;
}

/* What a server with an event loop and a database calls. The rest is "no such call": above all nothing
 * that starts a program or a process, looks into another one, or changes what is mounted. */
static const char *const calls[] = {
    /* files */
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "preadv",
    "pwritev",
    "open",
    "openat",
    "close",
    "close_range",
    "stat",
    "fstat",
    "lstat",
    "newfstatat",
    "statx",
    "statfs",
    "fstatfs",
    "lseek",
    "access",
    "faccessat",
    "faccessat2",
    "fcntl",
    "flock",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fallocate",
    "fadvise64",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "fchmod",
    "fchown",
    "getdents64",
    "getcwd",
    "readlink",
    "readlinkat",
    "umask",
    "utimensat",
    "sendfile",
    "splice",
    /* waiting */
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "eventfd2",
    "timerfd_create",
    "timerfd_settime",
    "timerfd_gettime",
    "signalfd4",
    "pipe2",
    "dup",
    "dup2",
    "dup3",
    "nanosleep",
    "clock_nanosleep",
    "restart_syscall",
    "futex",
    /* sockets that there are; none is made or connected */
    "accept",
    "accept4",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "shutdown",
    "getsockopt",
    "setsockopt",
    "getsockname",
    "getpeername",
    "listen",
    /* memory */
    "mmap",
    "munmap",
    "mprotect",
    "mremap",
    "madvise",
    "brk",
    "membarrier",
    /* itself */
    "getpid",
    "gettid",
    "getppid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getrlimit",
    "getrusage",
    "sysinfo",
    "uname",
    "times",
    "time",
    "clock_gettime",
    "clock_getres",
    "gettimeofday",
    "getrandom",
    "sched_yield",
    "sched_getaffinity",
    "getcpu",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigpending",
    "rt_sigtimedwait",
    "sigaltstack",
    "wait4",
    "waitid",
    "exit",
    "exit_group",
    "set_robust_list",
    "rseq",
    "prctl",
};

/* Calls of which some uses are: those where the argument `arg`, in the bits of `mask`, is `value`. What is
 * compared is 64 bits wide, where the kernel may look at 32 of them; so what is allowed is named, and not what
 * is refused. */
static const struct {
    const char *call;
    unsigned arg;
    uint64_t mask, value;
} uses[] = {
    /* A TCP socket that was shut can be connected by sending: that would be a way out. */
    {"sendto", 3, MSG_FASTOPEN, 0},
    {"sendmsg", 2, MSG_FASTOPEN, 0},
    {"sendmmsg", 3, MSG_FASTOPEN, 0},
    /* Not TIOCSTI, which types into the terminal that we may have been started from. */
    {"ioctl", 1, UINT64_MAX, FIONREAD},
    {"ioctl", 1, UINT64_MAX, TCGETS},
    {"prlimit64", 0, UINT64_MAX, 0}, /* itself */
    /* Threads (the store has one), but no processes. clone3 cannot be looked into; libc does without. */
    {"clone", 0, CLONE_THREAD, CLONE_THREAD},
};

static int allow(scmp_filter_ctx filter, const char *call, const struct scmp_arg_cmp *use)
{
    int number = seccomp_syscall_resolve_name(call);

    if (number < 0)
        return 0; /* one that this machine does not have */
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, use ? 1 : 0, use);
}

static int load_filter(struct err *e)
{
#ifdef SANITIZED
    (void)calls;
    (void)uses;
    (void)allow;
    (void)e;
    return 0;
#else
    const struct scmp_arg_cmp own_pid = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid());
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int r = filter ? seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2) : -ENOMEM;

    for (size_t i = 0; r == 0 && i < sizeof(calls) / sizeof(*calls); i++)
        r = allow(filter, calls[i], NULL);
    for (size_t i = 0; r == 0 && i < sizeof(uses) / sizeof(*uses); i++)
        r = allow(filter, uses[i].call,
                  &SCMP_CMP(uses[i].arg, SCMP_CMP_MASKED_EQ, uses[i].mask, uses[i].value));
    if (r == 0)
        r = allow(filter, "tgkill", &own_pid); /* abort() */
    if (r == 0)
        r = seccomp_load(filter);
    seccomp_release(filter);
    return r < 0 ? err_set(e, -r, "cannot put the gate's seccomp filter on") : 0;
#endif
}

int confine_gate(const char *dir, uid_t uid, gid_t gid, struct err *e)
{
    static const char *const read[] = {"/proc/self", NULL}; /* for metrics */
    static const char *const write[] = {".", NULL}, *const none[] = {NULL};
    const struct landlock_places places = {.read = read, .write = dir ? write : none};

    /* While we may still walk there: its parents may be closed to the gate's user. */
    if (chdir(dir ? dir : "/") < 0)
        return err_set(e, errno, "cannot go to %s", dir ? dir : "/");
    umask(077);
    /* An ordinary user has no capability to give up, and may not even try. */
    if (geteuid() == 0 && (identity_become(uid, gid, true, e) < 0 || identity_drop(e) < 0))
        return err_wrap(e, "the gate's confinement");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(e, errno, "cannot set no_new_privs");
    if (landlock_confine(&places, e) < 0)
        return err_wrap(e, "the gate's confinement");
    return load_filter(e);
}
