# tries: run out of memory with output before it
# args: --memory 128m
# status: limit
# limit: memory
# prints: line 4
# user: no (needs a memory cgroup)
for i in range(5):
    print("line", i)
kept = []
while True:
    kept.append(bytearray(b"x" * (8 << 20)))
