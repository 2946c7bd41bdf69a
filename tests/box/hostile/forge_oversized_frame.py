# tries: announce a frame of four gigabytes
# why: a reader that believes a length is a reader out of memory
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
# prints: before the forgery
# check: at_ease
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
send(struct.pack("<II", 0xFFFFFFF0, 17) + b"x" * 65536)
