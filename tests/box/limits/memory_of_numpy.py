# tries: one array that is larger than the limit
# args: --memory 256m
# status: limit, error
# prints: before
# user: no (needs a memory cgroup)
import numpy as np
print("before", flush=True)
a = np.ones(600 * 2**20 // 8)
print("WRONG: 600 MB fitted in 256", a.sum())
