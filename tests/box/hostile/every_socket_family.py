# tries: open sockets of every family, type and a few protocols
# why: netlink, packet, vsock and the rare ones are kernel code that nobody needs in a cell
import socket
# A raw AF_UNIX socket is a datagram socket.
harmless = {(socket.AF_UNIX, 1), (socket.AF_UNIX, 2), (socket.AF_UNIX, 5), (socket.AF_UNIX, 3), (socket.AF_INET, 1),
            (socket.AF_INET, 2), (socket.AF_INET6, 1), (socket.AF_INET6, 2)}
opened, killed = [], []
for family in range(64):
    for kind in (1, 2, 3, 4, 5, 6, 10):
        for protocol in (0, 1, 58, 115, 132, 136, 255, 262):
            if (family, kind) in harmless and protocol in (0, 1, 58):
                continue
            try:
                socket.socket(family, kind, protocol).close()
                opened.append((family, kind, protocol))
            except OSError:
                pass
found("sockets of other families", sorted({f for f, _, _ in opened} - {1, 2, 10}))
found("raw and odd sockets", [o for o in opened if o[0] in (1, 2, 10)])
for family, kind in harmless:
    try:
        socket.socket(family, kind).close()
    except OSError as e:
        if family != socket.AF_INET6:
            wrong(f"an honest socket ({family}, {kind})", e)
