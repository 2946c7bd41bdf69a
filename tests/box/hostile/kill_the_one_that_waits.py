# tries: end the process that waits to take the interpreter's place, by every call that reaches another one
# why: it has the guest's uid; a session survives a crash only as long as nobody in it can end what waits
# arch: x86_64
# within: 60
# outside-within: 60
# %% a
import fcntl, socket, struct, time
kept = 42
TKILL, TGKILL, SIGQUEUE, TGSIGQUEUE, PRLIMIT, PTRACE, VM_WRITEV = 200, 234, 129, 297, 302, 101, 311
FIOSETOWN, SIOCSPGRP, F_SETOWN_EX = 0x8901, 0x8902, 15
def waiting():
    """One that sleeps, and is ours to end; inside those that wait, whose numbers are their own."""
    if not OUTSIDE:
        return max(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if 127 < pid < 256)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)
    while os.getsid(pid) != pid:
        time.sleep(0.01)
    return pid
def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
def ends(what, act):
    """Outside it must work: that one is dead, or stopped."""
    pid = waiting()
    try:
        error = act(pid)
    except OSError as e:
        error = errno.errorcode.get(e.errno, e)
    for _ in range(500 if OUTSIDE else 10):
        time.sleep(0.02)
        if state(pid) in "ZXtT":
            return escaped(what, state(pid))
    refused(what, error)
def call(number, *args):
    result, error = syscall(number, *args)
    if result == -1:
        raise OSError(error, "")
info = struct.pack("iiii112x", signal.SIGKILL, 0, -1, os.getpid())
# %% a
def by_owner(set_owner):
    def act(pid):
        mine, other = socket.socketpair()
        set_owner(mine.fileno(), pid)
        fcntl.fcntl(mine, 10, signal.SIGKILL)  # F_SETSIG
        fcntl.fcntl(mine, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        other.send(b"x")
    return act
ends("kill", lambda pid: os.kill(pid, 9))
ends("kill with SIGSTOP", lambda pid: os.kill(pid, signal.SIGSTOP))
ends("kill of its group", lambda pid: os.kill(-pid, 9))
ends("kill with a number that is wider", lambda pid: call(62, pid | 7 << 32, 9))
ends("tkill", lambda pid: call(TKILL, pid, 9))
ends("tgkill", lambda pid: call(TGKILL, pid, pid, 9))
ends("sigqueue", lambda pid: call(SIGQUEUE, pid, 9, info))
ends("sigqueue to a thread", lambda pid: call(TGSIGQUEUE, pid, pid, 9, info))
ends("a pidfd", lambda pid: signal.pidfd_send_signal(os.pidfd_open(pid), 9))
ends("F_SETOWN", by_owner(lambda fd, pid: fcntl.fcntl(fd, fcntl.F_SETOWN, pid)))
ends("F_SETOWN of its group", by_owner(lambda fd, pid: fcntl.fcntl(fd, fcntl.F_SETOWN, -pid)))
ends("F_SETOWN_EX", by_owner(lambda fd, pid: fcntl.fcntl(fd, F_SETOWN_EX, struct.pack("ii", 1, pid))))
ends("FIOSETOWN", by_owner(lambda fd, pid: fcntl.ioctl(fd, FIOSETOWN, struct.pack("i", pid))))
ends("SIOCSPGRP", by_owner(lambda fd, pid: fcntl.ioctl(fd, SIOCSPGRP, struct.pack("i", pid))))
ends("ptrace", lambda pid: call(PTRACE, 16, pid, 0, 0))
pid = waiting()
attempt("its memory", lambda: open(f"/proc/{pid}/mem", "r+b"))
# An ordinary user has one uid for everything, and with that /proc shows the numbers of its descriptors, and takes
# a word on who goes first.
if OUTSIDE or os.stat(f"/proc/{pid}/fd").st_uid != os.getuid():
    attempt("what it has open", os.listdir, f"/proc/{pid}/fd")
    attempt("who goes first when memory is short", lambda: open(f"/proc/{pid}/oom_score_adj", "w").write("1000"))
attempt("one of its descriptors", os.readlink, f"/proc/{pid}/fd/0")
attempt("its limits", lambda: call(PRLIMIT, pid, 0, struct.pack("QQ", 1, 1), 0))
attempt("its processors", os.sched_setaffinity, pid, {0})
attempt("its priority", os.setpriority, os.PRIO_PROCESS, pid, 19)
attempt("its schedule", os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0))
if OUTSIDE:
    escaped("the group of everybody", "not tried here")
else:
    attempt("everybody", os.kill, -1, 9)
    attempt("everybody by a wider number", lambda: call(62, (1 << 64) - 1 & ~(1 << 40), 9))
# %% a
# status: ok, crashed
# restored: 2
if not OUTSIDE:
    os._exit(1)
# %% a
# prints: 42
print(kept)
