# tries: packet and raw sockets
# why: sniffing and forging of frames, and code with a long record of kernel bugs
import socket
attempt("AF_PACKET", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).close())
attempt("AF_PACKET datagrams", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 3).close())
attempt("raw IPv4", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 255).close())
attempt("ICMP", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("raw IPv6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 255).close(), maybe=True)
attempt("ping socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1).close(), maybe=True)
