# tries: fill an anonymous shared mapping
# why: shared memory is charged like any other
# expect: survives
# args: --memory 128m
# status: limit
# limit: memory
# prints: before the bomb
# check: at_ease
# user: no (needs a memory cgroup)
# within: 40
import mmap
print("before the bomb", flush=True)
area = mmap.mmap(-1, 400 << 20)
for i in range(0, 400 << 20, 4096):
    area[i] = 1
escaped("400 MB of shared mapping")
