# tries: kill every process it may signal
# why: kill(-1) takes everything with the same uid: also those that wait to take the interpreter's place
# expect: refused
# outside-ends: SIGKILL
attempt("signal 0 to everybody", os.kill, -1, 0)
if not OUTSIDE:
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
        attempt(number.name, os.kill, -1, number)
else:
    if os.fork() == 0:
        os.kill(-1, signal.SIGKILL)
        os._exit(0)
    os.wait()
    os.kill(os.getpid(), signal.SIGKILL)  # kill(-1) spares its sender's pid 1 only
