/* filter: see filter.h. Runs in the keeper; loading it is filter_load.c.
 *
 * An allow-list. What is not on any list, because it is new or because nobody needs it, answers
 * ENOSYS: honest programs then take their older way, where a filter that kills would end them at
 * random. What is known and dangerous answers EPERM. Only a foreign architecture (int 0x80, x32) is
 * killed, because the numbers would mean other calls there.
 *
 * The box has no capabilities and lives in namespaces of its own, so most of what is denied here
 * would fail anyway: the filter is there for the kernel's own bugs, and denies first of all the code
 * that most privilege escalations came through (namespaces, bpf, io_uring, keys, userfaultfd,
 * splice, perf, netlink).
 */
#include "box/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/sched.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "box/box.h"
#include "box/shrink.h"

/* clang-format off */
static const char *const allowed[] = {
    /* files and directories */
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr",
    "flock", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat",
    "getcwd", "getdents", "getdents64", "getxattr", "inotify_add_watch", "inotify_init",
    "inotify_init1", "inotify_rm_watch", "lchown", "lgetxattr", "link", "linkat", "listxattr",
    "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod",
    "mknodat", "newfstatat", "open", "openat", "openat2", "pipe", "pipe2", "pread64", "preadv",
    "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat",
    "readv", "removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr",
    "stat", "statfs", "statx", "symlink", "symlinkat", "sync_file_range", "truncate", "umask",
    "unlink", "unlinkat", "utime", "utimensat", "utimes", "write", "writev",
    /* waiting */
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd", "eventfd2", "poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4",
    /* memory */
    "brk", "madvise", "membarrier", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap",
    "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",
    /* processes, threads, signals; its own only: the pid namespace shows no others */
    "alarm", "arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group", "fork",
    "futex", "futex_waitv", "get_robust_list", "get_thread_area", "getcpu", "getegid", "geteuid",
    "getgid", "getgroups", "getitimer", "getpgid", "getpgrp", "getpid", "getppid", "getpriority",
    "getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "gettid", "getuid", "ioprio_get",
    "ioprio_set", "kill", "pause", "pidfd_open", "pidfd_send_signal", "prlimit64", "restart_syscall",
    "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr",
    "sched_setparam", "sched_setscheduler", "sched_yield", "set_robust_list", "set_tid_address",
    "setfsgid", "setfsuid", "setgid", "setgroups", "setitimer", "setpgid", "setpriority",
    "setns", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid", "setuid",
    "sigaltstack", "tgkill", "tkill", "vfork", "wait4", "waitid",
    /* time */
    "clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time",
    "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime",
    "timerfd_create", "timerfd_gettime", "timerfd_settime", "times",
    /* sockets; which families may be opened is below */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    /* System V and POSIX messages, in the box's own ipc namespace */
    "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
    "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
    "shmctl", "shmdt",
    /* the rest; clone, ioctl and prctl are looked at again by the second program */
    "clone", "getrandom", "ioctl", "prctl", "sysinfo", "uname",
};

/* Memory that belongs to no process: only where a cgroup counts it. */
static const char *const uncounted_memory[] = {"memfd_create", "shmget"};

static const char *const dangerous[] = {
    /* namespaces and mounts: the way into most of the kernel's privileged code */
    "chroot", "fsconfig", "fsmount", "fsopen", "fspick", "listmount", "move_mount", "open_tree",
    "statmount", "umount",
    /* other processes' memory and descriptors */
    "kcmp", "pidfd_getfd", "process_madvise", "process_mrelease", "process_vm_readv",
    "process_vm_writev", "ptrace",
    /* kernel code that has been exploited again and again */
    "add_key", "bpf", "fanotify_init", "fanotify_mark", "io_uring_enter", "keyctl", "perf_event_open", "request_key", "seccomp", "splice", "tee",
    "userfaultfd", "vmsplice",
    /* what others have in the page cache */
    "cachestat", "mincore",
    /* files behind the mount namespace's back */
    "name_to_handle_at", "open_by_handle_at",
    /* the machine */
    "acct", "adjtimex", "clock_adjtime", "clock_settime", "delete_module", "finit_module",
    "get_mempolicy", "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load",
    "lookup_dcookie", "mbind", "migrate_pages", "modify_ldt", "move_pages", "nfsservctl",
    "quotactl", "quotactl_fd", "reboot", "set_mempolicy", "settimeofday", "stime",
    "swapoff", "swapon", "syslog", "uselib", "vhangup", "vm86", "vm86old",
};

