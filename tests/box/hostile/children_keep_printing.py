# tries: leave children that print for ever after the cell
# why: what comes after the end belongs to no cell; it must neither block nor fill anyone
# expect: survives
# within: 20
# check: no_process_left at_ease
# mark: 86399.02
# prints: the cell is over
# outside-ends: timeout
# outside-within: 3
import subprocess
if OUTSIDE:
    subprocess.run("yes | head -c 1000000 >/dev/null; sleep 100", shell=True)
subprocess.Popen(["sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done; : 86399.02"])
subprocess.Popen(["sleep", "86399.02"])
print("the cell is over", flush=True)
