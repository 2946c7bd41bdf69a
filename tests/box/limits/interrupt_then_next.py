# tries: many time-outs in a row in one session
# args: --timeout 0.5
# within: 30
# %% a
# status: limit
# limit: wall
n = 0
while True: n += 1
# %% a
# status: limit
# limit: wall
import time
time.sleep(10)
# %% a
# status: limit
# limit: wall
import threading
threading.Event().wait()
# %% a
# status: limit
# limit: wall
import numpy as np
while True: np.random.rand(100, 100) @ np.random.rand(100, 100)
# %% a
# prints: n is positive
print("n is positive" if n > 0 else n)
