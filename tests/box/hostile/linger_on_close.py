# tries: have whoever closes a socket last wait for what it cannot send
# why: one that is passed on with a message is closed by who gets it, and that may be the keeper
import fcntl, socket, struct, time
if OUTSIDE:  # where there is a loopback, but nobody has brought it up
    fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14x", b"lo", 0x41))
listener = socket.create_server(("127.0.0.1", 0))
full = socket.create_connection(listener.getsockname())
full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 2))
full.setblocking(False)
try:
    while True:
        full.send(bytes(1 << 16))
except BlockingIOError:
    pass
full.setblocking(True)
begun = time.monotonic()
full.close()
took = time.monotonic() - begun
found("a close that waits", f"{took:.1f} s" if took > 1 else None)
