# tries: hide memory in the kernel's pipes and sockets
# why: buffers in the kernel must be charged to the box, or be bounded
# expect: survives
# args: --memory 128m --timeout 30
# status: ok, limit, error
# check: at_ease
# user: no (needs a memory cgroup)
import fcntl, socket
block, held, kept = b"x" * 65536, 0, []
try:
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    while held < 500 << 20:
        pair = socket.socketpair()
        kept.append(pair)
        for end in pair:
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            try:
                while True:
                    held += end.send(block)
            except BlockingIOError:
                pass
    escaped("500 MB in sockets", held)
except OSError as e:
    refused("500 MB in sockets", f"{held >> 20} MB, then {e}")
