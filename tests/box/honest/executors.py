# tries: ThreadPoolExecutor and ProcessPoolExecutor
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
def cube(n):
    return n ** 3
with ThreadPoolExecutor(8) as pool:
    assert list(pool.map(cube, range(50))) == [n ** 3 for n in range(50)]
with ProcessPoolExecutor(2) as pool:
    futures = {pool.submit(cube, n): n for n in range(20)}
    assert {futures[f]: f.result() for f in as_completed(futures)} == {n: n ** 3 for n in range(20)}
print("OK")
