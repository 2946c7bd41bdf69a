# tries: a socket to the hypervisor
# why: AF_VSOCK belongs to no network namespace: it leads to the host of the virtual machine, and
#      from box to box
import socket
attempt("AF_VSOCK", lambda: socket.socket(40, socket.SOCK_STREAM).close(), maybe=not os.path.exists("/dev/vsock"))
attempt("AF_ALG", lambda: socket.socket(38, socket.SOCK_SEQPACKET).close(), maybe=True)
attempt("AF_NETLINK", lambda: socket.socket(16, socket.SOCK_RAW).close())
