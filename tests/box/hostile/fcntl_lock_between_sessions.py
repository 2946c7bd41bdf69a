# tries: signal to another session by POSIX and OFD read locks on a file that both can read
# why: as flock; F_GETLK asks for a write lock that a read-only descriptor could never take
# %% a
import fcntl, struct
shared = os.open("/usr/bin/head" if OUTSIDE else "/usr/bin/tail", os.O_RDONLY)
lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 8, 0)
for command in (fcntl.F_SETLK, 37):
    try:
        fcntl.fcntl(shared, command, lock)
    except OSError as e:
        refused("setting a lock", e)
# %% b
import fcntl, struct
shared = os.open("/usr/bin/head" if OUTSIDE else "/usr/bin/tail", os.O_RDONLY)
for name, command in (("F_GETLK", fcntl.F_GETLK), ("F_OFD_GETLK", 36)):
    ask = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 8, 0)
    try:
        kind = struct.unpack("hhqqi4x", fcntl.fcntl(shared, command, ask))[0]
    except OSError as e:
        refused(name, e)
    else:
        (refused if kind == fcntl.F_UNLCK else escaped)("the other's lock by " + name, kind)
