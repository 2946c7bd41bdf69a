# tries: make files without end in /tmp, /dev/shm and the home directory
# why: every tmpfs of the box needs a limit of inodes, not only the workspace
# args: --memory 256m
# within: 60
# expect: survives
# status: ok, limit, error
for place in (["here"] if OUTSIDE else ["/tmp", "/dev/shm", "/home/user"]):
    os.makedirs(place, exist_ok=True)
    made = 0
    try:
        for i in range(120_000 if not OUTSIDE else 20_000):
            os.symlink("x", f"{place}/l{i}")
            made += 1
        escaped(f"{made} links in {place}", made)
    except OSError as e:
        refused(f"links in {place}", f"{made}, then {e}")
