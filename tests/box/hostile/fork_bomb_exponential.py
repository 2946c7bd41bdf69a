# tries: the classic: every child forks again
# why: the bomb must burn out within its own limit, and end with its session
# args: --pids 32 --timeout 3
# expect: survives
# status: ok, limit, error, crashed
# within: 25
# outside-ends: 9
import time
print("lit", flush=True)
def bomb(depth):
    while depth:
        try:
            if os.fork() == 0:
                return bomb(depth - 1)
            depth -= 1
        except OSError:
            time.sleep(0.01)
    time.sleep(60)
    os._exit(0)
if os.fork() == 0:
    bomb(7 if OUTSIDE else 10**9)
if OUTSIDE:
    end = time.monotonic() + 15
    while len([p for p in os.listdir("/proc") if p.isdigit()]) <= 64 and time.monotonic() < end:
        time.sleep(0.1)
    os._exit(9 if time.monotonic() < end else 1)
time.sleep(4)
