# tries: fill the heap
# why: out of memory is the commonest end of a cell; it must be this box's and be told as what it is
# expect: survives
# args: --memory 128m
# status: limit
# limit: memory
# prints: before the bomb
# check: at_ease
# user: no (needs a memory cgroup)
# within: 40
print("before the bomb", flush=True)
kept = []
for _ in range(40):
    kept.append(bytearray(b"x" * (10 << 20)))
escaped("400 MB of heap", len(kept))
