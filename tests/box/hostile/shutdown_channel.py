# tries: close its end of the channel and go on
# why: the owner sees an end while the process lives: it must not wait for it
# expect: survives
# status: ok, crashed, error
# within: 25
# outside-ends: 9
import time
n = channel()
os.close(n)
if OUTSIDE and os.read(_naive[0], 1) == b"":
    os._exit(9)
time.sleep(60)
