# tries: signal handlers, alarms and timers of its own; KeyboardInterrupt from a signal
import os
import signal
import time
fired = []
signal.signal(signal.SIGALRM, lambda *_: fired.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05)
time.sleep(0.2)
assert fired
signal.signal(signal.SIGUSR1, lambda *_: fired.append(2))
os.kill(os.getpid(), signal.SIGUSR1)
assert fired == [1, 2]
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
except KeyboardInterrupt:
    print("OK")
