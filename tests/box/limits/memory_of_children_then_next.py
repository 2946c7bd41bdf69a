# tries: go over the memory limit by the sum of all processes
# args: --memory 200m
# within: 60
# %% a
import os, time
kept = "variables"
# %% a
# status: limit, ok, error, crashed
# limit: memory
for _ in range(4):
    if os.fork() == 0:
        own = bytearray(os.urandom(1 << 20)) * 80
        time.sleep(30)
        os._exit(0)
own = bytearray(os.urandom(1 << 20)) * 80
time.sleep(5)
# %% a
# prints: variables
print(kept)
