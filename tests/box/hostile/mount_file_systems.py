# tries: mount file systems
# why: mounting is the kernel parsing what the guest wrote, and a way to cover the box's own mounts
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("here", exist_ok=True)
def mount(source, kind, flags, data):
    if libc.mount(source, b"here", kind, flags, data):
        raise OSError(ctypes.get_errno(), "mount")
    libc.umount2(b"here", 2)
attempt("tmpfs", mount, b"none", b"tmpfs", 0, None)
attempt("proc", mount, b"none", b"proc", 0, None)
attempt("sysfs", mount, b"none", b"sysfs", 0, None)
attempt("a bind of /usr", mount, b"/usr", None, 4096, None)
attempt("overlay", mount, b"none", b"overlay", 0, b"lowerdir=/usr:/etc")
attempt("devpts", mount, b"none", b"devpts", 0, b"newinstance")
