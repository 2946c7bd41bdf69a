# tries: send signals to init
# why: init has a uid of its own in the box, so that the guest cannot even ask
attempt("signal 0", os.kill, 1, 0)
attempt("SIGWINCH", os.kill, 1, signal.SIGWINCH)
attempt("SIGCONT by pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(1), signal.SIGCONT))
if not OUTSIDE:
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
        attempt(number.name, os.kill, 1, number)
