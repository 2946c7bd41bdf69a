# tries: an endless loop: the time-out interrupts it, output and variables stay
# args: --timeout 2
# within: 30
# %% a
kept = [1, 2, 3]
# %% a
# status: limit
# limit: wall
# prints: before the loop
print("before the loop")
kept.append(4)
while True:
    pass
# %% a
# prints: [1, 2, 3, 4]
print(kept)