/* What the keeper, its zygotes and both halves of a box call until it is made, and what it answers from
 * then on. By number: a library that does not know the name must not leave it out. */
static const struct {
    int nr, error;
} making[] = {
    {SYS_mount, EPERM}, {SYS_mount_setattr, EPERM}, {SYS_pivot_root, EPERM},
    {SYS_umount2, EPERM}, {SYS_unshare, EPERM}, {SYS_setdomainname, EPERM}, {SYS_sethostname, EPERM},
    {SYS_clone3, ENOSYS}, {SYS_landlock_create_ruleset, ENOSYS}, {SYS_landlock_add_rule, ENOSYS},
    {SYS_landlock_restrict_self, ENOSYS},
    /* a zygote has a ring that it never uses: see zygote/hot.c */
    {SYS_io_uring_setup, EPERM}, {SYS_io_uring_register, EPERM},
};

/* Flushing the whole machine's disks is nobody's business here, but programs that call it mean well:
 * it "succeeds". The workspace is in memory anyway. */
static const char *const pretended[] = {"sync", "syncfs"};
/* clang-format on */

static int add(scmp_filter_ctx c, uint32_t action, const char *name, struct err *e)
{
    int nr = seccomp_syscall_resolve_name(name);

    if (nr == __NR_SCMP_ERROR)
        return 0; /* this libseccomp does not know it: then it is ENOSYS */
    int r = seccomp_rule_add(c, action, nr, 0);
    if (r < 0)
        return err_set(e, -r, "seccomp rule for %s", name);
    return 0;
}

static int add_all(scmp_filter_ctx c, uint32_t action, const char *const *names, size_t n,
                   struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (add(c, action, names[i], e) < 0)
            return -1;
    return 0;
}

#define ADD_ALL(c, action, names, e) add_all(c, action, names, sizeof(names) / sizeof(*names), e)

/* The second program denies by argument what the first one allows by name. Integer arguments are
 * compared in their low 32 bits, as the kernel itself does, so that garbage above them opens no
 * second door. */
struct refusal {
    int nr;
    int error;
    unsigned n;
    struct scmp_arg_cmp args[2];
};

#define ARG_IS(arg, value) SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, 0xffffffffu, (uint32_t)(value))
/* of socket(): what lies above the type are flags */
#define TYPE_IS(arg, value) SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, 0xfu, (uint32_t)(value))
/* a number of one that waits */
#define PIDS_MASK (0xffffffffu & ~(BOX_WAITING_PIDS - 1u))
#define ARG_WAITS(arg) SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, PIDS_MASK, BOX_WAITING_PID)
/* one's group, of which it is the only member; but for -BOX_WAITING_PID itself */
#define ARG_IS_THEIR_GROUP(arg)                                                                    \
    SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, PIDS_MASK, (uint32_t)-2 * BOX_WAITING_PID)
/* options that name a table: a few from this number on */
#define TABLES(arg, first) SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, 0xfffffffcu, first)
#define ARG_HAS(arg, flag) SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, flag, flag)

static int refuse(scmp_filter_ctx c, const struct refusal *r, struct err *e)
{
    int rc = seccomp_rule_add_array(c, SCMP_ACT_ERRNO((uint32_t)r->error), r->nr, r->n, r->args);
    return rc < 0 ? err_set(e, -rc, "seccomp argument rule for call %d", r->nr) : 0;
}

static int refuse_all(scmp_filter_ctx c, const struct refusal *list, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (refuse(c, &list[i], e) < 0)
            return -1;
    return 0;
}

#define REFUSE_ALL(c, list, e) refuse_all(c, list, sizeof(list) / sizeof(*(list)), e)

