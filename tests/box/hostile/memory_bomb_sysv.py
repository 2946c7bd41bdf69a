# tries: fill System V shared memory and detach from it
# why: a segment outlives its process; it must neither escape the limit nor outlive the box
# expect: survives
# args: --memory 128m
# status: limit, error
# prints: before the bomb
# check: at_ease
# user: no (needs a memory cgroup)
# within: 40
print("before the bomb", flush=True)
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmdt.argtypes = [ctypes.c_void_p]
segments = []
for _ in range(40):
    segment, error = syscall(29, 0, 10 << 20, 0o1600)
    if segment < 0:
        raise OSError(error, "shmget")
    segments.append(segment)
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, 10 << 20)
    libc.shmdt(address)
escaped("400 MB of System V shared memory")
for segment in segments:
    syscall(31, segment, 0, 0)
