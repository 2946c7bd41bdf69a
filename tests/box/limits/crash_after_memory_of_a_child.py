# tries: crashes in the cell after one whose child was killed for want of memory
# why: a limit that an earlier cell met is not what ended this one
# args: --memory 200m
# within: 60
# user: no (there the child is ended with the session)
# %%
# limit: memory
# prints: -9
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "x = bytearray(400 << 20)"]).returncode)
# %%
# status: crashed
# prints: signal 11
import os, signal
os.kill(os.getpid(), signal.SIGSEGV)