/* The first program lets two protocols through; the others that people try get the right error. */
static int refuse_protocols(scmp_filter_ctx c, struct err *e)
{
    static const int protocols[] = {IPPROTO_ICMP,    IPPROTO_ICMPV6, IPPROTO_SCTP,
                                    IPPROTO_UDPLITE, IPPROTO_RAW,    262 /* MPTCP */};
    static const int families[] = {AF_INET, AF_INET6};

    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        for (size_t k = 0; k < sizeof(protocols) / sizeof(*protocols); k++) {
            struct refusal r = {SCMP_SYS(socket),
                                EPROTONOSUPPORT,
                                2,
                                {ARG_IS(0, families[i]), ARG_IS(2, protocols[k])}};
            if (refuse(c, &r, e) < 0)
                return -1;
        }
    return 0;
}

/* Calls that do something to a process of that number. */
static const struct {
    int nr;
    unsigned pid; /* which argument */
} by_number[] = {
    {SCMP_SYS(setpriority), 1},
    {SCMP_SYS(ioprio_set), 1},
    {SCMP_SYS(sched_setaffinity), 0},
    {SCMP_SYS(sched_setattr), 0},
    {SCMP_SYS(sched_setparam), 0},
    {SCMP_SYS(sched_setscheduler), 0},
    {SCMP_SYS(kill), 0},
    {SCMP_SYS(tkill), 0},
    {SCMP_SYS(tgkill), 0},
    {SCMP_SYS(rt_sigqueueinfo), 0},
    {SCMP_SYS(rt_tgsigqueueinfo), 0},
    {SCMP_SYS(pidfd_open), 0},
};

/* Those that wait to take the interpreter's place, by number or otherwise. Everybody at once (-1) would be
 * them too; of their groups (-128 to -255) nobody else is a member. */
static int refuse_waiting(scmp_filter_ctx c, struct err *e)
{
    const struct refusal list[] = {
        {SCMP_SYS(kill), EPERM, 1, {ARG_IS(0, -1)}},
        {SCMP_SYS(kill), EPERM, 1, {ARG_IS(0, -BOX_WAITING_PID)}},
        {SCMP_SYS(kill), EPERM, 1, {ARG_IS_THEIR_GROUP(0)}},
        {SCMP_SYS(fcntl), EPERM, 2, {ARG_IS(1, F_SETOWN), ARG_WAITS(2)}},
        {SCMP_SYS(fcntl), EPERM, 2, {ARG_IS(1, F_SETOWN), ARG_IS(2, -BOX_WAITING_PID)}},
        {SCMP_SYS(fcntl), EPERM, 2, {ARG_IS(1, F_SETOWN), ARG_IS_THEIR_GROUP(2)}},
        {SCMP_SYS(fcntl), EPERM, 1, {ARG_IS(1, F_SETOWN_EX)}},
        {SCMP_SYS(ioctl), EPERM, 1, {ARG_IS(1, FIOSETOWN)}},
        {SCMP_SYS(ioctl), EPERM, 1, {ARG_IS(1, SIOCSPGRP)}},
    };

    if (REFUSE_ALL(c, list, e) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(by_number) / sizeof(*by_number); i++) {
        struct refusal r = {by_number[i].nr, EPERM, 1, {ARG_WAITS(by_number[i].pid)}};
        if (refuse(c, &r, e) < 0)
            return -1;
    }
    return 0;
}

/* Where init has no uid of its own, a guest could take the processors away from it, and signal it:
 * Landlock tells those apart only from Linux 6.12 on. What finds another way (F_SETOWN) finds a pid 1
 * that catches nothing. */
static int refuse_init(scmp_filter_ctx c, struct err *e)
{
    for (size_t i = 0; i < sizeof(by_number) / sizeof(*by_number); i++) {
        struct refusal r = {by_number[i].nr, EPERM, 1, {ARG_IS(by_number[i].pid, 1)}};
        if (refuse(c, &r, e) < 0)
            return -1;
    }
    return 0;
}

/* BPF by other doors. */
static int refuse_bpf(scmp_filter_ctx c, struct err *e)
{
    static const int options[] = {SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF,
                                  SO_ATTACH_REUSEPORT_EBPF};

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        struct refusal r = {
            SCMP_SYS(setsockopt), EPERM, 2, {ARG_IS(1, SOL_SOCKET), ARG_IS(2, options[i])}};
        if (refuse(c, &r, e) < 0)
            return -1;
    }
    return 0;
}

