# tries: numpy's linear algebra, here, in a child and in a grandchild
# why: BLAS keeps threads and locks that do not survive a fork
import os
import numpy as np
def solve():
    a = np.random.rand(200, 200) + 200 * np.eye(200)
    return bool(np.allclose(np.linalg.inv(a) @ a, np.eye(200)))
assert solve()
def in_child(act):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if act() else 1)
    return os.waitpid(pid, 0)[1] == 0
assert in_child(solve)
assert in_child(lambda: in_child(solve))
values, vectors = np.linalg.eigh(np.diag([1.0, 2.0, 3.0]))
assert values.tolist() == [1, 2, 3]
assert np.allclose(np.linalg.svd(np.ones((50, 50)))[1][0], 50)
big = np.random.rand(400, 400)
assert (big @ big).shape == (400, 400)
print("OK")
