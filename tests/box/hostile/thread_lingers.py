# tries: leave threads that never end, and an exit handler that never returns
# why: the end of a session does not ask the guest
# expect: survives
# within: 20
# prints: the cell is over
# outside-ends: timeout
# outside-within: 3
import atexit, threading, time
def for_ever(*_):
    while True:
        time.sleep(1)
atexit.register(for_ever)
for _ in range(4):
    threading.Thread(target=for_ever).start()
print("the cell is over", flush=True)
