# tries: use most of the pids that were promised
# args: --pids 40
# prints: 30 threads
import threading
stop = threading.Event()
threads = [threading.Thread(target=stop.wait) for _ in range(30)]
[t.start() for t in threads]
print(len(threads), "threads")
stop.set()
[t.join() for t in threads]
