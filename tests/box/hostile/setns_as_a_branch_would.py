# tries: enter namespaces by the call that a branch of a session uses, with every word before and after it
# why: the filter lets that one call through, for descriptors that init gives; a guest could find others
WORD = 0x62726e63
def enter(path, kind=0, word=WORD):
    fd = os.open(path, os.O_RDONLY)
    result, error = syscall(308, fd, kind, word)
    if result == -1:
        raise OSError(error, "setns")
for name in ("net", "uts", "ipc", "cgroup", "mnt", "pid", "pid_for_children"):
    attempt(f"own {name}", enter, f"/proc/self/ns/{name}")
    attempt(f"init's {name}", enter, f"/proc/1/ns/{name}")
attempt("another word", enter, "/proc/self/ns/uts", 0, WORD + 1)
attempt("the word in the upper half", enter, "/proc/self/ns/uts", 0, WORD << 32)
def by_pidfd():
    result, error = syscall(308, os.pidfd_open(os.getpid()), 0x04000000 | 0x08000000 | 0x40000000, WORD)
    if result == -1:
        raise OSError(error, "setns")
attempt("all of its own at once", by_pidfd)
