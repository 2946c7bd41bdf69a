# tries: meet another session at an abstract socket and at a loopback port
# why: both are names of the network namespace
# outside: host
# %% a
import socket
name = "\0retort-test-meet-" + HOST["secret_sha256"][:8]
server = socket.socket(socket.AF_UNIX)
server.bind(name)
server.listen(4)
port = socket.create_server(("127.0.0.1", 28722))
# %% b
import socket
name = "\0retort-test-meet-" + HOST["secret_sha256"][:8]
attempt("the abstract socket", lambda: socket.socket(socket.AF_UNIX).connect(name))
attempt("the loopback port", lambda: socket.create_connection(("127.0.0.1", 28722), 3).close())
