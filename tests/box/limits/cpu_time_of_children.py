# tries: let children burn the CPU time
# why: the limit is of all processes together
# args: --cpu 1 --timeout 30
# status: limit
# limit: cpu
# prints: burning
# within: 25
import subprocess
print("burning", flush=True)
subprocess.run("while :; do :; done & while :; do :; done", shell=True)
