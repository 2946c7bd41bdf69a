# tries: find what an earlier session left
# why: everything that a session wrote must be gone with it, shared memory and shell history included
# outside: host
# %% a
mark = "retort-test-left-" + HOST["secret_sha256"][:8]
from multiprocessing import shared_memory, resource_tracker
resource_tracker.register = lambda *_: None  # leave it behind
block = shared_memory.SharedMemory(mark, create=True, size=4096)
syscall(29, 0x72657432, 4096, 0o1666)
for place in ("/tmp", "/dev/shm", "/var/tmp", "/home/user", "."):
    try:
        os.mkdir(f"{place}/{mark}.d")
    except OSError:
        pass
# %% end a
# %% b
mark = "retort-test-left-" + HOST["secret_sha256"][:8]
left = [p for p in ("/tmp", "/dev/shm", "/var/tmp", "/home/user", ".") if os.path.exists(f"{p}/{mark}.d")]
found("its directories", left)
found("its shared memory", os.path.exists("/dev/shm/" + mark))
result, _ = syscall(29, 0x72657432, 4096, 0)
found("its System V shared memory", result >= 0 and result + 1)
found("files of an earlier session", not OUTSIDE and [f for p in ("/tmp", "/dev/shm", "/mnt/data") for f in os.listdir(p)],
      maybe=True)
if OUTSIDE:
    syscall(31, result, 0, 0)
    for place in left:
        os.rmdir(f"{place}/{mark}.d")
    os.unlink("/dev/shm/" + mark)
