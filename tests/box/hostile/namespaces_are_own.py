# tries: be in a namespace of the host
# why: seven kinds of namespace, each its own
# outside: host
if OUTSIDE:
    mine = {n: os.readlink(f"/proc/self/ns/{n}") for n in HOST["namespaces"]}
else:
    mine = {n: os.readlink(f"/proc/self/ns/{n}") for n in os.listdir("/proc/self/ns")}
for name in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
    found(f"the host's {name} namespace", mine.get(name) == HOST["namespaces"][name] and mine[name])
