# tries: every system call number from 0 to 1023, in a child each
# why: the filter is an allow-list; what is not on ours must answer EPERM or ENOSYS, what nobody knows
#      ENOSYS, and nothing may kill: a filter that kills, kills honest programs at random
# arch: x86_64
# within: 60
FIRST = """
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask
rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise
shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm setitimer getpid sendfile socket connect accept
sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt
getsockopt clone fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv
msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat
link unlink symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage sysinfo
times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid
setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget
capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod uselib
personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam sched_getparam
sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval
mlock munlock mlockall munlockall vhangup modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit
chroot sync acct settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl ioperm
create_module init_module delete_module get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg
afs_syscall tuxcall security gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr
listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time futex sched_setaffinity
sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit io_cancel get_thread_area
lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address
restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete
clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes
vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get inotify_init
inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat
unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list
get_robust_list splice tee sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create
eventfd fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2
inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark
prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu process_vm_readv
process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create
kexec_file_load bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect
pkey_alloc pkey_free statx io_pgetevents rseq
""".split()
FROM_424 = """
pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig
fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2
mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret
process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake
futex_wait futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal
setxattrat getxattrat listxattrat removexattrat open_tree_attr file_getattr file_setattr
""".split()
# Python and its libraries cannot do without these.
NEEDED = set("""
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask ioctl
pread64 pwrite64 readv writev access pipe select sched_yield mremap madvise dup dup2 nanosleep getitimer alarm
setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname
getpeername socketpair setsockopt getsockopt clone fork vfork execve exit wait4 kill uname fcntl fsync fdatasync
truncate ftruncate getcwd chdir fchdir rename mkdir rmdir link unlink symlink readlink chmod fchmod umask
gettimeofday getrlimit getrusage sysinfo times getuid getgid setpgid getppid getpgrp setsid getpgid getsid
rt_sigpending rt_sigsuspend sigaltstack utime statfs fstatfs sched_getscheduler prctl arch_prctl gettid time futex
sched_setaffinity sched_getaffinity epoll_create getdents64 set_tid_address clock_gettime clock_getres
clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes waitid openat mkdirat unlinkat newfstatat renameat
linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll set_robust_list utimensat eventfd2 epoll_create1 dup3
pipe2 accept4 prlimit64 getcpu renameat2 getrandom execveat statx rseq sendmmsg recvmmsg epoll_pwait
fallocate
""".split())
# Harmless for a process without rights, in namespaces of its own: the filter may let them through.
ALLOWED = NEEDED | set("""
creat memfd_create pause rt_sigreturn rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo restart_syscall shmget shmat shmctl shmdt semget semop
semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
mq_getsetattr flock fchown chown lchown fchownat getdents msync setuid setgid getgroups setgroups setreuid
setregid setresuid getresuid setresgid getresgid setfsuid setfsgid geteuid getegid capget capset mknod mknodat
getpriority setpriority sched_setparam sched_getparam sched_setscheduler sched_get_priority_max
sched_get_priority_min sched_rr_get_interval sched_setattr sched_getattr mlock munlock mlockall munlockall mlock2
setrlimit sync syncfs sync_file_range readahead fadvise64 setxattr lsetxattr fsetxattr getxattr lgetxattr
fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr setxattrat getxattrat listxattrat
removexattrat tkill set_thread_area get_thread_area io_setup io_destroy io_getevents io_submit io_cancel
io_pgetevents get_robust_list timer_create timer_settime timer_gettime timer_getoverrun timer_delete
epoll_pwait2 epoll_ctl_old epoll_wait_old get_mempolicy mbind set_mempolicy set_mempolicy_home_node ioprio_get ioprio_set
inotify_init inotify_init1 inotify_add_watch inotify_rm_watch futimesat signalfd signalfd4 timerfd_create
timerfd_settime timerfd_gettime eventfd preadv pwritev preadv2 pwritev2 copy_file_range membarrier pkey_mprotect
pkey_alloc pkey_free seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self openat2
pidfd_open pidfd_send_signal close_range faccessat2 fchmodat2 futex_waitv futex_wake futex_wait futex_requeue
map_shadow_stack mseal lsm_get_self_attr file_getattr adjtimex clock_adjtime
""".split())

