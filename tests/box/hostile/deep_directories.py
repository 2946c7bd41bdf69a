# tries: nest directories thousands deep, and end the session so
# why: whoever walks the workspace by recursion or by path falls over
# setup: out
# check: out_is_plain
# expect: survives
# args: --files 6000
# status: ok, error
# within: 40
depth = 0
try:
    for _ in range(5000):
        os.mkdir("d" * 20)
        os.chdir("d" * 20)
        depth += 1
    open("bottom", "w").close()
except OSError as e:
    print(e)
print("depth", depth)
if OUTSIDE:
    found("a path that cannot be named", depth * 21 > 4096 and depth)
os.chdir("/")
