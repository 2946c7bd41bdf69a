# tries: a time-out in top-level await and in asyncio.run; the loop is usable afterwards
# args: --timeout 1
# within: 25
# %% a
# status: limit
# limit: wall
import asyncio
await asyncio.sleep(100)
# %% a
# prints: awake
await asyncio.sleep(0.01)
print("awake")
# %% a
# status: limit
# limit: wall
asyncio.run(asyncio.sleep(100))
# %% a
# prints: awake again
await asyncio.sleep(0.01)
print("awake again")
