# tries: random numbers in two forks of the same cell
# why: the reseeding after a fork must not have been disabled
# check: values_differ
import os, random, ssl, sys
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        print("VALUE random", random.random())
        print("VALUE ssl", ssl.RAND_bytes(8).hex())
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
print("OK")
