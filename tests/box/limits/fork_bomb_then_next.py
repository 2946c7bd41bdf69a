# tries: a fork bomb that is still at work when the interpreter dies
# args: --pids 32 --timeout 30
# within: 60
# %% a
import os, time
kept = "variables"
# %% a
# status: crashed, limit
# restored: 1
if os.fork() == 0:
    while True:
        try:
            os.fork()
        except OSError:
            pass
time.sleep(0.5)
os._exit(1)
# %% a
# prints: variables
# prints: one process
import time
print(kept)
for _ in range(250):
    others = [p for p in os.listdir("/proc") if p.isdigit() and int(p) >= 300 and int(p) != os.getpid()]
    if not others:
        break
    time.sleep(0.1)
print("one process" if not others else others)
