# tries: burn two cores with a share of half a core
# args: --cpus 0.5 --timeout 30
# prints: fine
# user: no (needs a cpu cgroup)
# within: 30
import os, time
begun = time.monotonic()
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        while time.monotonic() - begun < 3:
            pass
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
t = os.times()
used = (t.children_user + t.children_system) / (time.monotonic() - begun)
print("fine" if used < 0.7 else f"WRONG: used {used:.2f} cores of 0.5", round(used, 2))