/* Whoever closes such a socket last waits for what it has not sent; and that may be one of ours, who got it with a
 * message. Programs are told that it is done: on a loopback nobody misses it. */
static int pretend_to_linger(scmp_filter_ctx c, struct err *e)
{
    struct refusal r = {SCMP_SYS(setsockopt), 0, 2, {ARG_IS(1, SOL_SOCKET), ARG_IS(2, SO_LINGER)}};

    return refuse(c, &r, e);
}

/* Tables of the packet filter, and devices: who enters a branch's box has, until he gives it up, every right over
 * its empty network, and this code has been broken by such people before. */
static int refuse_tables(scmp_filter_ctx c, struct err *e)
{
    static const struct {
        uint32_t level, first;
    } tables[] = {{IPPROTO_IP, 64}, {IPPROTO_IP, 96}, {IPPROTO_IP, 128}, {IPPROTO_IPV6, 64}};
    /* bonds, bridges and ethtool; VLANs; bridges; tunnels: sixteen requests each */
    static const uint32_t devices[] = {0x8940, 0x8980, 0x89a0, 0x89f0};

    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        struct scmp_arg_cmp level = ARG_IS(1, tables[i].level), name = TABLES(2, tables[i].first);
        struct refusal set = {SCMP_SYS(setsockopt), EPERM, 2, {level, name}};
        struct refusal get = {SCMP_SYS(getsockopt), EPERM, 2, {level, name}};
        if (refuse(c, &set, e) < 0 || refuse(c, &get, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
        struct refusal r = {
            SCMP_SYS(ioctl), EPERM, 1, {SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xfffffff0u, devices[i])}};
        if (refuse(c, &r, e) < 0)
            return -1;
    }
    return 0;
}

/* A corner of sockets that has been broken before. */
static int refuse_out_of_band(scmp_filter_ctx c, struct err *e)
{
    const struct refusal list[] = {
        {SCMP_SYS(sendto), EOPNOTSUPP, 1, {ARG_HAS(3, MSG_OOB)}},
        {SCMP_SYS(sendmsg), EOPNOTSUPP, 1, {ARG_HAS(2, MSG_OOB)}},
        {SCMP_SYS(sendmmsg), EOPNOTSUPP, 1, {ARG_HAS(3, MSG_OOB)}},
        {SCMP_SYS(recvfrom), EOPNOTSUPP, 1, {ARG_HAS(3, MSG_OOB)}},
        {SCMP_SYS(recvmsg), EOPNOTSUPP, 1, {ARG_HAS(2, MSG_OOB)}},
        {SCMP_SYS(recvmmsg), EOPNOTSUPP, 1, {ARG_HAS(3, MSG_OOB)}},
    };

    return REFUSE_ALL(c, list, e);
}

static int refuse_namespaces(scmp_filter_ctx c, struct err *e)
{
    static const uint32_t namespaces[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                          CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                          CLONE_NEWNET};

    for (size_t i = 0; i < sizeof(namespaces) / sizeof(*namespaces); i++) {
        struct refusal r = {SCMP_SYS(clone), EPERM, 1, {ARG_HAS(0, namespaces[i])}};
        if (refuse(c, &r, e) < 0)
            return -1;
    }
    return 0;
}

/* The first program lets only three families through; here the others get the error that says it best. */
static int refuse_families(scmp_filter_ctx c, struct err *e)
{
    for (int family = 0; family < AF_MAX; family++) {
        struct refusal open = {SCMP_SYS(socket), EAFNOSUPPORT, 1, {ARG_IS(0, family)}};
        struct refusal pair = {SCMP_SYS(socketpair), EAFNOSUPPORT, 1, {ARG_IS(0, family)}};
        bool ours = family == AF_UNIX || family == AF_INET || family == AF_INET6;
        if (!ours && refuse(c, &open, e) < 0)
            return -1;
        if (family != AF_UNIX && refuse(c, &pair, e) < 0)
            return -1;
    }
    return 0;
}

