# tries: close every descriptor, its channel included
# why: the owner must notice at once, and say truthfully that the interpreter is lost
# expect: survives
# status: ok, crashed, error
# within: 25
# prints: before closing
# outside-ends: 9
print("before closing", flush=True)
os.closerange(0, 4096)
if OUTSIDE:
    try:
        os.write(1, b"x")
    except OSError:
        os._exit(9)
