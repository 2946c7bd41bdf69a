# tries: fill the workspace: the error is Python's own, and the cell says which limit it was
# args: --disk 8m
# within: 30
# %% a
# status: error, limit
# limit: disk
# prints: before
print("before")
with open("big", "wb") as f:
    for _ in range(32):
        f.write(b"x" * (1 << 20))
# %% a
# prints: room again
import os
os.unlink("big")
with open("small", "wb") as f:
    f.write(b"x" * (4 << 20))
print("room again")
