# tries: add addresses, interfaces and routes
# why: in a network namespace with CAP_NET_ADMIN it could, and that is a large part of the kernel
import fcntl, socket, struct
def ioctl(request, data):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return fcntl.ioctl(s, request, data)[:4]
address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton("192.0.2.1"))
attempt("set flags", ioctl, 0x8914, struct.pack("16sH14x", b"lo", 0x49))
attempt("set an address", ioctl, 0x8916, struct.pack("16s16s", b"lo:1", address))
attempt("set the MTU", ioctl, 0x8922, struct.pack("16si12x", b"lo", 1500))
attempt("add a bridge", ioctl, 0x89a0, b"retorttest\0".ljust(32, b"\0"), maybe=True)
