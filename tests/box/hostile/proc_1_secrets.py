# tries: read what init has: environment, memory, descriptors, root
# why: init speaks for the box to the keeper; it must not be readable by the code it guards
for name in ("environ", "maps", "auxv", "io"):
    attempt(f"/proc/1/{name}", lambda: open(f"/proc/1/{name}", "rb").read(64))
for name in ("root", "cwd", "exe"):
    attempt(f"/proc/1/{name}", lambda: os.readlink(f"/proc/1/{name}"))
attempt("/proc/1/fd", lambda: os.listdir("/proc/1/fd"))
attempt("/proc/1/mem", lambda: os.open("/proc/1/mem", os.O_RDONLY))
