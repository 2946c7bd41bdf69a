# tries: open files relative to every descriptor number
# why: whatever is inherited, openat finds it without /proc
# setup: leak
# outside: host
hits = []
path = HOST["files"][0].lstrip("/")
for n in range(1024):
    for way in (path, "../" * 32 + path):
        try:
            os.close(os.open(way, os.O_RDONLY, dir_fd=n))
            hits.append(n)
        except OSError:
            pass
found("a descriptor that leads to the host's files", hits)
