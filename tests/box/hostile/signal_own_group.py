# tries: kill its process group
# why: if the box is in the same process group as retort, this is the end of retort
# expect: survives
# status: crashed
# prints: about to kill the group
# outside-ends: SIGKILL
print("about to kill the group", flush=True)
os.kill(0, signal.SIGKILL)
import time
time.sleep(30)
