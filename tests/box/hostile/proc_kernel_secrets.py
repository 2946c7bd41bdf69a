# tries: read the kernel's memory, addresses, log and boot line
# why: they give away other tenants' data or what a kernel exploit needs
def kallsyms():
    for line in open("/proc/kallsyms"):
        if int(line.split()[0], 16):
            return line
    raise PermissionError(1, "all zero")
attempt("/proc/kallsyms", kallsyms, maybe=True)
for name in ("kcore", "cmdline", "kpagecount", "kpageflags", "vmallocinfo", "slabinfo", "timer_list",
             "sched_debug", "keys", "key-users", "latency_stats"):
    attempt("/proc/" + name, lambda: open("/proc/" + name, "rb").read(4096)[:1] or 1 / 0, maybe=name != "cmdline")
attempt("/proc/kmsg", lambda: os.open("/proc/kmsg", os.O_RDONLY | os.O_NONBLOCK), maybe=True)
