"""What there is to find on this host: things that hostile programs look for.

Host puts secrets in files, listens on sockets and starts a process with a telling name; facts()
is the dictionary that every program gets as HOST. The secret itself is told only as a hash.
"""
import hashlib
import os
import pwd
import secrets
import socket
import subprocess
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))


def remove(directory):
    """Take a directory away, however deep the programs have made it (Python's rmtree falls over)."""
    subprocess.run(["rm", "-rf", "--", directory], stderr=subprocess.DEVNULL)


class Host:
    def __init__(self, retort):
        self.secret = secrets.token_hex(16)
        self.directory = tempfile.mkdtemp(prefix="retort-test-")
        os.chmod(self.directory, 0o755)
        self.made = []
        self.files = [self.put(d) for d in self.places() if os.access(d, os.W_OK)]
        self.process = subprocess.Popen(
            ["retort-canary-" + self.secret[:8], "3600"], executable="/bin/sleep",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.port = self.listen(socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]
        self.unix = os.path.join(self.directory, "socket")
        self.listen(socket.AF_UNIX, self.unix)
        os.chmod(self.unix, 0o777)
        self.abstract = "retort-test-" + self.secret[:8]
        self.listen(socket.AF_UNIX, "\0" + self.abstract)
        self.retort = os.path.abspath(retort)

    def places(self):
        home = os.path.expanduser("~")
        return [self.directory, "/var/tmp", "/dev/shm", "/run", home, "/srv", "/opt"]

    def put(self, directory):
        """A file that anyone on the host may read."""
        path = os.path.join(directory, "retort-test-canary-" + self.secret[:8])
        with open(path, "w") as f:
            f.write(self.secret)
        os.chmod(path, 0o644)
        self.made.append(path)
        return path

    def listen(self, family, address):
        server = socket.socket(family)
        server.bind(address)
        server.listen(64)

        def accept():
            while True:
                try:
                    connection, _ = server.accept()
                    connection.sendall(b"host\n")
                    connection.close()
                except OSError:
                    pass

        threading.Thread(target=accept, daemon=True).start()
        return server

    def environment(self):
        """The environment that retort and the outside programs are started with."""
        return {**os.environ, "RETORT_TEST_SECRET": self.secret}

    def facts(self):
        with open("/etc/passwd", "rb") as f:
            passwd = hashlib.sha256(f.read()).hexdigest()
        people = [p.pw_name for p in pwd.getpwall() if 1000 <= p.pw_uid < 60000]
        return {
            "files": self.files,
            "directory": self.directory,
            "secret_sha256": hashlib.sha256(self.secret.encode()).hexdigest(),
            "process": self.process.pid,
            "process_name": "retort-canary-" + self.secret[:8],
            "port": self.port,
            "unix": self.unix,
            "abstract": self.abstract,
            "name": socket.gethostname(),
            "passwd_sha256": passwd,
            "people": [p for p in people if p != "user"],
            "namespaces": {n: os.readlink("/proc/self/ns/" + n) for n in os.listdir("/proc/self/ns")},
            "repository": REPOSITORY,
            "private_paths": sorted({REPOSITORY, self.directory, os.path.expanduser("~")}),
        }

    def close(self):
        self.process.kill()
        self.process.wait()
        for path in self.made:
            if os.path.exists(path):
                os.unlink(path)
        remove(self.directory)
