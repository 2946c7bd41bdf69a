# tries: connect to a service on the host's loopback
# why: databases and metadata services listen there and trust whoever comes
# outside: host
import socket
def connect(address):
    with socket.create_connection((address, HOST["port"]), 3) as s:
        return s.recv(16)
attempt("127.0.0.1", connect, "127.0.0.1")
attempt("localhost", connect, "localhost")
attempt("0.0.0.0", connect, "0.0.0.0")
