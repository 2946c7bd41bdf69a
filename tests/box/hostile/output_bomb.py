# tries: flood stdout with 300 MB, with no end of line
# why: output is kept for the reader; what is kept must be bounded, whatever is written
# expect: survives
# args: --output 64k
# status: ok, limit
# limit: output
# exit: 0
# check: at_ease short
# within: 60
sent = 0
while sent < (30 << 20 if OUTSIDE else 300 << 20):
    sent += os.write(1, b"x" * (1 << 20))
if OUTSIDE:
    os.write(1, b"\n")
    escaped("a flood of output", "all of it came through")
