# tries: open system files for writing, and make files beside them
# why: what one session writes into /usr, the next one runs
def write(path):
    os.close(os.open(path, os.O_WRONLY))  # outside too: nothing is written
def make(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)
for path in ("/etc/passwd", "/usr/bin/env", os.__file__, "/usr/lib/x86_64-linux-gnu/libc.so.6", "/etc/ld.so.cache"):
    if os.path.exists(path):
        attempt("write " + path, write, path)
for directory in ("/usr", "/usr/bin", "/usr/lib/python3/dist-packages", "/etc", "/", "/dev", "/opt", "/var", "/proc"):
    if os.path.isdir(directory):
        attempt("make a file in " + directory, make, directory + "/retort-test-write", maybe=directory == "/proc")
