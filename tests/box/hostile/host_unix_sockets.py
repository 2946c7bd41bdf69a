# tries: connect to sockets of the host, by path and by abstract name
# why: abstract names belong to the network namespace; paths like docker.sock are the host's root
# outside: host
import socket
def connect(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(3)
        s.connect(address)
        return s.recv(16)
attempt("by path", connect, HOST["unix"])
attempt("by abstract name", connect, "\0" + HOST["abstract"])
for path in ("/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/nscd/socket"):
    attempt(path, connect, path, maybe=True)
