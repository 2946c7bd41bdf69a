# tries: resolve a name
# why: DNS carries data out of networks that allow nothing else; and a lookup must fail at once, not hang
# within: 30
import socket, threading, time
if OUTSIDE:  # a resolver of its own, in its own namespaces: nothing leaves the machine
    os.system("ip link set lo up 2>/dev/null || true")
    with open("resolv.conf", "w") as f:
        f.write("nameserver 127.0.0.1\n")
    os.system("mount --bind resolv.conf /etc/resolv.conf")
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    def serve():
        while True:
            query, peer = server.recvfrom(512)
            a = query[-4:-2] == b"\0\1" or b"\0\1\0\1" in query[12:]
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x05\0\4\xc0\0\2\x07" if a else b""
            end = query.index(b"\0", 12) + 5
            server.sendto(query[:2] + b"\x81\x80\0\1" + (b"\0\1" if a else b"\0\0") + b"\0\0\0\0" + query[12:end] + answer, peer)
    threading.Thread(target=serve, daemon=True).start()
begun = time.monotonic()
attempt("example.com", socket.gethostbyname, "example.com")
seconds = time.monotonic() - begun
if seconds > 6:
    wrong("the lookup took long", f"{seconds:.1f} s")
