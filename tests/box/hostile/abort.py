# tries: abort
# why: a crash is reported as a crash, with what was printed before
# expect: survives
# status: crashed
# prints: before the end
# outside-ends: SIGABRT
print("before the end", flush=True)
os.abort()
