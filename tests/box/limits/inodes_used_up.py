# tries: make more files than the limit allows
# args: --files 100
# within: 30
# %% a
# status: error, limit
# limit: disk
# prints: before
print("before")
for i in range(1000):
    open(f"f{i}", "w").close()
# %% a
# prints: between 50 and 100
import os
n = len(os.listdir("."))
print("between 50 and 100" if 50 <= n <= 100 else n)
