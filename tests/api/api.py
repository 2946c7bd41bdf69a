"""Ways to drive a server from outside: the child process, a client that checks each answer against the
description, a reader of events, and raw bytes."""
import contextlib
import datetime
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

import spec
from processes import alive, descendants  # noqa: F401, for the tests

RETORT = "build/retort"  # run.py sets these
USER = None
SANITIZED = False  # memory means nothing then
PATIENCE = 120  # seconds: more than anything here takes on a slow machine
SOON = 30  # seconds: what is to happen at once has happened, and what waits for a limit has not
NOBODY = 65534


# ---- the server ----

def command(*args):
    """retort ARGS, as the user whom the tests are for."""
    if USER is None:
        return [RETORT, *args]
    return ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", RETORT, *args]


PRELOAD = "preload = numpy pandas matplotlib.pyplot\n"  # for a server of many tests: what they use


def plain_environment():
    """What the tests' own environment must not decide."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "RETORT_FAULT", "PYTHONPATH", "NOTIFY_SOCKET")}
    return {**env, "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}


def run(*args, timeout=PATIENCE):
    return subprocess.run(command(*args), capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env=plain_environment())


def new_directory(prefix="retort-api-"):
    path = tempfile.mkdtemp(prefix=prefix)
    if USER is not None:
        os.chown(path, USER, USER)
    return path


class Server:
    """retort serve, with a state of its own unless one is given."""

    def __init__(self, config="", state=None, listen="127.0.0.1:0", args=(), token=None, descriptors=None):
        self.own_state = state is None
        self.state = state or new_directory()
        self.directory = new_directory()
        self.log_path = os.path.join(self.directory, "log")
        line = ["serve", "--listen", listen, "--state", self.state]
        if "preload" not in config:
            line += ["--set", "preload=none"]  # what is imported beforehand takes seconds of a processor
        if config:
            path = os.path.join(self.directory, "config")
            with open(path, "w") as f:
                f.write(config)
            os.chmod(path, 0o644)
            line += ["--config", path]
        self.process = subprocess.Popen(command(*line, *args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=open(self.log_path, "wb"), env=plain_environment(),
                                        preexec_fn=descriptors and (lambda: resource.setrlimit(
                                            resource.RLIMIT_NOFILE, (descriptors, descriptors))))
        try:
            self.ready = self.first_line()
        except Exception:
            self.process.kill()
            self.process.wait()
            raise
        found = re.fullmatch(r"retort: ready at http://(.+):(\d+)/(?:\?token=(\S+))?\n", self.ready)
        assert found, f"not a ready line: {self.ready!r}\n{self.log}"
        self.address, self.port = found[1].strip("[]"), int(found[2])
        self.token = token or found[3]
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def first_line(self):
        got = []
        reader = threading.Thread(target=lambda: got.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(PATIENCE)
        assert got, f"no ready line within {PATIENCE} s: {self.log}"
        assert got[0], f"it ended with status {self.process.wait(PATIENCE)}: {self.log}"
        return got[0].decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def log(self):
        with open(self.log_path, errors="surrogateescape") as f:
            return f.read()

    def end(self, signal_number, seconds=PATIENCE):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        return self.process.wait(seconds)

    def stop(self):
        """End it, and leave nothing of it."""
        try:
            self.end(signal.SIGTERM)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process.stdout.close()
            log = self.log
            shutil.rmtree(self.directory, ignore_errors=True)
            if self.own_state:
                shutil.rmtree(self.state, ignore_errors=True)
        assert "Sanitizer" not in log and "runtime error:" not in log, log[-10000:]

    def client(self, token=None):
        return Client(self, token or self.token)

    def stranger(self):
        """A client without token."""
        return Client(self, None)

    def new_token(self, name, *flags):
        done = run("token", "new", name, "--state", self.state, *flags)
        assert done.returncode == 0, done
        return done.stdout.strip()

    def connect(self, timeout=PATIENCE):
        return socket.create_connection((self.address, self.port), timeout=timeout)

    def own_processes(self):
        """retort's own processes, boxes and zygotes left out."""
        for pid in {self.process.pid} | descendants(self.process.pid):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe").split(" (deleted)")[0] == RETORT:
                    yield pid

    def peak_memory(self):
        """The most bytes that one of its own processes has ever had."""
        peaks = [0]
        for pid in self.own_processes():
            with contextlib.suppress(OSError, TypeError), open(f"/proc/{pid}/status") as f:
                peaks.append(int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) << 10)
        return max(peaks)

    def cpu_seconds(self):
        """What its own processes have used."""
        ticks = 0
        for pid in self.own_processes():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as f:
                ticks += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.own_processes())


_shared = None


def shared():
    """One for all tests of a module that ask for nothing special."""
    global _shared
    if _shared is None:
        _shared = Server(PRELOAD)
    assert _shared.process.poll() is None, f"the server is gone: {_shared.log[-3000:]}"
    return _shared


def end_shared():
    if _shared is not None:
        _shared.stop()


