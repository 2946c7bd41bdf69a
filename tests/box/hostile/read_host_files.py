# tries: read files that anyone on the host may read, in /tmp, /var/tmp, /run, /dev/shm, /root, …
# why: the root must be the box's own; permissions are no wall
# outside: host
for path in HOST["files"]:
    attempt(path, lambda: open(path).read(8))