static int refuse_arguments(scmp_filter_ctx c, struct err *e)
{
    const struct refusal list[] = {
        /* typing into a terminal that somebody else reads */
        {SCMP_SYS(ioctl), EPERM, 1, {ARG_IS(1, TIOCSTI)}},
        {SCMP_SYS(ioctl), EPERM, 1, {ARG_IS(1, TIOCLINUX)}},
        {SCMP_SYS(prctl), EPERM, 1, {ARG_IS(0, PR_SET_MM)}},
        /* what other boxes have in the page cache could be thrown out, and its absence timed */
        {SCMP_SYS(fadvise64), 0, 1, {ARG_IS(3, POSIX_FADV_DONTNEED)}},
        /* protocol modules */
        {SCMP_SYS(setsockopt), EPERM, 2, {ARG_IS(1, IPPROTO_TCP), ARG_IS(2, TCP_ULP)}},
        /* other processes' limits: init's, where it has no uid of its own */
        {SCMP_SYS(prlimit64), EPERM, 2, {SCMP_A0(SCMP_CMP_NE, 0), SCMP_A2(SCMP_CMP_NE, 0)}},
    };

    if (REFUSE_ALL(c, list, e) < 0 || refuse_bpf(c, e) < 0 || pretend_to_linger(c, e) < 0 ||
        refuse_tables(c, e) < 0 || refuse_out_of_band(c, e) < 0 || refuse_namespaces(c, e) < 0 ||
        refuse_init(c, e) < 0 || refuse_protocols(c, e) < 0 || refuse_families(c, e) < 0)
        return -1;
    return 0;
}

static int allow_calls(scmp_filter_ctx c, struct err *e)
{
    const struct {
        int nr;
        unsigned n;
        struct scmp_arg_cmp args[3];
    } by_argument[] = {
        /* the families, types and protocols with a use in a box that has only its own loopback */
        {SCMP_SYS(socket), 1, {ARG_IS(0, AF_UNIX)}},
        {SCMP_SYS(socket), 3, {ARG_IS(0, AF_INET), TYPE_IS(1, SOCK_STREAM), ARG_IS(2, 0)}},
        {SCMP_SYS(socket),
         3,
         {ARG_IS(0, AF_INET), TYPE_IS(1, SOCK_STREAM), ARG_IS(2, IPPROTO_TCP)}},
        {SCMP_SYS(socket), 3, {ARG_IS(0, AF_INET), TYPE_IS(1, SOCK_DGRAM), ARG_IS(2, 0)}},
        {SCMP_SYS(socket), 3, {ARG_IS(0, AF_INET), TYPE_IS(1, SOCK_DGRAM), ARG_IS(2, IPPROTO_UDP)}},
        {SCMP_SYS(socket), 3, {ARG_IS(0, AF_INET6), TYPE_IS(1, SOCK_STREAM), ARG_IS(2, 0)}},
        {SCMP_SYS(socket),
         3,
         {ARG_IS(0, AF_INET6), TYPE_IS(1, SOCK_STREAM), ARG_IS(2, IPPROTO_TCP)}},
        {SCMP_SYS(socket), 3, {ARG_IS(0, AF_INET6), TYPE_IS(1, SOCK_DGRAM), ARG_IS(2, 0)}},
        {SCMP_SYS(socket),
         3,
         {ARG_IS(0, AF_INET6), TYPE_IS(1, SOCK_DGRAM), ARG_IS(2, IPPROTO_UDP)}},
        {SCMP_SYS(socketpair), 1, {ARG_IS(0, AF_UNIX)}},
        /* asking which personality it has, or going back to the plain one */
        {SCMP_SYS(personality), 1, {ARG_IS(0, 0)}},
        {SCMP_SYS(personality), 1, {ARG_IS(0, 0xffffffff)}},
    };

    if (ADD_ALL(c, SCMP_ACT_ALLOW, allowed, e) < 0 ||
        ADD_ALL(c, SCMP_ACT_ERRNO(EPERM), dangerous, e) < 0 ||
        ADD_ALL(c, SCMP_ACT_ERRNO(0), pretended, e) < 0)
        return -1;
    if (ADD_ALL(c, SCMP_ACT_ALLOW, uncounted_memory, e) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(making) / sizeof(*making); i++) {
        int rc = seccomp_rule_add(c, SCMP_ACT_ALLOW, making[i].nr, 0);
        if (rc < 0)
            return err_set(e, -rc, "seccomp rule for call %d", making[i].nr);
    }
    for (size_t i = 0; i < sizeof(by_argument) / sizeof(*by_argument); i++) {
        int rc = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, by_argument[i].nr, by_argument[i].n,
                                        by_argument[i].args);
        if (rc < 0)
            return err_set(e, -rc, "seccomp rule for call %d", by_argument[i].nr);
    }
    return 0;
}

