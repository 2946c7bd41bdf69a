# tries: die in every way, and go on with the variables
# within: 90
# %% a
import ctypes, os, signal
import numpy as np
import pandas as pd
count = [0]
frame = pd.DataFrame({"a": np.arange(1000)})
# %% a
# status: crashed
# restored: 1
# prints: before it
print("before it", flush=True)
count.append("lost")
os._exit(3)
# %% a
assert count == [0] and frame.a.sum() == 499500
count.append(1)
# %% a
# status: crashed
# restored: 3
ctypes.string_at(0)
# %% a
assert count == [0, 1] and frame.describe().loc["max", "a"] == 999
count.append(2)
# %% a
# status: crashed
# restored: 5
os.abort()
# %% a
assert count == [0, 1, 2]
# %% a
# status: crashed
# restored: 7
os.kill(os.getpid(), signal.SIGKILL)
# %% a
# status: crashed
# restored: 7
os.killpg(0, signal.SIGTERM)
# %% a
# status: crashed
# restored: 7
signal.alarm(1)
signal.pause()
# %% a
assert count == [0, 1, 2]
import subprocess, threading
assert subprocess.run(["echo", "x"], capture_output=True).stdout == b"x\n"
done = []
t = threading.Thread(target=done.append, args=(1,)); t.start(); t.join()
assert done == [1]
print("OK")
