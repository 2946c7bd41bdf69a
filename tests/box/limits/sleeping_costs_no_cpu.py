# tries: sleep for longer than the CPU limit
# args: --cpu 1 --timeout 30
# prints: slept
# within: 25
import time
time.sleep(2.5)
print("slept")
