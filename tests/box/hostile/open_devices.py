# tries: find device nodes besides the harmless ones
# why: /dev/kvm, /dev/fuse, /dev/mem, disks and terminals are the host's
import stat
harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts/ptmx"}
seen = []
for directory, _, names in os.walk("/dev"):
    for name in names:
        path = os.path.join(directory, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
            short = os.path.relpath(path, "/dev")
            if short not in harmless and not short.startswith("pts/"):
                seen.append(short)
found("other devices", seen[:8])
hits = []
for name in ("mem", "kmem", "port", "kmsg", "kvm", "fuse", "loop0", "vda", "sda", "nvme0n1", "net/tun", "tty0",
             "console", "vsock", "vhost-net", "userfaultfd", "uinput", "input/event0", "hwrng", "nvram"):
    try:
        os.close(os.open("/dev/" + name, os.O_RDONLY | os.O_NONBLOCK))
        hits.append(name)
    except OSError:
        pass
found("devices that open", hits)