def wait_until(condition, seconds=PATIENCE, step=0.05):
    """What it returned last: true, unless time is up."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(step)
    return found


# ---- calls ----

class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """Of an error."""
        return self.json["error"]["code"]

    def __repr__(self):
        return f"{self.status} {dict(self.headers.items())} {self.body[:2000]!r}"


def path_of(*parts):
    """A path whose parts are any text or bytes; slashes stay."""
    return "/" + "/".join(urllib.parse.quote(part, safe="/") for part in parts)


class Client:
    """One connection for each call. Every answer is held against the description."""

    def __init__(self, server, token):
        self.server, self.token = server, token
        self.timeout = PATIENCE

    def headers(self, more):
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        own.update(more or {})
        return {k: v for k, v in own.items() if v is not None}

    def send(self, method, path, body=None, headers=None, **json_members):
        """The connection and its response, not read yet. Members given by name, or `body` when it is not bytes, are
        sent as JSON."""
        if json_members:
            body = json_members
        headers = self.headers(headers)
        if body is not None and not isinstance(body, bytes) and not hasattr(body, "__next__"):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.server.address, self.server.port, timeout=self.timeout)
        try:
            connection.request(method, path, body, headers, encode_chunked=hasattr(body, "__next__"))
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while we were still sending: the answer says why
        return connection, connection.getresponse()

    def raw(self, method, path, *lines, body=b""):
        """A request as bytes."""
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.token}", *lines]
        return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body

    def call(self, method, path, body=None, headers=None, **json_members):
        connection, response = self.send(method, path, body, headers, **json_members)
        try:
            answer = Answer(response.status, response.headers, response.read())
        finally:
            connection.close()
        spec.check(method, path, answer)
        return answer

    def get(self, path, **options):
        return self.call("GET", path, **options)

    def post(self, path, body=None, headers=None, **json_members):
        return self.call("POST", path, body, headers, **json_members)

    def put(self, path, body=b"", **options):
        return self.call("PUT", path, body, **options)

    def delete(self, path, **options):
        return self.call("DELETE", path, **options)

    def stream(self, path, **json_members):
        return Stream(self, path, json_members)

    def session(self, **asked):
        answer = self.post("/v1/sessions", asked or None)
        assert answer.status == 201, answer
        return Session(self, answer.json["id"])

    def metrics(self):
        """{'name{label="x"}': number}"""
        answer = self.get("/metrics")
        assert answer.status == 200, answer
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in answer.body.decode().splitlines() if line and not line.startswith("#")}


class Session:
    """Calls on one session."""

    def __init__(self, client, sid):
        self.client, self.id = client, sid
        self.path = f"/v1/sessions/{sid}"
        self.holds = 0

    def info(self):
        answer = self.client.get(self.path)
        assert answer.status == 200, answer
        return answer.json

    def cell(self, code, **more):
        """A cell that is answered."""
        answer = self.client.post(self.path + "/cells", code=code, **more)
        assert answer.status == 200, answer
        return answer.json

    def stream(self, code, **more):
        return self.client.stream(self.path + "/cells", code=code, **more)

    def in_background(self, code, **more):
        return Later(lambda: self.client.post(self.path + "/cells", code=code, **more))

    def file(self, name):
        return self.path + path_of("files", name)

    def put(self, name, data=b"", **options):
        return self.client.put(self.file(name), data, **options)

    def get(self, name, **options):
        return self.client.get(self.file(name), **options)

    def files(self):
        answer = self.client.get(self.path + "/files?limit=500")
        assert answer.status == 200, answer
        return [f["path"] for f in answer.json["data"]]

    def begin(self, code, first="", **more):
        """A cell in the background that has begun, and done what comes first; it says so in a file."""
        later = self.in_background(f"{first}\nopen('begun', 'w').close()\n{code}", **more)
        assert wait_until(lambda: later.over or self.get("begun").status == 200), "it does not begin"
        return later

    def hold(self, then=""):
        """A cell that goes on until it is released."""
        self.holds += 1
        return self.begin(f"import os, time\nwhile not os.path.exists('go{self.holds}'): time.sleep(0.02)\n"
                          f"os.unlink('begun')\n{then}", timeout="none")

    def release(self):
        answer = self.put(f"go{self.holds}")
        assert answer.status == 201, answer

    def delete(self):
        answer = self.client.delete(self.path)
        assert answer.status in (204, 404), answer


class Later:
    """Something that goes on in a thread."""

    def __init__(self, work):
        self.thread = threading.Thread(target=self.go, args=(work,), daemon=True)
        self.value = self.error = None
        self.thread.start()

    def go(self, work):
        try:
            self.value = work()
        except BaseException as e:
            self.error = e
        self.ended = time.monotonic()

    @property
    def over(self):
        return not self.thread.is_alive()

    def result(self, seconds=PATIENCE):
        self.thread.join(seconds)
        assert self.over, "it is not answered"
        if self.error:
            raise self.error
        return self.value


class Stream:
    """A cell as events: iterate over (name, data). A call that is refused has no events but an `answer`."""

    def __init__(self, client, path, body):
        self.connection, self.response = client.send("POST", path, body, {"Accept": "text/event-stream"})
        self.began = time.monotonic()
        self.comments = []  # and when they came
        self.times = []  # of the events
        self.events = []
        self.over = False
        self.answer = None
        self.path = path
        if self.response.status != 200:
            self.answer = Answer(self.response.status, self.response.headers, self.response.read())
            spec.check("POST", path, self.answer)
            self.over = True
        else:
            spec.check_stream(path, self.response)

    def __iter__(self):
        return self

    def __next__(self):
        name, data = None, []
        while True:
            line = self.response.readline()
            if not line:
                assert name is None and not data, "it stops within an event"
                self.over = True
                raise StopIteration
            assert line.endswith(b"\n"), f"it stops within a line: {line!r}"
            line = line.decode().rstrip("\r\n")  # strictly UTF-8
            if line.startswith(":"):
                self.comments.append(time.monotonic() - self.began)
            elif line:
                field, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                assert field in ("event", "data"), f"a line that was not promised: {line!r}"
                if field == "event":
                    name = value
                else:
                    data.append(value)
            elif name is not None or data:
                break
        event = (name, json.loads("\n".join(data)))
        spec.check_event(*event)
        self.times.append(time.monotonic() - self.began)
        self.events.append(event)
        return event

    def until(self, name, text=None):
        for event in self:
            if event[0] == name and (text is None or text in event[1]["text"]):
                return event[1]
        raise AssertionError(f"ended without {name} {text}: {self.events}")

    def cell(self):
        """Read it all; the cell at its end."""
        for _ in self:
            pass
        assert self.events and self.events[-1][0] == "cell", f"no cell at the end: {self.events[-3:]}"
        assert [name for name, _ in self.events].count("cell") == 1, "more than one cell"
        return self.events[-1][1]

    def close(self):
        """Go away without a word."""
        if self.connection.sock:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.response.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.close()


# ---- raw bytes ----

# Debian 12's libmicrohttpd writes the head of its own refusals twice, and closes.
TWICE = re.compile(rb"(HTTP/1\.1 4.*?\r\n\r\n)HTTP/1\.1 4", re.S)


def whole_answers(data):
    """How many there are at its beginning."""
    count = 0
    while True:
        head, separator, data = data.partition(b"\r\n\r\n")
        found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
        length = int(found[1]) if found else 0
        if not separator or len(data) < length:
            return count
        count += not re.match(rb"HTTP/1\.[01] 100 ", head)
        data = data[length:]


def receive(sock, seconds=PATIENCE, answers=None):
    """All that comes until the other side closes, or so many answers are there, or time is up; and whether it closed."""
    got, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if answers and not TWICE.match(got) and whole_answers(got) >= answers:
            break
        sock.settimeout(left)
        try:
            piece = sock.recv(1 << 16)
        except (TimeoutError, socket.timeout):
            break
        except OSError:
            return got, True
        if not piece:
            return got, True
        got += piece
    return got, False


def split_responses(data):
    """[(status, headers in lower case, body)] of what a connection has sent."""
    found = []
    while data:
        head, separator, data = data.partition(b"\r\n\r\n")
        assert separator, f"half an answer: {head[:500]!r}"
        lines = head.decode("latin-1").split("\r\n")
        status = int(re.match(r"HTTP/1\.[01] (\d{3})\b", lines[0])[1])
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        if status == 100:
            continue
        length = int(headers.get("content-length", 0))
        found.append((status, headers, data[:length]))
        data = data[length:]
    return found


class Case(unittest.TestCase):
    """With the module's server, a client of it, and sessions that end with the test."""

    maxDiff = None
    config = None  # of a server for this class alone

    @classmethod
    def setUpClass(cls):
        if cls.config is not None:
            cls.server = Server(cls.config)
            cls.addClassCleanup(cls.server.stop)
        else:
            cls.server = shared()
        cls.client = cls.server.client()

    def start(self, *args, **options):
        """A server for this test alone."""
        server = Server(*args, **options)
        self.addCleanup(server.stop)
        return server

    def session(self, client=None, **asked):
        session = (client or self.client).session(**asked)
        self.addCleanup(session.delete)
        return session

    def directory(self):
        path = new_directory()
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        return path

    def assertError(self, answer, status, code=None, text=None):
        self.assertEqual(answer.status, status, answer)
        if code:
            self.assertEqual(answer.code, code, answer)
        message = answer.json["error"]["message"]
        self.assertRegex(message, r"^\S.{5,}", "not a sentence")
        if text:
            self.assertIn(text, message)
        return message

    def assertAnswers(self, server=None):
        """It is still there."""
        server = server or self.server
        self.assertIsNone(server.process.poll(), server.log[-3000:])
        self.assertEqual(server.client().get("/healthz").status, 200)


def text(cell, kind="stdout"):
    return "".join(o["text"] for o in cell["outputs"] if o["type"] == kind)


def result(cell):
    return next((o["data"].get("text/plain") for o in cell["outputs"] if o["type"] == "result"), None)


def moment(stamp):
    """A time of the API's as seconds since 1970."""
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
