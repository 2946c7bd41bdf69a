# tries: reach addresses beyond loopback (a UDP connect looks up the route and sends nothing)
# why: no network but its own loopback
import fcntl, socket, struct
if OUTSIDE:  # a network of its own, with an address on lo: nothing leaves the machine
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        address = lambda text: struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x49))  # SIOCSIFFLAGS: up
        fcntl.ioctl(s, 0x8916, struct.pack("16s16s", b"lo:1", address("192.0.2.1")))
        fcntl.ioctl(s, 0x891C, struct.pack("16s16s", b"lo:1", address("255.0.0.0")))
def route(to):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((to, 53))
        return s.getsockname()
attempt("192.0.2.9", route, "192.0.2.9")
for to in () if OUTSIDE else ("1.1.1.1", "169.254.169.254", "10.0.0.1", "172.17.0.1", "255.255.255.255"):
    attempt(to, route, to)
