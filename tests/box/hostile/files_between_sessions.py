# tries: leave files for another session in every place that can be written
# why: /tmp, /dev/shm, home and workspace are each box's own
# outside: host
# %% a
mark = "retort-test-mark-" + HOST["secret_sha256"][:8]
places = ["/tmp", "/dev/shm", "/var/tmp", "/run", "/mnt/data", "/home/user", "/run/lock", "."]
wrote = []
for place in places:
    try:
        with open(f"{place}/{mark}", "w") as f:
            f.write("hello")
        wrote.append(place)
    except OSError:
        pass
print("wrote", wrote)
if not OUTSIDE and not {"/tmp", "/dev/shm", "/mnt/data"} <= set(wrote):
    wrong("writable places", wrote)
# %% b
mark = "retort-test-mark-" + HOST["secret_sha256"][:8]
places = ["/tmp", "/dev/shm", "/var/tmp", "/run", "/mnt/data", "/home/user", "/run/lock", "."]
found("the other's files", [p for p in places if os.path.exists(f"{p}/{mark}")])
for place in places if OUTSIDE else []:
    try:
        os.unlink(f"{place}/{mark}")
    except OSError:
        pass
