# tries: open files until nothing more opens, and go on so
# why: the next cell must still run, and the machine's table of files is finite
# %% a
import resource
if OUTSIDE:  # where the limit is the habit of whoever logged in, and can be raised
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
kept = []
try:
    while len(kept) < (2000 if OUTSIDE else 200_000):
        kept.append(os.open("/dev/null", os.O_RDONLY))
    escaped("descriptors without end", len(kept))
except OSError as e:
    for fd in kept[-8:]:
        os.close(fd)
    refused("descriptors without end", f"{len(kept)}, then {e}")
# %% a
# prints: still here
print("still here")
