# tries: leave by os._exit, without a word to the runner
# why: the owner sees an end of file in the middle of a cell
# expect: survives
# status: crashed, error
# prints: leaving at once
# outside-ends: 3
print("leaving at once", flush=True)
os._exit(3)
