# tries: drown its own process in real-time signals
# why: queued signals cost kernel memory; the count must be bounded (RLIMIT_SIGPENDING)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
sent, number = 0, int(signal.SIGRTMIN)
class Value(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
while sent < 20000 and libc.sigqueue(os.getpid(), number, Value(0)) == 0:
    sent += 1
found("20000 queued signals", sent >= 20000 and sent)
if not OUTSIDE:
    print("queued", sent)
