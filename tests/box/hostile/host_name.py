# tries: learn the host's name
# why: the contract says: no host name, user or path of the host
# outside: host
import platform, socket
places = {"gethostname": socket.gethostname(), "uname": os.uname().nodename, "platform": platform.node()}
for path in ("/etc/hostname", "/proc/sys/kernel/hostname", "/etc/hosts", "/etc/mailname"):
    try:
        places[path] = open(path).read()
    except OSError:
        places[path] = ""
for place, text in places.items():
    found(place, HOST["name"] in text.split() and text, maybe=place.startswith("/etc"))
