# tries: leave a core dump
# why: it is a file of the size of memory, written by the kernel wherever core_pattern says
import resource
def die():
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    except (OSError, ValueError):
        pass
    if not OUTSIDE:
        os.chdir("/mnt/data")
    os.abort()
pid = os.fork()
if pid == 0:
    die()
status = os.waitpid(pid, 0)[1]
(escaped if os.WCOREDUMP(status) else refused)("a core dump", f"status {status}")
found("core files", [n for n in os.listdir(".") if n.startswith("core")], maybe=True)
