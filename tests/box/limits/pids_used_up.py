# tries: start more processes than the limit allows: the error is Python's own
# args: --pids 24
# within: 30
# %% a
# status: error, limit, ok
# limit: pids
# prints: before
import subprocess
print("before", flush=True)
kept = []
for _ in range(100):
    kept.append(subprocess.Popen(["sleep", "60"]))
# %% a
# prints: fine again
for p in kept:
    p.kill()
    p.wait()
assert subprocess.run(["true"]).returncode == 0
print("fine again", len(kept))
