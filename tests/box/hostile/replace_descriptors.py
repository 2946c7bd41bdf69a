# tries: put other files in the place of its stdout and channel
# why: what it writes there must go nowhere but to itself
# expect: survives
# status: ok, crashed, error
# within: 25
# outside-ends: 9
null = os.open("/dev/null", os.O_RDWR)
for n in range(0, 32):
    if n != null:
        os.dup2(null, n)
print("into the void")
if OUTSIDE:
    os._exit(9)
