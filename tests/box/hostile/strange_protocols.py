# tries: open protocols that have no use on a loopback, and the corners of those that have
# why: each is kernel code that programs hardly ever reach
import socket
attempt("multipath TCP", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close(), maybe=True)
attempt("UDP-Lite", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136).close(), maybe=True)
attempt("SCTP", lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 132).close(), maybe=True)
pair = socket.socketpair()
attempt("out of band", lambda: pair[0].send(b"x", socket.MSG_OOB))
attempt("out of band, reading", lambda: pair[1].recv(1, socket.MSG_OOB | socket.MSG_DONTWAIT))
