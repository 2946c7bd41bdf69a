# tries: flock, lockf and inotify on files of its own
# why: what is closed against the neighbours must stay open at home
import fcntl
import os
a = open("locked", "w")
b = open("locked", "w")
fcntl.flock(a, fcntl.LOCK_EX)
try:
    fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    raise SystemExit("flock does not lock")
except BlockingIOError:
    pass
fcntl.flock(a, fcntl.LOCK_UN)
fcntl.lockf(a, fcntl.LOCK_EX)
pid = os.fork()
if pid == 0:
    try:
        fcntl.lockf(open("locked", "w"), fcntl.LOCK_EX | fcntl.LOCK_NB)
        os._exit(1)
    except OSError:
        os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("OK")
