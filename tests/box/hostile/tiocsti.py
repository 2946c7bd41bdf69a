# tries: type characters into the terminal that retort was started from
# why: TIOCSTI is a shell command in the operator's shell
import fcntl
TIOCSTI, TIOCLINUX, TIOCSCTTY = 0x5412, 0x541C, 0x540E
if OUTSIDE:
    import pty
    def inject():
        os.setsid()
        master, slave = pty.openpty()
        fcntl.ioctl(slave, TIOCSCTTY, 0)
        fcntl.ioctl(slave, TIOCSTI, b"x")
        return "typed"
    text, _ = child(inject)
    (escaped if text == "typed" else refused)("TIOCSTI", text)
else:
    for n in (0, 1, 2):
        attempt(f"TIOCSTI on {n}", fcntl.ioctl, n, TIOCSTI, b"x")
        attempt(f"TIOCLINUX on {n}", fcntl.ioctl, n, TIOCLINUX, b"\x03")
    attempt("/dev/tty", lambda: fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), TIOCSTI, b"x"))
    def own():
        import pty
        _, slave = pty.openpty()
        os.setsid()
        fcntl.ioctl(slave, TIOCSCTTY, 0)
        fcntl.ioctl(slave, TIOCSTI, b"x")
        return "typed"
    text, _ = child(own)  # even on a terminal of its own: the filter knows the request
    (escaped if text == "typed" else refused)("TIOCSTI on a terminal of its own", text)
