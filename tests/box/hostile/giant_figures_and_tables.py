# tries: a figure of 20,000 x 20,000 pixels, a table that wants to be shown whole, a hundred thousand displays
# why: each is easily asked for, and would take the session's memory, its time, or its owner's
# expect: survives
# shell: ipython
# check: at_ease short
# within: 120
# outside-ends: session
# args: --memory 600m
# %% a
import matplotlib.pyplot as plt, numpy as np, pandas as pd
if not OUTSIDE:
    plt.figure(figsize=(200, 200), dpi=100)
    plt.plot([1, 2])
    plt.show()
# %% a
pd.set_option("display.max_rows", None)
table = pd.DataFrame({"a": np.arange(1 if OUTSIDE else 10_000_000, dtype="int32")})
table
# %% a
from PIL import Image
Image.new("L", (1, 1) if OUTSIDE else (15_000, 15_000))
# %% a
for i in range(1 if OUTSIDE else 100_000):
    display(i)
# %% a
# prints: still here
if OUTSIDE:
    os._exit(1)  # nothing there is bounded
table.iloc[-1]
print("still here")
