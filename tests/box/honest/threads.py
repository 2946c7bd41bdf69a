# tries: threads, locks, events, timers, a queue, thread-local data
import queue
import threading
total, lock = 0, threading.Lock()
def add():
    global total
    for _ in range(10_000):
        with lock:
            total += 1
threads = [threading.Thread(target=add) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert total == 80_000
work, done = queue.Queue(), []
def worker():
    while (item := work.get()) is not None:
        done.append(item * 2)
thread = threading.Thread(target=worker)
thread.start()
for i in range(100):
    work.put(i)
work.put(None)
thread.join()
assert done == [i * 2 for i in range(100)]
fired = threading.Event()
threading.Timer(0.05, fired.set).start()
assert fired.wait(5)
print("OK")
