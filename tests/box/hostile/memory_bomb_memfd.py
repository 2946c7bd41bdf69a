# tries: fill a memfd
# why: memory without a path and without a mapping
# expect: survives
# args: --memory 128m
# status: limit
# limit: memory
# prints: before the bomb
# check: at_ease
# user: no (needs a memory cgroup)
# within: 40
block = os.urandom(1 << 20)
print("before the bomb", flush=True)
fd = os.memfd_create("bomb")
for _ in range(400):
    os.write(fd, block)
escaped("400 MB in a memfd")
