# tries: burn CPU time: the CPU limit comes before the wall's
# args: --cpu 1 --timeout 30
# status: limit
# limit: cpu
# prints: burning
# within: 25
print("burning", flush=True)
while True:
    pass
