# tries: leave thousands of dead children unreaped, and orphans for init
# why: each holds a pid; the limit counts them, and init must reap its own
# args: --pids 40
# status: ok, error
made = 0
try:
    for _ in range(400):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        made += 1
except OSError as e:
    refused("zombies without end", f"{made}, then {e}")
else:
    escaped("zombies without end", made)
while True:
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        break
if not OUTSIDE:
    for _ in range(100):  # orphans: init reaps them, so that this never ends
        pid = os.fork()
        if pid == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.waitpid(pid, 0)
