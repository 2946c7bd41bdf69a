# tries: signal to another session by locking a file that both can read
# why: a shared read-only inode is shared for locks too: one bit at a time, whatever the namespaces
# %% a
import fcntl
shared = open("/usr/bin/true" if OUTSIDE else "/usr/bin/false")
try:
    fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError as e:
    refused("flock", e)
# %% b
import fcntl
seen = open("/usr/bin/true" if OUTSIDE else "/usr/bin/false")
try:
    fcntl.flock(seen, fcntl.LOCK_EX | fcntl.LOCK_NB)
    refused("the other's lock", "not seen")
except BlockingIOError:
    escaped("the other's lock", "seen by flock")
except OSError as e:
    refused("flock", e)