static int refuse_making(scmp_filter_ctx c, bool has_memory_cgroup, struct err *e)
{
    const struct refusal list[] = {
        {SCMP_SYS(prctl), EPERM, 1, {ARG_IS(0, PR_SET_SECCOMP)}},
        /* see RLIMIT_CORE in box.c: it stays as it is */
        {SCMP_SYS(setrlimit), EPERM, 1, {ARG_IS(0, RLIMIT_CORE)}},
        {SCMP_SYS(prlimit64), EPERM, 2, {ARG_IS(1, RLIMIT_CORE), SCMP_A2(SCMP_CMP_NE, 0)}},
        /* A branch enters its own box by it (zygote/branch.c), with descriptors that only init can give, and
         * the kernel refuses all others. The word keeps out what does not mean it. */
        {SCMP_SYS(setns), EPERM, 1, {SCMP_A2(SCMP_CMP_NE, BOX_BRANCH_WORD)}},
    };

    if (REFUSE_ALL(c, list, e) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(making) / sizeof(*making); i++) {
        struct refusal r = {making[i].nr, making[i].error, 0, {{0}}};
        if (refuse(c, &r, e) < 0)
            return -1;
    }
    return has_memory_cgroup ? 0 : ADD_ALL(c, SCMP_ACT_ERRNO(EPERM), uncounted_memory, e);
}

static void release(scmp_filter_ctx *c)
{
    if (*c)
        seccomp_release(*c);
}

