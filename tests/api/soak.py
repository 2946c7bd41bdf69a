#!/usr/bin/python3
"""An hour's worth of everything, compressed: sessions made and ended, cells that print, fail, hang, eat memory and
crash, clients that leave in the middle, files in and out, one-shot runs, slow and broken clients, all at once.

    tests/api/soak.py [--seconds 180] [--clients 10] [--seed N] [--retort PATH] [--user]

The first part of the time warms up. Then all sessions are ended and everything is counted: memory, descriptors,
processes, cgroups, mounts. After the second part the same is counted again, and has to be where it was. Every answer
has to be the right one, and the only answers that may say "not now" are the documented ones.
The last line is `N passed, N failed`.
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

import argparse
import base64
import collections
import contextlib
import io
import random
import re
import socket
import threading
import time
import traceback
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../common")]
import api

CONFIG = """
max_sessions = 40
max_queue = 4
max_runs = 8
max_waiting = 32
memory = 256m
disk = 32m
timeout = 120
log_requests = no
"""
LATER = {  # who comes too often, or too many at once
    (429, "too_many_cells"), (429, "too_many_uploads"), (503, "too_many_sessions"), (503, "busy"),
}
MEMORY_MARGIN = 16 << 20  # what an allocator may keep; leaks are for the sanitizers to find
SETTLE_S = 120


class NotNow(Exception):
    pass


class Wrong(Exception):
    pass


class Client(api.Client):
    """Counts what it is answered."""

    statuses = collections.Counter()

    def call(self, *args, **options):
        answer = super().call(*args, **options)
        self.statuses[answer.status] += 1
        if answer.status >= 400 and (answer.status, answer.code) in LATER:
            raise NotNow(answer.code)
        if answer.status >= 500:
            raise Wrong(f"{args[:2]}: {answer}")
        return answer


def want(condition, what):
    if not condition:
        raise Wrong(what)


# ---- one client ----

class Visitor(threading.Thread):
    """Does one thing after the other, at random, mostly in a session that it keeps for a while."""

    def __init__(self, soak, number, until):
        super().__init__(daemon=True)
        self.soak, self.until = soak, until
        self.random = random.Random(f"{soak.options.seed}-{number}-{until}")
        self.client = Client(soak.server, soak.server.token)
        self.session = None

    def run(self):
        names, weights = zip(*DEEDS.items())
        while time.monotonic() < self.until:
            deed = self.random.choices(names, weights)[0]
            try:
                if self.random.random() < 0.15:
                    self.leave()
                deed(self)
                self.soak.count[deed.__name__] += 1
            except NotNow as e:
                self.soak.later[str(e)] += 1
                time.sleep(0.05)
            except Exception as e:
                self.soak.fault(f"{deed.__name__}: {type(e).__name__}: {e}", traceback.format_exc())
                self.session = None
        self.leave()

    def here(self):
        """A session to do something in."""
        if not self.session:
            self.session = self.new()
        return self.session

    def new(self, **limits):
        answer = self.client.post("/v1/sessions", limits=limits)
        want(answer.status == 201, answer)
        return api.Session(self.client, answer.json["id"])

    def leave(self):
        session, self.session = self.session, None
        if session:
            answer = self.client.delete(session.path)
            want(answer.status in (204, 404), answer)

    def cell(self, code, status, session=None, **more):
        cell = (session or self.here()).cell(code, **more)
        want(cell["status"] == status, f"{code!r} is {cell['status']}, not {status}: {cell}")
        return cell

    def connect(self, request):
        sock = self.soak.server.connect()
        sock.sendall(request)
        return sock

    # ---- cells ----

    def print_(self):
        n = self.random.randrange(1, 2000)
        cell = self.cell(f"for i in range({n}): print(i)", "ok")
        want(api.text(cell) == "".join(f"{i}\n" for i in range(n)), "other text came than was printed")

    def result(self):
        want(api.result(self.cell("6 * 7", "ok")) == "42", "6 * 7")

    def much_output(self):
        cell = self.cell("print('x' * 3_000_000)", "ok")
        want(cell["truncated"]["stdout_bytes"] > 1_000_000, "nothing was dropped")

    def picture(self):
        code = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()"
        want("image/png" in str(self.cell(code, "ok")["outputs"]), "there is no picture")

    def fail(self):
        want(self.cell("1/0", "error")["error"]["name"] == "ZeroDivisionError", "another error")

    def time_out(self):
        cell = self.cell("print('before', flush=True)\nwhile True: pass", "limit", timeout=1.5)  # on a busy machine it begins late
        want(cell["limit"]["kind"] == "wall" and api.text(cell) == "before\n", cell)

    def fill_disk(self):
        self.cell("open('full', 'wb').write(bytes(64 << 20))", "error")
        self.cell("import os; os.unlink('full')", "ok")

    def out_of_memory(self):
        session = self.new(memory="128m")
        cell = session.cell("x = b'x' * (1 << 30)")
        want(cell["status"] in ("limit", "error"), cell)
        self.end(session)

    def crash(self):
        session = self.new()
        code = self.random.choice(["import os; os._exit(3)", "import ctypes; ctypes.string_at(0)",
                                   "import os; os.kill(os.getpid(), 9)"])
        cell = session.cell(code)
        want(cell["status"] in ("crashed", "error"), cell)
        want(self.client.get(session.path + "/cells/1").status == 200, "it is not in the journal")
        self.end(session)

    def interrupt(self):
        session = self.here()
        later = session.in_background("import time\nfor _ in range(100): time.sleep(0.1)")
        want(api.wait_until(lambda: later.over or session.info()["status"] == "busy"), "it does not begin")
        while not later.over:  # one that comes before the cell has begun is for nobody
            self.client.post(session.path + "/interrupt")
            time.sleep(0.1)
        answer = later.result()
        want(answer.status == 200 and answer.json["status"] == "interrupted", answer)

    def queue(self):
        session = self.here()
        cells = [session.in_background(f"import time; time.sleep(0.02); {i}") for i in range(7)]
        got = []
        for i, later in enumerate(cells):
            with contextlib.suppress(NotNow):
                got.append((i, later.result()))
        want(len(got) >= 4, f"{len(got)} of 7 were taken")
        for i, answer in got:
            want(answer.status == 200 and api.result(answer.json) == str(i), answer)

    def end_while_busy(self):
        session = self.new()
        cells = [session.in_background("import time; time.sleep(100)") for _ in range(3)]
        api.wait_until(lambda: session.info()["status"] == "busy" or cells[0].over)
        self.end(session)
        for later in cells:
            answer = later.result()
            want(answer.status in (200, 410, 404), answer)

    def end(self, session):
        answer = self.client.delete(session.path)
        want(answer.status in (204, 404), answer)

    # ---- streams, and clients that leave ----

    def stream(self):
        with self.here().stream("import time\nfor i in range(5): print(i); time.sleep(0.01)") as events:
            want(api.text(events.cell()) == "0\n1\n2\n3\n4\n", events.events)

    def leave_stream(self):
        with self.here().stream("print('begun')\nimport time; time.sleep(100)") as events:
            events.until("stdout", "begun")
        self.next_is_soon()

    def leave_cell(self):
        session = self.here()
        body = b'{"code": "import time; time.sleep(100)"}'
        request = self.client.raw("POST", session.path + "/cells", f"Content-Length: {len(body)}", body=body)
        with self.connect(request):
            time.sleep(self.random.random() / 5)
        self.next_is_soon()

    def next_is_soon(self):
        """The cell of one who left is interrupted: the next one does not wait for its end."""
        begun = time.monotonic()
        self.result()
        want(time.monotonic() - begun < 50, "the cell of a client that left went on")

    def slow_reader(self):
        body = b'{"code": "for i in range(20000): print(i)"}'
        request = self.client.raw("POST", self.here().path + "/cells", "Accept: text/event-stream",
                                  f"Content-Length: {len(body)}", body=body)
        with self.connect(request) as sock:
            for _ in range(self.random.randrange(20)):
                want(sock.recv(1), "it was closed")
                time.sleep(0.02)

    def slow_writer(self):
        request = self.client.raw("POST", "/v1/run", "Content-Length: 1000", body=b'{"code": "' + b" " * 100)
        with self.connect(b"") as sock:
            for i in range(self.random.randrange(len(request))):
                sock.sendall(request[i:i + 1])
                time.sleep(0.002)

    # ---- files ----

    def contents(self):
        return self.random.randbytes(self.random.choice([0, 1, 1000, 70_000, 3_000_000]))

    def put_and_get(self):
        session, data = self.here(), self.contents()
        name = self.random.choice(["a", "a b", "sub/dir/ü", "'\""])
        answer = session.put(name, data)
        want(answer.status in (200, 201) and answer.json["size"] == len(data), answer)
        want(session.get(name).body == data, "another file came back")
        part = session.get(name, headers={"Range": "bytes=1-100"})
        want(part.body == data[1:101] if len(data) > 1 else part.status in (200, 416), part)
        want(self.client.delete(session.file(name)).status == 204, "it cannot be deleted")

    def form(self):
        session, data = self.here(), self.contents()
        body = b"".join(b'--b\r\nContent-Disposition: form-data; name="f"; filename="f%d"\r\n\r\n%s\r\n' % (i, data)
                        for i in range(3)) + b"--b--\r\n"
        answer = self.client.post(session.path + "/files", body,
                                  {"Content-Type": "multipart/form-data; boundary=b"})
        want(answer.status == 201, answer)
        want(session.get("f2").body == data, "another file came back")
        self.cell("import os\nfor i in range(3): os.unlink(f'f{i}')", "ok")

    def zip(self):
        session = self.here()
        self.cell("for i in range(20): open(f'z{i}', 'w').write('z' * 10000)", "ok")
        answer = self.client.get(session.path + "/files?archive=zip")
        want(answer.status == 200, answer)
        archive = zipfile.ZipFile(io.BytesIO(answer.body))
        want(archive.testzip() is None and "z19" in archive.namelist(), archive.namelist())
        want("z0" in session.files(), "it is not in the list")

    def leave_upload(self):
        session = self.here()
        request = self.client.raw("PUT", session.file("half"), "Content-Length: 9000000")
        with self.connect(request) as sock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(self.random.randbytes(self.random.randrange(1 << 20)))  # it may be refused
        want(session.get("half").status == 404, "half an upload is there")

    def leave_download(self):
        session = self.here()
        answer = session.put("big", bytes(8 << 20))
        want(answer.status in (200, 201), answer)
        path = self.random.choice([session.file("big"), session.path + "/files?archive=zip"])
        with self.connect(self.client.raw("GET", path)) as sock:
            sock.recv(self.random.randrange(1, 100_000))
        want(self.client.delete(session.file("big")).status == 204, "it cannot be deleted")

    def end_in_transfer(self):
        session = self.new()
        session.put("big", bytes(8 << 20))
        with self.connect(self.client.raw("PUT", session.file("new"), "Content-Length: 9000000")) as up, \
                self.connect(self.client.raw("GET", session.file("big"))) as down:
            up.sendall(bytes(self.random.randrange(1 << 20)))
            down.recv(1000)
            self.end(session)

    def over_disk(self):
        answer = self.here().put("over", bytes(33 << 20))
        want(answer.status == 413, answer)

    # ---- one-shot runs, and looking ----

    def run_once(self):
        data = self.contents()[:100_000]
        answer = self.client.post("/v1/run", code="len(open('f', 'rb').read())",
                                  files={"f": base64.b64encode(data).decode()})
        want(answer.status == 200 and api.result(answer.json) == str(len(data)), answer)

    def run_badly(self):
        code = self.random.choice(["1/0", "import os; os._exit(1)", "while True: pass", "x = b'x' * (1 << 30)"])
        answer = self.client.post("/v1/run", code=code, timeout=0.3)
        want(answer.status == 200 and answer.json["status"] != "ok", answer)

    def leave_run(self):
        body = b'{"code": "import time; time.sleep(100)"}'
        with self.connect(self.client.raw("POST", "/v1/run", f"Content-Length: {len(body)}", body=body)):
            time.sleep(self.random.random() / 10)

    def leave_new(self):
        body = b'{"idle_timeout": 2}'  # whoever does not hear of his session cannot end it
        with self.connect(self.client.raw("POST", "/v1/sessions", f"Content-Length: {len(body)}", body=body)):
            time.sleep(self.random.random() / 100)

    def look(self):
        session = self.here()
        self.cell("answer = 42", "ok")
        answer = self.client.get(session.path + "/variables")
        want(answer.status == 200, answer)
        want([v["text"] for v in answer.json["data"] if v["name"] == "answer"] == ["42"], answer)
        for path in ("", "/cells", "/notebook", "/files"):
            answer = self.client.get(session.path + path)
            want(answer.status == 200, answer)
        for path in ("/v1/sessions", "/v1/sessions?status=ended&limit=3", "/metrics", "/healthz", "/openapi.json"):
            answer = self.client.get(path)
            want(answer.status == 200, answer)

    def bad_request(self):
        method, path, body, status = self.random.choice([
            ("POST", "/v1/run", b"{", 400),
            ("POST", "/v1/run", b'{"code": 1}', 400),
            ("POST", "/v1/run", b"[" * 50_000, 400),
            ("POST", "/v1/run", b'{"code": "\xff"}', 400),
            ("POST", "/v1/run", b'{"code": "1", "files": {"../x": ""}}', 400),
            ("POST", "/v1/sessions", b'{"limits": {"memory": "lots"}}', 400),
            ("POST", "/v1/sessions/none/cells", b'{"code": "1"}', 404),
            ("PUT", "/v1/sessions/none/files/x", b"x" * 100_000, 404),
            ("GET", "/v1/nothing", None, 404),
        ])
        answer = self.client.call(method, path, body)
        want(answer.status == status, answer)

    def broken_request(self):
        request = self.random.choice([
            b"\x00" * 100, b"G", b"", b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
            b"POST /v1/run HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        ])
        with self.soak.server.connect() as sock, contextlib.suppress(OSError):
            sock.sendall(request)
            sock.shutdown(socket.SHUT_WR)
            answer, closed = api.receive(sock)
            want(closed, f"{request[:50]} stays open")
            want(not answer or re.match(rb"HTTP/1.[01] 4", answer), answer[:300])


V = Visitor
DEEDS = {  # and how often
    V.print_: 6, V.result: 6, V.much_output: 1, V.picture: 1, V.fail: 4, V.time_out: 2, V.fill_disk: 1,
    V.out_of_memory: 1, V.crash: 2, V.interrupt: 2, V.queue: 2, V.end_while_busy: 2,
    V.stream: 4, V.leave_stream: 2, V.leave_cell: 2, V.slow_reader: 2, V.slow_writer: 2,
    V.put_and_get: 4, V.form: 2, V.zip: 1, V.leave_upload: 2, V.leave_download: 2, V.end_in_transfer: 1,
    V.over_disk: 1, V.run_once: 4, V.run_badly: 2, V.leave_run: 2, V.leave_new: 2, V.look: 3, V.bad_request: 4,
    V.broken_request: 2,
}


# ---- what may be left ----

def status_bytes(pid, name):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"{name}:\s+(\d+)", f.read())[1]) << 10


def descriptors(pid):
    """Those of the database left out: it is opened a second time when its log has grown for a while."""
    n = 0
    with contextlib.suppress(OSError):  # not ours to see, or gone
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                n += "/retort.db" not in os.readlink(f"/proc/{pid}/fd/{name}")
    return n


def lines(path):
    try:
        with open(path) as f:
            return len(f.readlines())
    except OSError:
        return 0


def cgroups(pid):
    """Of this retort: their directory is named after the process that made it."""
    return sum(any(part.startswith(f"{pid}-") for part in path.split("/")) for path, _, _ in os.walk("/sys/fs/cgroup"))


class Soak:
    def __init__(self, options):
        self.options = options
        self.count, self.later = collections.Counter(), collections.Counter()
        self.faults = collections.OrderedDict()
        self.server = api.Server(CONFIG)
        self.gate = self.server.process.pid

    def fault(self, what, where):
        if what not in self.faults:
            print(f"FAULT {what[:1500]}\n{where[-1500:]}", flush=True)
        self.faults[what] = self.faults.get(what, 0) + 1

    def load(self, seconds):
        until = time.monotonic() + seconds
        visitors = [Visitor(self, i, until) for i in range(self.options.clients)]
        for v in visitors:
            v.start()
        for v in visitors:
            v.join(seconds + 120)
            if v.is_alive():
                self.fault("a client hangs", "".join(traceback.format_stack(sys._current_frames()[v.ident])))

    def now(self):
        below = api.alive(api.descendants(self.gate))
        children = [p for p in below if self.parent(p) == self.gate]
        return {
            "processes": len(below),
            "cgroups": cgroups(self.gate),
            "the gate's descriptors": descriptors(self.gate),
            "the keeper's descriptors": sum(map(descriptors, children)),
            "the keeper's mounts": sum(lines(f"/proc/{p}/mountinfo") for p in children),
            "the gate's memory": status_bytes(self.gate, "VmRSS"),
        }

    @staticmethod
    def parent(pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])

    def settled(self, at_most=None):
        """When all sessions have ended and nothing changes any more; or when it is not more than that."""
        client = api.Client(self.server, self.server.token)
        end, same, last = time.monotonic() + SETTLE_S, 0, None
        while time.monotonic() < end and same < 8:
            left = client.get("/v1/sessions?limit=500").json["data"]
            for session in left:
                client.delete("/v1/sessions/" + session["id"])
            found = self.now()
            counts = {k: v for k, v in found.items() if k != "the gate's memory"}
            same = same + 1 if counts == last and not left else 0
            last = counts
            if at_most and not left and all(v <= at_most[k] for k, v in counts.items()):
                break
            time.sleep(0.25)
        return found

    def go(self):
        warm = max(8, self.options.seconds / 4)
        self.load(warm)
        before = self.settled()
        self.load(max(1, self.options.seconds - warm))
        after = self.settled(before)
        results = [
            (f"{sum(self.count.values())} deeds, every answer right", not self.faults),
            ("it is still there, and ends with status 0", self.ends_well()),
        ]
        for what, n in before.items():
            margin = MEMORY_MARGIN if "memory" in what else 0
            results.append((f"{what}: {n:,} before, {after[what]:,} afterwards", after[what] <= n + margin))
        self.tell(results)
        return all(good for _, good in results)

    def ends_well(self):
        try:
            self.server.stop()
        except AssertionError as e:
            print(e)
            return False
        return self.server.process.returncode == 0

    def tell(self, results):
        print("deeds:", ", ".join(f"{name} {n}" for name, n in sorted(self.count.items())))
        print("answers:", ", ".join(f"{status}: {n}" for status, n in sorted(Client.statuses.items())))
        print("not now:", ", ".join(f"{code} {n}" for code, n in sorted(self.later.items())) or "never")
        for what, n in self.faults.items():
            print(f"  {n} times: {what[:200]}")
        for what, good in results:
            print("ok  " if good else "FAIL", what)
        passed = sum(good for _, good in results)
        print(f"{passed} passed, {len(results) - passed} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--seed", default=str(random.randrange(1 << 32)))
    parser.add_argument("--retort", default="build/retort")
    parser.add_argument("--user", action="store_true", help="as an ordinary user")
    options = parser.parse_args()
    api.RETORT = os.path.realpath(options.retort)
    api.USER = api.NOBODY if options.user else None
    print(f"seed {options.seed}", flush=True)
    sys.exit(0 if Soak(options).go() else 1)


if __name__ == "__main__":
    main()
