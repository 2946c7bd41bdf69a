# tries: 200,000 lines within the output limit, in order
# args: --output 16m
for i in range(200_000):
    print("line", i)
print("OK")
