# tries: go over the memory limit; the session goes on with what it had
# args: --memory 200m
# within: 60
# user: no (a MemoryError without a cgroup)
# %% a
import numpy as np
import pandas as pd
frame = pd.DataFrame({"a": np.arange(100)})
# %% a
# status: limit
# limit: memory
# restored: 1
# prints: partial
print("partial", flush=True)
data = [np.ones(10_000_000) for _ in range(20)]
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
