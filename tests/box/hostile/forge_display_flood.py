# tries: send tens of thousands of displays, well-formed and not
# why: displays are kept in the cell: their number and size must be bounded
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
# check: at_ease short
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
def field(data):
    return struct.pack("<I", len(data)) + data
good = struct.pack("<B", 0) + field(b"{}") + struct.pack("<I", 1) + field(b"text/plain") + field(b"x" * 1000)
bad = struct.pack("<B", 9) + field(b"{not json") + struct.pack("<I", 0xFFFFFFFF) + field(b"\xff\xfe" * 50) + field(b"")
for body in (good, bad):
    one = struct.pack("<II", len(body), 17) + body
    send(one)
    if not OUTSIDE:
        for _ in range(600):
            os.write(channel_fd, one * 60)
