# tries: linear algebra by many threads, before and after
# args: --cpus 8 --memory 4g
# within: 60
# %% a
import os
import numpy as np
a = np.random.rand(600, 600)
b = a @ a
# %% a
c = a @ a
# %% a
# status: crashed
# restored: 2
os._exit(1)
# %% a
assert np.allclose(a @ a, b) and np.allclose(b, c)
np.linalg.svd(a[:200, :200])
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    assert all(np.allclose(x, b) for x in pool.map(lambda _: a @ a, range(4)))
with ProcessPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, 2])) == [1, 2]
print("OK")
