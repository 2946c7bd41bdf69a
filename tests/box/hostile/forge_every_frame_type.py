# tries: send frames of every type, empty and with odd contents
# why: the parser of each must stand what its writer would never write
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
import struct
def channel():
    """The socket to retort: the only one there is. Outside: one that a naive reader holds."""
    if OUTSIDE:
        import socket
        global keep
        keep = socket.socketpair()
        return keep[0].fileno()
    import stat
    for n in range(3, 1024):
        try:
            if stat.S_ISSOCK(os.fstat(n).st_mode):
                return n
        except OSError:
            pass
def send(frame):
    sent = os.write(channel_fd, frame)
    if OUTSIDE:
        escaped("the forged frame", f"{sent} bytes went out")
channel_fd = channel()
os.set_blocking(channel_fd, True)
for kind in list(range(0, 64)) + [255, 65535, 0xFFFFFFFF]:
    for body in (b"", b"\0" * 3, b"\xff" * 40):
        send(struct.pack("<II", len(body), kind) + body)
