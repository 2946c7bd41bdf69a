# tries: make device nodes and open them
# why: a node for the disk is the disk
import stat
def make(name, kind, major, minor):
    os.mknod(name, kind | 0o666, os.makedev(major, minor))
    os.close(os.open(name, os.O_RDONLY))
for where in ("/tmp", ".", "/dev/shm"):
    attempt(f"{where}: mem", make, where + "/retort-test-mem", stat.S_IFCHR, 1, 1 if not OUTSIDE else 3)
    attempt(f"{where}: disk", make, where + "/retort-test-disk", stat.S_IFBLK, 7, 0)
    for name in ("mem", "disk"):
        try:
            os.unlink(where + "/retort-test-" + name)
        except OSError:
            pass
