# tries: reach the files of its cgroup, to lift its limits
# why: a box that can write there can leave its limits, or run a program of its choice on the host
import glob
files = glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True)[:1] + \
    glob.glob("/**/release_agent")[:1]
found("cgroup files", files)
paths = [l.strip().split(":", 2)[2] for l in open("/proc/self/cgroup")]
found("the path of its cgroup", [p for p in paths if p not in ("/", "/..")], maybe=True)
def mount():
    os.makedirs("cg", exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    for kind in (b"cgroup2", b"cgroup"):
        if libc.mount(b"none", b"cg", kind, 0, b"memory" if kind == b"cgroup" else None) == 0:
            return kind
    raise OSError(ctypes.get_errno(), "mount")
attempt("mount a cgroup file system", mount)
