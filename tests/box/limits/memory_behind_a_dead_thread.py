# tries: hold memory in a process whose first thread has ended, and which shows none at its own place in /proc
# args: --memory 300m
# within: 40
# %% a
# status: limit, crashed, error, ok
# limit: memory
# prints: before
import ctypes, mmap, os, threading, time
print("before", flush=True)
def hold():
    m = mmap.mmap(-1, 700 << 20)  # shared: not in RLIMIT_DATA
    for i in range(0, len(m), 4096):
        m[i] = 1
    time.sleep(30)
pid = os.fork()
if pid == 0:
    threading.Thread(target=hold).start()
    ctypes.CDLL(None).syscall(60, 0)
print("ended", os.waitpid(pid, 0)[1])
