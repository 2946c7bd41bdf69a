# tries: open kernel settings for writing
# why: /proc/sys is writable by whoever the kernel takes for root; core_pattern runs programs as root
def write(path):
    os.close(os.open(path, os.O_WRONLY))
for name in ("kernel/core_pattern", "kernel/hostname", "kernel/modprobe", "kernel/sysrq", "vm/drop_caches",
             "vm/overcommit_memory", "net/ipv4/ip_forward", "fs/file-max", "kernel/ns_last_pid"):
    attempt(name, write, "/proc/sys/" + name, maybe=name in ("kernel/modprobe", "kernel/sysrq", "kernel/ns_last_pid"))
attempt("/proc/sysrq-trigger", write, "/proc/sysrq-trigger", maybe=True)  # reboots the machine
