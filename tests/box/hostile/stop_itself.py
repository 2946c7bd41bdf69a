# tries: stop its own process
# why: a stopped process cannot be interrupted; the time limit must still end it
# expect: survives
# args: --timeout 2
# status: limit, crashed
# limit: wall
# prints: before stopping
# within: 20
# outside-ends: timeout
# outside-within: 3
print("before stopping", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
import time
time.sleep(100)
