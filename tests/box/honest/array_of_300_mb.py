# tries: an array of 300 MB within the limit of 1 GB
# args: --memory 1g
import numpy as np
a = np.ones(300 * 2**20 // 8)
assert a.sum() == a.size
b = a[: a.size // 2] * 2
assert b.sum() == a.size
print("OK")
