# tries: use, free and use memory again, below the limit
# args: --memory 256m
# prints: fine
for _ in range(8):
    block = bytearray(b"x" * (100 << 20))
    del block
print("fine")
