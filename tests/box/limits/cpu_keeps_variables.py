# tries: go on after the CPU limit; the next cell has a CPU time of its own
# args: --cpu 1 --timeout 30
# within: 30
# %% a
# status: limit
# limit: cpu
kept = 1
while True:
    pass
# %% a
# prints: kept 1
total = 0
for i in range(3_000_000):
    total += i
print("kept", kept)
