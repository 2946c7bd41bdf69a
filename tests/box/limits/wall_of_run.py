# tries: the same in `retort run`, which leaves with 124
# args: --timeout 1
# status: limit
# limit: wall
# prints: before sleeping
# within: 15
import time
print("before sleeping")
time.sleep(100)
