# tries: take mounts away
# why: under a mask or a read-only bind may lie what it hides
libc = ctypes.CDLL(None, use_errno=True)
def unmount(target):
    if libc.umount2(target.encode(), 2):
        raise OSError(ctypes.get_errno(), "umount2")
if OUTSIDE:
    os.makedirs("m", exist_ok=True)
    libc.mount(b"none", b"m", b"tmpfs", 0, None)
targets = ["m"] if OUTSIDE else [l.split()[4] for l in open("/proc/self/mountinfo")]
for target in targets:
    attempt(target, unmount, target)
