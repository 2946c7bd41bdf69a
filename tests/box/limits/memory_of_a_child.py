# tries: a child that runs out of memory; the interpreter may live on, and the cell tells the limit
# args: --memory 192m
# status: ok, error, limit
# limit: memory
# user: no (needs a memory cgroup)
import subprocess, sys
print("before", flush=True)
done = subprocess.run([sys.executable, "-c", "x = bytearray(b'x' * (600 << 20)); print('WRONG: it fitted')"])
print("the child ended with", done.returncode)
