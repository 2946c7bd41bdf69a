# tries: ignore the interrupt
# why: what does not yield within the grace of 2 s is killed
# args: --timeout 1
# status: limit
# limit: wall
# prints: ignoring
# prints: caught 1
# within: 20
import time
print("ignoring", flush=True)
n = 0
while True:
    try:
        time.sleep(100)
    except KeyboardInterrupt:
        n += 1
        print("caught", n, flush=True)
