# tries: take a lease on a shared file and be told when another session opens it
# why: it tells what the neighbour does, and makes the neighbour's open wait
# %% a
import fcntl, signal
def take(command, value):
    shared = os.open("/usr/bin/comm" if OUTSIDE else "/usr/bin/cut", os.O_RDONLY)
    fcntl.fcntl(shared, command, value)
    return shared
attempt("a read lease on a shared file", take, fcntl.F_SETLEASE, fcntl.F_RDLCK)
# %% b
print(len(open("/usr/bin/comm" if OUTSIDE else "/usr/bin/cut", "rb").read()) > 0)
