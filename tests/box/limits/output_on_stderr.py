# tries: the same on stderr, without a newline, in broken UTF-8
# args: --output 64k
# limit: output
# status: ok, limit
# exit: 0
# check: at_ease
# prints: after the flood
import os
for _ in range(300):
    os.write(2, b"\xf0\x9f\x8e" * 100_000)
print("after the flood")