NAMES = dict(enumerate(FIRST)) | dict(enumerate(FROM_424, 424))
word = ctypes.create_string_buffer(256)
here = ctypes.addressof(word)
# Arguments are all -1, which is an error everywhere, except where -1 would be a wish or tell nothing.
ARGUMENTS = {"socket": (2, 1, 0), "kill": (os.getpid(), 0), "tgkill": (os.getpid(), os.getpid(), 0), "fcntl": (0, 1),
             "ioctl": (0, 0x541B, here), "prctl": (3,), "arch_prctl": (0x1003, here), "futex": (here, 129, 1),
             "clone": (17, 0, 0, 0, 0), "personality": (0x40000,), "setsid": (), "umask": (0o22,),
             "prlimit64": (0, 7, 0, here), "epoll_create1": (0,), "eventfd2": (0, 0), "socketpair": (1, 1, 0, here),
             "adjtimex": (here,), "clock_adjtime": (0, here), "capget": (here, 0), "modify_ldt": (0, here, 16),
             "sched_setaffinity": (0, 0, 0), "rseq": (0, 0, 0, 0), "clone3": (0, 0), "alarm": (1,), "ptrace": (0,),
             "unshare": (0x10000000,), "mincore": (0, 0, 0)}
# These do not come back, or bite the machine outside.
SELF_EVIDENT = {"exit", "exit_group", "rt_sigreturn", "vfork", "pause"}
SPARED = {"vhangup", "sync", "syncfs"} if OUTSIDE else set()
# uretprobe and uprobe: the kernel lets them pass every filter, for the sake of its own trampolines (Linux 6.14, 6.18).
PASSED_BY_THE_KERNEL = {335, 336}


def call(number, name):
    """(result or None, errno, signal that killed it)"""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20 if name in ("-", "clone3") else 2)  # the others may wait for something
        me = os.getpid()
        answer = syscall(number, *ARGUMENTS.get(name, (-1,) * 6))
        if os.getpid() == me:  # not the child that fork and clone made
            os.write(writing, f"{answer[0]} {answer[1]}".encode())
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 64).split()
    os.close(reading)
    status = os.waitpid(pid, 0)[1]
    death = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return (int(answer[0]), int(answer[1]), death) if answer else (None, 0, death)


def unknown(numbers):
    """Those of the numbers that nobody knows which answer something else than ENOSYS; one child for all."""
    text, death = child(lambda: [n for n in numbers if syscall(n, *(-1,) * 6) != (-1, errno.ENOSYS)])
    return f"killed by {death}" if death else [] if text == "[]" else text


open_ones, killed, missing, not_enosys = [], [], [], []
for number in range(470):
    name = NAMES.get(number, "-")
    if name in SELF_EVIDENT | SPARED or number in PASSED_BY_THE_KERNEL:
        continue
    result, error, death = call(number, name)
    denied = result == -1 and error in (errno.EPERM, errno.ENOSYS)
    if death == signal.SIGSYS:
        killed.append(name)
    if name not in ALLOWED and not denied and result is not None:
        open_ones.append(name if name != "-" else number)
    if name in NEEDED and denied:
        missing.append(name)
    if name in ("-", "clone3") and not (result == -1 and error == errno.ENOSYS):
        not_enosys.append(number)
found("calls that are not on the list", open_ones)
if not OUTSIDE:
    found("calls that kill", killed)
    found("unknown numbers, or clone3, that are not ENOSYS", not_enosys or unknown(range(480, 1024)))
    if missing:
        wrong("calls that honest programs need", missing)
