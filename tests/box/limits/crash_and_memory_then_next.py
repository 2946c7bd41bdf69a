# tries: a crash and the memory limit, with the state before each of them found again; and nothing imported
# args: --memory 200m
# user: no (a MemoryError without a cgroup)
# within: 60
# %% a
import os
kept = [1]
# %% a
# status: crashed
# restored: 1
# prints: partial
print("partial", flush=True)
os._exit(3)
# %% a
kept.append(2)
# %% a
# status: limit
# limit: memory
# restored: 3
lost = bytearray(os.urandom(1 << 20)) * 400
# %% a
# prints: [1, 2]
print(kept)
