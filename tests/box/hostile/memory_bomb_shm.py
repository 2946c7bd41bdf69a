# tries: fill /dev/shm
# why: pages of a tmpfs are memory too, and outlive the process that wrote them
# expect: survives
# args: --memory 128m
# status: limit, error
# limit: memory disk
# prints: before the bomb
# check: at_ease
# user: no (needs a memory cgroup)
# within: 40
block = os.urandom(1 << 20)
print("before the bomb", flush=True)
with open("/dev/shm/retort-test-bomb", "wb") as f:
    if OUTSIDE:
        os.unlink("/dev/shm/retort-test-bomb")
    for _ in range(400):
        f.write(block)
escaped("400 MB in /dev/shm")
