# tries: leave a daemon: two forks, a session of its own, holding stdout open
# why: children that linger, daemons included, are gone with their session; and nobody waits for them
# expect: survives
# check: no_process_left
# mark: 86399.01
# within: 20
# outside: host
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            os.execv("/usr/bin/sleep", ["sleep", "86399.01"])
        os._exit(0)
    os.wait()
if not OUTSIDE:
    daemon()
    print("left a daemon")
else:
    import subprocess, time
    if os.fork() == 0:
        os.closerange(0, 3)
        daemon()
        os._exit(0)
    os.wait()
    end = time.monotonic() + 15
    while True:
        alive = subprocess.run(["pgrep", "-f", "^sleep 86399.01$"], capture_output=True, text=True).stdout.split()
        if alive or time.monotonic() > end:
            break
        time.sleep(0.1)
    found("a daemon that outlives its parent", alive)
    for pid in alive:
        os.kill(int(pid), signal.SIGKILL)
