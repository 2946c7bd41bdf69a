# tries: enter namespaces, its own and init's
# why: whoever holds a descriptor of a namespace could step into it
def enter(path):
    fd = os.open(path, os.O_RDONLY)
    result, error = syscall(308, fd, 0)
    if result == -1:
        raise OSError(error, "setns")
for name in ("net", "uts", "ipc", "cgroup"):
    attempt(f"own {name}", enter, f"/proc/self/ns/{name}")
    attempt(f"init's {name}", enter, f"/proc/1/ns/{name}")
reach("setns of nothing", 308, -1, 0)
