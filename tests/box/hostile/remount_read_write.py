# tries: make the read-only system view writable
# why: a remount of a bind needs one call and CAP_SYS_ADMIN
libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_BIND, MS_RDONLY = 32, 4096, 1
def remount(target):
    if libc.mount(None, target, None, MS_REMOUNT | MS_BIND, None):
        raise OSError(ctypes.get_errno(), "remount")
if OUTSIDE:  # a throw-away mount namespace
    os.makedirs("ro", exist_ok=True)
    libc.mount(b"/usr", b"ro", None, MS_BIND, None)
    libc.mount(None, b"ro", None, MS_REMOUNT | MS_BIND | MS_RDONLY, None)
for target in ([b"ro"] if OUTSIDE else [b"/", b"/usr", b"/etc", b"/proc", b"/dev"]):
    attempt(target.decode(), remount, target)
