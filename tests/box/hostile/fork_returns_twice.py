# tries: fork and let the child run on into the runner's code
# why: two processes would then answer for one cell, and the child would take the next one
# %% a
pid = os.fork()
who = "child" if pid == 0 else "parent"
if OUTSIDE and pid:
    escaped("a second process in the runner", pid)
# %% a
# prints: parent
import time
time.sleep(0.5)
print(who)
if who == "parent" and not OUTSIDE:
    refused("a child in the place of the runner")
# %% a
# prints: parent again
print(who, "again")
