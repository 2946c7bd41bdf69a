# tries: fill memory with many children, each of them small
# why: the limit is of the whole box, not of one process
# expect: survives
# args: --memory 128m
# status: ok, limit, error, crashed
# limit: memory
# prints: before the bomb
# check: at_ease
# user: no (needs a memory cgroup)
# within: 40
print("before the bomb", flush=True)
children = []
over, hold = os.pipe()  # they live until the last one is there
for _ in range(12):
    there, word = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(hold)
        kept = bytearray(b"x" * (30 << 20))
        os.close(word)
        os.read(over, 1)
        os._exit(0)
    os.close(word)
    os.read(there, 1)
    children.append(pid)
os.close(hold)
ends = [os.waitpid(pid, 0)[1] for pid in children]
print(ends)
found("360 MB in 12 children", all(e == 0 for e in ends) and ends)
