# tries: register something for forks that keeps the one that is woken from ever being there
# why: it has two seconds, then the one before it is asked
# expect: survives
# outside: none
# user: no (only one waits without a cgroup)
# within: 60
# %% a
import os, time
kept = 5
# %% a
os.register_at_fork(before=lambda: time.sleep(0.02))
os.register_at_fork(after_in_child=lambda: time.sleep(1000))
# %% a
kept = 6
# %% a
# status: crashed
# restored: 1
os._exit(1)
# %% a
# prints: 5
print(kept)
