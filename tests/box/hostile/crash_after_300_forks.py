# tries: start so many processes that their numbers could come to those of the ones that wait
# why: Linux gives out numbers below 300 only once, and the guest's begin there
# within: 60
# outside: none
# %% a
import time
kept = 42
low = []
for _ in range(400):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    low += [pid] if pid < 300 else []
found("a number of those that wait", low)
# %% a
# status: crashed
# restored: 1
os._exit(1)
# %% a
# prints: 42
found("a number of those that wait in the next one", os.getpid() < 300)
print(kept)
