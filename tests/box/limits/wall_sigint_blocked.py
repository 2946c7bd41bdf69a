# tries: SIGINT ignored and blocked
# args: --timeout 1
# status: limit
# limit: wall
# prints: blocked
# within: 20
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
print("blocked", flush=True)
time.sleep(100)
