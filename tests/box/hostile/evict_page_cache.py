# tries: throw a system file out of the page cache, and see by the time of a read that it is gone
# why: whether it is there again tells what another session has read: a channel between them
import mmap, time
def seconds(fd, at):
    begun = time.perf_counter()
    os.pread(fd, 4096, at)
    return time.perf_counter() - begun
path = "/usr/bin/python3"
if OUTSIDE:  # on a disk that has room: a copy is as good
    import shutil, tempfile
    path = shutil.copy(path, os.path.join(tempfile.mkdtemp(dir="/var/tmp"), "file"))
    os.sync()
fd = os.open(path, os.O_RDONLY)
size = os.fstat(fd).st_size // 4096 * 4096
for at in range(0, size, 4096):
    os.pread(fd, 4096, at)
view = mmap.mmap(fd, size, prot=mmap.PROT_READ)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
warm = sorted(seconds(fd, 0) for _ in range(9))[4]
view.close()
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
cold = [seconds(fd, at) for at in range(0, size, 1 << 20)]
slow = [t for t in cold if t > 10 * warm and t > 2e-5]
found("reads that had to go to the disk", slow if len(slow) > len(cold) // 2 else None, maybe=True)
