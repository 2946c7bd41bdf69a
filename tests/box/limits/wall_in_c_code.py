# tries: a time-out in the middle of C code that does not look for signals
# why: it cannot be interrupted, so it is killed after the grace; the output before it is kept
# args: --timeout 1
# status: limit
# limit: wall
# prints: before the long call
# within: 20
print("before the long call", flush=True)
sum(range(10**12))
