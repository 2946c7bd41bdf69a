# tries: recurse in C until the stack ends
# why: the crash of a thread stack is still the guest's own
# expect: survives
# status: crashed, error
# prints: before the end
# outside-ends: SIGSEGV
print("before the end", flush=True)
sys.setrecursionlimit(10**9)
class Deep:
    pass
Deep.__getattr__ = lambda self, name: getattr(self, name + "x")
try:
    getattr(Deep(), "x")
except (MemoryError, RecursionError):
    ctypes.string_at(0)
def recurse(n):
    return sorted([n], key=recurse)
recurse(1)
