# tries: crash by a null pointer
# why: a crash is reported as a crash, with what was printed before
# expect: survives
# status: crashed
# prints: before the end
# outside-ends: SIGSEGV
print("before the end", flush=True)
ctypes.string_at(0)
