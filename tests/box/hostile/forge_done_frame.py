# tries: say that its cell, and cells that were never asked for, are done
# why: a forged end must not confuse the owner about other cells, or make it wait for ever
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
import struct, time
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
for n in (0, 1, 2, 77, 0xFFFFFFFF):
    send(struct.pack("<IIIBI", 9, 19, n, 0, 0))
    send(struct.pack("<IIIBI", 9, 19, n, 255, 0))
time.sleep(1)
print("still running")
