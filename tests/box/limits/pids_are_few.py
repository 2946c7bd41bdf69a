# tries: a session with as few processes as there can be, and all of them in use
# args: --pids 6
# within: 60
# %% a
import os, subprocess
kept = 1
# %% a
kept = 2
assert subprocess.run(["true"]).returncode == 0
children = [subprocess.Popen(["sleep", "1000"]) for _ in range(3)]
# %% a
kept += 1
for child in children:
    child.kill()
    child.wait()
# %% a
kept += 1
# %% a
# status: crashed
# restored: 4
os._exit(1)
# %% a
# prints: 4
print(kept)
assert subprocess.run(["true"]).returncode == 0
