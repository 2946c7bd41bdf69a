# tries: run into the moment when a fork is made that waits: os.register_at_fork, a tracer, broken modules
# why: what a user registers runs there, and must not hang the session or stop it from being kept
# expect: survives
# outside: none
# args: --timeout 4
# within: 60
# %% a
import os, select, sys, threading, time, signal
kept = 41
def bad(*_):
    raise SystemExit(3)
os.register_at_fork(before=bad, after_in_parent=bad, after_in_child=bad)
sys.unraisablehook = bad
# %% a
kept += 1
# %% a
# status: crashed
# restored: 2
os._exit(1)
# %% a
# prints: 42
print(kept)
for module in (os, select, threading, signal, time):
    for name in list(vars(module)):
        if not name.startswith("__"):
            setattr(module, name, bad)
import builtins
leave = __import__("posix")._exit
del builtins.open, builtins.str, builtins.len, builtins.isinstance
# %% a
kept = 43
# %% a
# status: crashed
# restored: 5
leave(1)
# %% a
# prints: 43
print(kept)
# %% b
import os, time
kept = 1
# %% b
os.register_at_fork(before=lambda: time.sleep(1000))
# %% b
# status: limit, interrupted
# limit: wall
kept = 2
# %% b
# prints: goes on
kept = 3
print("goes on")
# %% b
# status: crashed
# restored: 2
os._exit(1)
# %% b
# prints: 1
print(kept)
