# tries: print 10 GB
# why: it must neither grow our memory nor stop the program
# args: --timeout none
# limit: output
# status: ok, limit
# exit: 0
# check: at_ease kept_head_and_tail ten_gigabytes_counted
# within: 150
import os
print("THE HEAD", flush=True)
block = b"0123456789abcde\n" * (1 << 16)
for _ in range(10 << 10):
    left = memoryview(block)
    while left:
        left = left[os.write(1, left):]
print("THE TAIL", flush=True)
