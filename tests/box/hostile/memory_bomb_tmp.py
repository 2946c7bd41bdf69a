# tries: fill /tmp and the home directory
# why: they are tmpfs within the session's limits, like the workspace
# args: --memory 128m --disk 64m
# status: ok, limit, error
# check: at_ease
# user: no (needs a memory cgroup)
# expect: survives
block = os.urandom(1 << 20)
total = 0
for place in ["."] * 2 if OUTSIDE else ["/tmp", "/home/user"]:
    try:
        with open(place + "/bomb", "wb") as f:
            for _ in range(300):
                total += f.write(block)
    except OSError as e:
        refused(f"300 MB in {place}", e)
found("600 MB of files", total >= 600 << 20 and total)
