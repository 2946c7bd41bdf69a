# tries: fork without end
# why: the pids of the machine are few; the box's limit comes first
# args: --pids 32
# within: 30
# check: no_process_left
# mark: 86399.03
import time
children = []
try:
    for _ in range(300):
        pid = os.fork()
        if pid == 0:
            os.closerange(0, 3)
            os.execv("/usr/bin/sleep", ["sleep", "86399.03"])
        children.append(pid)
    escaped("300 processes", len(children))
except OSError as e:
    refused("300 processes", f"{len(children)}, then {e}")
for pid in children if OUTSIDE else []:
    os.kill(pid, signal.SIGKILL)
