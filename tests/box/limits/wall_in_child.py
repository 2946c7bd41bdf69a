# tries: a time-out while waiting for a child; the child is interrupted too, or dies with the box
# args: --timeout 1
# within: 20
# check: no_process_left
# mark: 86399.11
# %% a
# status: limit
# limit: wall
# prints: waiting
import subprocess
print("waiting", flush=True)
subprocess.run(["sleep", "86399.11"])
# %% a
# prints: goes on
print("goes on")
