# tries: start threads without end
# why: threads are pids too
# args: --pids 32
import threading
stop, made = threading.Event(), 0
try:
    for _ in range(300):
        threading.Thread(target=stop.wait).start()
        made += 1
    escaped("300 threads", made)
except RuntimeError as e:
    refused("300 threads", f"{made}, then {e}")
stop.set()
