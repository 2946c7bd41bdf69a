# tries: pass descriptors to retort over the channel, hundreds of them
# why: a receiver that takes and forgets them runs out of descriptors
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
import array, socket
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
with socket.socket(fileno=os.dup(channel_fd)) as s:
    spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
    s.settimeout(2)
    for _ in range(3 if OUTSIDE else 40):
        try:
            s.sendmsg([b"\0\0\0\0\0\0\0\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", spare))])
            if OUTSIDE:
                escaped("descriptors", len(spare))
        except OSError as e:
            print(e)
            break
