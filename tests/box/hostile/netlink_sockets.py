# tries: talk to the kernel over netlink
# why: with a user namespace, netlink is the door to netfilter, the richest source of kernel bugs
import socket
for name, protocol in (("route", 0), ("sock_diag", 4), ("xfrm", 6), ("audit", 9), ("netfilter", 12),
                       ("kobject_uevent", 15), ("generic", 16), ("crypto", 21)):
    attempt(name, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol).close(),
            maybe=name not in ("route", "generic"))
