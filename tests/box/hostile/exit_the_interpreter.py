# tries: leave by sys.exit
# why: the status is the program's, and retort tells it
# expect: survives
# status: ok, error, crashed
# exit: 1 3
# prints: leaving
# outside-ends: 3
print("leaving", flush=True)
sys.exit(3)
