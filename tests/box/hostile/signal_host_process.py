# tries: signal processes of the host by their numbers
# why: pids are of the namespace; the host's must not mean anything here
# outside: host
attempt("the host's process", os.kill, HOST["process"], 0)
hits = []
for pid in range(2, 4000 if not OUTSIDE else 400000):
    if pid not in (os.getpid(), os.getppid()):
        try:
            os.kill(pid, 0)
            hits.append(pid)
        except OSError:
            pass
found("processes that can be signalled", len(hits) > 8 and hits[:8])
