# tries: use most of a small memory limit; what the interpreter brought along is not in it
# args: --memory 64m
# prints: 40 MB
x = bytearray(40 << 20)
print(len(x) >> 20, "MB")
