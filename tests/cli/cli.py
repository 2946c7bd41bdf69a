"""Ways to drive retort: once, as a JSON conversation, and at a terminal."""
import errno
import fcntl
import json
import os
import pty
import queue
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest
import urllib.request

from processes import children, descendants, wait_gone  # noqa: F401, for the tests

RETORT = "build/retort"  # run.py sets it
SERVER = None  # with a link, "run", "repl" and "verify" go to that server
LEAVE = signal.SIGKILL  # how a test ends what it has started
PATIENCE = 120  # seconds: more than anything here takes on a slow machine
NOBODY = 65534


def plain_environment(**changes):
    """What the tests' own environment must not decide."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "RETORT_HISTORY", "RETORT_FAULT",
                        "RETORT_TOKEN", "PYTHONPATH")}
    env.update(LC_ALL="C.UTF-8", TERM="xterm")
    env.update(changes)
    return {k: v for k, v in env.items() if v is not None}


def command(*args, user=None):
    if SERVER and args and args[0] in ("run", "repl", "verify"):
        args = (args[0], "--server", SERVER, *args[1:])
    if user is None:
        return [RETORT, *args]
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", RETORT, *args]


class Done:
    def __init__(self, status, out, err):
        self.status = status
        self.raw_out, self.raw_err = out, err
        self.out = out.decode("utf-8", "surrogateescape")
        self.err = err.decode("utf-8", "surrogateescape")

    def __repr__(self):
        return f"status {self.status}\nstdout: {self.out[-2000:]}\nstderr: {self.err[-2000:]}"

    @property
    def json(self):
        lines = self.out.splitlines()
        assert len(lines) == 1, f"not one line: {self}"
        return json.loads(lines[0])


def run(*args, input=b"", env=None, cwd=None, user=None):
    """retort ARGS, to its end."""
    if isinstance(input, str):
        input = input.encode()
    p = subprocess.run(command(*args, user=user), input=input, capture_output=True, cwd=cwd,
                       env=plain_environment(**(env or {})), timeout=PATIENCE)
    return Done(p.returncode, p.stdout, p.stderr)


def start(*args, env=None, user=None, **options):
    """retort ARGS, and do not wait."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               **options}
    return subprocess.Popen(command(*args, user=user), env=plain_environment(**(env or {})),
                            **options)


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    return Done(process.returncode, out or b"", err or b"")


def read_until(stream, wanted):
    """Bytes from a pipe until they hold `wanted`."""
    got = b""
    while wanted not in got:
        assert select.select([stream], [], [], PATIENCE)[0], f"no {wanted}: {got}"
        piece = os.read(stream.fileno(), 65536)
        assert piece, f"ended before {wanted}: {got}"
        got += piece
    return got


class Repl:
    """retort repl --json."""

    def __init__(self, *args, **options):
        self.process = start("repl", "--json", *args, stdin=subprocess.PIPE, **options)
        self.answers = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.answers.put(json.loads(line))
        self.answers.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.send_signal(LEAVE)
        self.process.wait()

    def send_raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, **request):
        self.send_raw(json.dumps(request).encode() + b"\n")

    def answer(self, seconds=PATIENCE):
        found = self.answers.get(timeout=seconds)
        assert found is not None, f"it has ended: {self.process.stderr.read().decode()}"
        return found

    def cell(self, code, **more):
        self.send(code=code, **more)
        return self.answer()

    def end(self):
        """Close stdin; the status, and the answers that were still to come."""
        self.process.stdin.close()
        rest = []
        while (found := self.answers.get(timeout=PATIENCE)) is not None:
            rest.append(found)
        return self.process.wait(PATIENCE), rest


def text(cell, kind="stdout"):
    return "".join(o["text"] for o in cell["outputs"] if o["type"] == kind)


def result(cell):
    return next((o["data"].get("text/plain") for o in cell["outputs"] if o["type"] == "result"), None)


class Server:
    """retort serve, with a state of its own, gone afterwards."""

    def __init__(self, *args):
        self.state = tempfile.mkdtemp(prefix="retort-state-")
        self.process = start("serve", "--listen", "127.0.0.1:0", "--state", self.state, "--set", "preload=none", *args,
                             stderr=subprocess.DEVNULL)
        ready = self.process.stdout.readline().decode()
        self.link = ready.split()[-1] if "ready at" in ready else None
        assert self.link, f"it does not serve: {ready!r}"
        self.base, _, self.token = self.link.partition("/?token=")

    def call(self, method, path, body=None):
        """The answer's JSON, or None."""
        request = urllib.request.Request(self.base + path, method=method,
                                         data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def sessions(self):
        return self.call("GET", "/v1/sessions")["data"]

    def wait_empty(self, seconds=PATIENCE):
        """The sessions that are left after so long."""
        end = time.monotonic() + seconds
        while (left := self.sessions()) and time.monotonic() < end:
            time.sleep(0.05)
        return left

    def stop(self, kill=False):
        if self.process.poll() is None:
            (self.process.kill if kill else self.process.terminate)()
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        shutil.rmtree(self.state, ignore_errors=True)


CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\([A-Z0-9]")


class Terminal:
    """retort at a pseudo-terminal, as a person sees it."""

    def __init__(self, *args, env=None, columns=100, rows=30):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execve(RETORT, command(*args), plain_environment(**(env or {})))
            finally:
                os._exit(99)
        self.resize(columns, rows)
        self.seen = b""  # everything
        self.at = 0  # how much of the plain text has been looked at
        self.status = None

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, LEAVE)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    @property
    def plain(self):
        return CONTROL.sub("", self.seen.decode("utf-8", "replace")).replace("\r", "")

    def read(self, seconds):
        """False: nothing more will come."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            piece = b""
        self.seen += piece
        return bool(piece)

    def expect(self, wanted, seconds=PATIENCE):
        """Wait for a regular expression in what has not been looked at yet; the text up to it."""
        end = time.monotonic() + seconds
        while True:
            fresh = self.plain[self.at:]
            if found := re.search(wanted, fresh):
                self.at += found.end()
                return fresh[:found.end()]
            assert time.monotonic() < end, f"no {wanted!r} in {fresh!r}"
            if not self.read(0.2):
                fresh = self.plain[self.at:]
                assert re.search(wanted, fresh), f"ended without {wanted!r}: {fresh!r}"

    def send(self, keys):
        os.write(self.fd, keys.encode() if isinstance(keys, str) else keys)

    def line(self, keys):
        self.send(keys + "\r")

    def wait(self):
        """Its exit status, when it leaves by itself."""
        end = time.monotonic() + PATIENCE
        while self.read(0.2):
            seen = len(self.seen)
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                while self.read(0.2) and len(self.seen) > seen:
                    seen = len(self.seen)
                break
            assert time.monotonic() < end, f"it does not leave: {self.plain[-500:]!r}"
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status


class Case(unittest.TestCase):
    """With a directory that everybody may use, gone afterwards."""

    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="retort-cli-")
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        return path

    def read(self, *names):
        with open(self.path(*names), "rb") as f:
            return f.read()

    def assertStatus(self, done, status):
        self.assertEqual(done.status, status, f"{done}")
