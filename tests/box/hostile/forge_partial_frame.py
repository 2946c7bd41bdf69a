# tries: announce a frame of a megabyte and send no more of it
# why: its own messages are then swallowed as that frame's bytes; the time limit must still end the cell
# expect: survives
# args: --timeout 3
# status: crashed, limit, error
# within: 20
# prints: before the forgery
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
print("before the forgery", flush=True)
send(struct.pack("<II", 1 << 20, 17) + b"x" * 100)
