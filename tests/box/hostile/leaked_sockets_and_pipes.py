# tries: count the sockets and pipes that the box holds
# why: it may hold its stdio, the two pipes of its channel and the line to its own init, and no other way to
#  speak to anyone
import stat
if OUTSIDE:  # what a careless parent would leave
    import socket
    spare = socket.socketpair(), os.pipe(), os.pipe()
seen = []
for n in range(3, 1024):
    try:
        mode = os.fstat(n).st_mode
    except OSError:
        continue
    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
        seen.append((n, os.readlink(f"/proc/self/fd/{n}")))
found("sockets", [s for s in seen if s[1].startswith("socket") and (OUTSIDE or s[0] != 5)])
pipes = [s for s in seen if s[1].startswith("pipe")]
found("more pipes than the channel's two", pipes if len(pipes) > 2 else None)
