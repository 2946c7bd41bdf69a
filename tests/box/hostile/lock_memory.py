# tries: lock 64 MB into memory
# why: locked pages cannot be reclaimed; there is a limit (RLIMIT_MEMLOCK)
import mmap
size = 64 << 20
area = mmap.mmap(-1, size)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
def lock(number, *args):
    result, error = syscall(number, *args)
    if result == -1:
        raise OSError(error, "mlock")
attempt("mlock", lock, 149, address, size)
text, _ = child(lambda: syscall(151, 3))
(escaped if text == "(0, 0)" else refused)("mlockall", text)
