# tries: debug a process of its own
# why: ptrace is how seccomp filters were once walked around; nobody needs it in a cell
def traceme():
    return syscall(101, 0, 0, 0, 0)[0]
text, _ = child(traceme)
(escaped if text == "0" else refused)("PTRACE_TRACEME", text)
pid = os.fork()
if pid == 0:
    signal.pause()
result, error = syscall(101, 16, pid, 0, 0)
(escaped if result == 0 else refused)("PTRACE_ATTACH", errno.errorcode.get(error))
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
