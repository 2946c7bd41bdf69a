# tries: count the sockets and pipes that the box holds
# why: it may hold its stdio and its own channel, and no other way to speak to anyone
import stat
if OUTSIDE:  # what a careless parent would leave
    import socket
    spare = socket.socketpair() + socket.socketpair()
seen = []
for n in range(3, 1024):
    try:
        mode = os.fstat(n).st_mode
    except OSError:
        continue
    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
        seen.append((n, os.readlink(f"/proc/self/fd/{n}")))
sockets = [s for s in seen if s[1].startswith("socket")]
pipes = [s for s in seen if s[1].startswith("pipe")]
found("more than one socket", sockets if len(sockets) > 1 else None)
found("pipes besides stdio", pipes, maybe=True)
