# tries: kill every process it may signal
# why: kill(-1) takes everything with the same uid: the box's own, and nothing else
# expect: survives
# status: crashed
# prints: about to kill everyone
# outside-ends: SIGKILL
print("about to kill everyone", flush=True)
if os.fork() == 0:
    os.kill(-1, signal.SIGKILL)
    os._exit(0)
if OUTSIDE:
    os.wait()
    os.kill(os.getpid(), signal.SIGKILL)  # kill(-1) spares its sender's pid 1 only
import time
time.sleep(30)