static int export_program(scmp_filter_ctx c, struct sock_fprog *ret, struct err *e)
{
    cleanup_fd int fd = memfd_create("filter", MFD_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return err_set(e, errno, "memfd_create");
    int rc = seccomp_export_bpf(c, fd);
    if (rc < 0)
        return err_set(e, -rc, "seccomp_export_bpf");
    if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_set(e, errno, "the compiled filter");
    size_t size = (size_t)st.st_size;
    struct sock_filter *code = xcalloc(1, size);
    if (fd_read_full(fd, code, size) != (ssize_t)size) {
        free(code);
        return err_set(e, EIO, "the compiled filter");
    }
    *ret = (struct sock_fprog){.len = (unsigned short)(size / sizeof(*code)), .filter = code};
    struct sock_fprog shorter;
    if (shrink_program(ret, &shorter)) {
        *ret = shorter;
        free(code);
    }
    return 0;
}

static int begin(uint32_t standard, scmp_filter_ctx *ret, struct err *e)
{
    scmp_filter_ctx c = seccomp_init(standard);

    if (!c)
        return err_set(e, ENOMEM, "seccomp_init");
    *ret = c;
    seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* A tree costs the kernel a tenth of a list when it is loaded; old libraries make a list. */
    seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    return 0;
}

/* Who enters a branch's box and does not give its rights up has them over an empty network of its own. Of what takes
 * such rights, this is nobody's: policies of IPsec, connections made by hand, headers made by hand; and interfaces,
 * routes and neighbours, which init has set up by now. */
static int refuse_network(scmp_filter_ctx c, struct err *e)
{
    static const struct {
        uint32_t level, name, mask;
    } options[] = {
        {IPPROTO_IP, 16, 0xfffffffeu}, /* IP_IPSEC_POLICY, IP_XFRM_POLICY */
        {IPPROTO_IPV6, 34, 0xfffffffeu},
        {IPPROTO_IPV6, 54, 0xfffffffeu}, /* IPV6_HOPOPTS, IPV6_RTHDRDSTOPTS */
        {IPPROTO_IPV6, 57, 0xffffffffu}, /* IPV6_RTHDR */
        {IPPROTO_IPV6, 59, 0xffffffffu}, /* IPV6_DSTOPTS */
        {IPPROTO_TCP, TCP_REPAIR, 0xffffffffu},
    };
    static const struct {
        uint32_t first, mask;
    } requests[] = {
        {0x890b, 0xffffffffu}, {0x890c, 0xffffffffu}, /* routes */
        {0x8914, 0xfffffffdu}, {0x8918, 0xfffffff9u}, /* SIOCSIFFLAGS to SIOCSIFMETRIC */
        {0x8922, 0xfffffffeu}, {0x8924, 0xffffffffu}, /* SIOCSIFMTU, SIOCSIFNAME, SIOCSIFHWADDR */
        {0x8930, 0xfffffff9u}, {0x8931, 0xffffffffu},
        {0x8937, 0xffffffffu},                        /* SIOCSIFSLAVE and so on */
        {0x8950, 0xfffffff0u}, {0x8960, 0xffffffe0u}, /* neighbours, SIOCSIFMAP */
        {0x89b0, 0xfffffff0u},                        /* time stamps */
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        struct refusal r = {
            SCMP_SYS(setsockopt),
            EPERM,
            2,
            {ARG_IS(1, options[i].level),
             SCMP_CMP(2, SCMP_CMP_MASKED_EQ, options[i].mask, options[i].name & options[i].mask)}};
        if (refuse(c, &r, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
        struct refusal r = {SCMP_SYS(ioctl),
                            EPERM,
                            1,
                            {SCMP_CMP(1, SCMP_CMP_MASKED_EQ, requests[i].mask, requests[i].first)}};
        if (refuse(c, &r, e) < 0)
            return -1;
    }
    return 0;
}

/* Only init may watch files: Linux counts the instances of a namespace against its maker too, who has 128
 * for everything he runs, and for all of his boxes. "You have too many" is what programs know to live
 * with. */
static int refuse_guest(scmp_filter_ctx c, struct err *e)
{
    const struct refusal list[] = {
        {SCMP_SYS(inotify_init), EMFILE, 0, {{0}}},
        {SCMP_SYS(inotify_init1), EMFILE, 0, {{0}}},
        /* The zygote has its ring when it begins with this filter, and nobody needs another: not even a box that is still
         * being made. */
        {SYS_io_uring_setup, EPERM, 0, {{0}}},
        {SYS_io_uring_register, EPERM, 0, {{0}}},
    };

    if (REFUSE_ALL(c, list, e) < 0)
        return -1;
    return refuse_network(c, e) < 0 ? -1 : refuse_waiting(c, e);
}

int filter_compile(bool has_memory_cgroup, struct filter *ret, struct err *e)
{
    __attribute__((cleanup(release))) scmp_filter_ctx calls = NULL;
    __attribute__((cleanup(release))) scmp_filter_ctx arguments = NULL;
    __attribute__((cleanup(release))) scmp_filter_ctx last = NULL;
    __attribute__((cleanup(release))) scmp_filter_ctx guest = NULL;

    *ret = (struct filter){0};
    if (begin(SCMP_ACT_ERRNO(ENOSYS), &calls, e) < 0 || begin(SCMP_ACT_ALLOW, &arguments, e) < 0 ||
        begin(SCMP_ACT_ALLOW, &last, e) < 0 || begin(SCMP_ACT_ALLOW, &guest, e) < 0)
        return -1;
    if (allow_calls(calls, e) < 0 || refuse_arguments(arguments, e) < 0 ||
        refuse_making(last, has_memory_cgroup, e) < 0 || refuse_guest(guest, e) < 0)
        return -1;
    if (export_program(calls, &ret->programs[FILTER_CALLS], e) < 0 ||
        export_program(arguments, &ret->programs[FILTER_ARGUMENTS], e) < 0 ||
        export_program(last, &ret->programs[FILTER_LAST], e) < 0 ||
        export_program(guest, &ret->programs[FILTER_GUEST], e) < 0) {
        filter_done(ret);
        return -1;
    }
    return 0;
}
