# tries: multiprocessing with two workers: Pool, Process, Queue, Manager, Lock
# why: semaphores live in /dev/shm, and the children are forks of a fork
import multiprocessing
import os
def square(n):
    return n * n
def put(queue, lock, n):
    with lock:
        queue.put((n, os.getpid()))
with multiprocessing.Pool(2) as pool:
    assert pool.map(square, range(100)) == [n * n for n in range(100)]
    assert sum(pool.imap_unordered(square, range(10))) == 285
queue, lock = multiprocessing.Queue(), multiprocessing.Lock()
workers = [multiprocessing.Process(target=put, args=(queue, lock, n)) for n in range(2)]
for worker in workers:
    worker.start()
seen = {queue.get(timeout=20) for _ in workers}
for worker in workers:
    worker.join()
    assert worker.exitcode == 0
assert {n for n, _ in seen} == {0, 1} and len({pid for _, pid in seen}) == 2
value = multiprocessing.Value("i", 0)
def add(v):
    for _ in range(1000):
        with v.get_lock():
            v.value += 1
workers = [multiprocessing.Process(target=add, args=(value,)) for _ in range(2)]
[w.start() for w in workers]
[w.join() for w in workers]
assert value.value == 2000
print("OK")
