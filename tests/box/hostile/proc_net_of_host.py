# tries: see the host's sockets, interfaces and routes
# why: they tell the neighbours and the network around
# outside: host
def read(name):
    try:
        return open("/proc/net/" + name).read()
    except OSError:
        return ""
found("the host's listener", f"{HOST['port']:04X}" in read("tcp"))
found("the host's abstract socket", HOST["abstract"] in read("unix"))
others = [l.split(":")[0].strip() for l in read("dev").splitlines()[2:]]
found("interfaces besides lo", [n for n in others if n != "lo"], maybe=True)
found("routes", read("route").splitlines()[1:2], maybe=True)
