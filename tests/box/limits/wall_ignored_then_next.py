# tries: go over the time limit with the interrupt ignored
# args: --timeout 8
# within: 60
# %% a
import numpy as np
import pandas as pd
frame = pd.DataFrame({"a": np.arange(100)})
# %% a
# status: limit
# limit: wall
# restored: 1
# prints: partial
print("partial", flush=True)
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
while True:
    pass
# %% a
# prints: 4950
print(frame.a.sum())
# %% a
# prints: interrupted as ever
import time
try:
    time.sleep(0.1)
finally:
    print("interrupted as ever")
