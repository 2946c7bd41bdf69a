"""Slow clients hurt nobody, and large bodies cost no memory."""
import base64
import contextlib
import itertools
import json
import os
import socket
import threading
import time

import api

CLIENTS = 200


@contextlib.contextmanager
def every_second(socks, act):
    """Act on each of them, second by second, until the block is over; then they are closed."""
    stop = threading.Event()

    def go():
        while not stop.is_set():
            for sock in socks:
                with contextlib.suppress(OSError):
                    act(sock)
            stop.wait(1)
    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for sock in socks:
            sock.close()


class Slow(api.Case):
    def assertSwift(self, seconds=4):
        """Work of others goes on for so long, and nobody waits for the slow ones, who would take hours."""
        session, end = self.client.session(), time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            self.assertEqual(session.cell("1 + 1")["status"], "ok")
            self.assertEqual(session.put("f", b"x" * 1000).status // 100, 2)
            self.assertEqual(session.get("f").status, 200)
            self.assertLess(time.monotonic() - began, api.SOON)
            time.sleep(0.1)
        session.delete()

    def connected(self, request=lambda i: b"", buffer=None):
        socks = []
        for i in range(CLIENTS):
            sock = socket.socket()
            if buffer:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            sock.connect((self.server.address, self.server.port))
            sock.sendall(request(i))
            socks.append(sock)
        return socks

    def test_writers_of_headers(self):
        with every_second(self.connected(lambda i: b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "), lambda s: s.send(b"x")):
            self.assertSwift()
        self.assertAnswers()

    def test_writers_of_bodies(self):
        session = self.session()
        with every_second(self.connected(lambda i: self.client.raw("PUT", session.file(f"slow{i}"), "Content-Length: 100000")),
                          lambda s: s.send(b"x")):
            self.assertSwift()
        self.assertTrue(api.wait_until(lambda: session.files() == []))
        with every_second(self.connected(lambda i: self.client.raw("POST", "/v1/run", "Content-Length: 100000")),
                          lambda s: s.send(b" ")):
            self.assertSwift()

    def test_readers(self):
        session = self.session()
        session.cell("open('big', 'wb').write(bytes(30 << 20))")
        with every_second(self.connected(lambda i: self.client.raw("GET", session.file("big")), 4096), lambda s: s.recv(1)):
            self.assertSwift()
        if not api.SANITIZED:
            self.assertLess(self.server.peak_memory(), 250 << 20)

    def test_readers_of_streams(self):
        sessions = [self.session() for _ in range(CLIENTS // 10)]
        for session in sessions:
            session.cell("import os\nopen('big', 'wb').write(os.urandom(4 << 20))")
        with every_second(self.connected(lambda i: self.client.raw("GET", sessions[i % len(sessions)].path + "/files?archive=zip"), 4096),
                          lambda s: s.recv(1)):
            self.assertSwift()

    def test_connections_that_say_nothing(self):
        socks = [sock for _ in range(3) for sock in self.connected()]
        self.assertSwift(2)
        for sock in socks:
            sock.close()


class Endless(api.Case):
    def test_what_never_comes_to_its_end(self):
        """A byte a second is not silence, but no request either. An upload may take as long as it does."""
        session = self.session()
        sent = {"headers": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ",
                "body": self.client.raw("POST", "/v1/run", "Content-Length: 100000"),
                "unwanted body": self.client.raw("GET", "/v1/sessions", "Content-Length: 100000"),
                "upload": self.client.raw("PUT", session.file("f"), "Content-Length: 100000")}
        socks, ended = {}, {}
        for name, data in sent.items():
            socks[name] = self.server.connect()
            socks[name].sendall(data)
            socks[name].settimeout(0)
            self.addCleanup(socks[name].close)
        began = time.monotonic()
        while len(ended) < 3 and time.monotonic() - began < api.PATIENCE:
            for name, sock in socks.items():
                try:
                    sock.send(b" ")
                    over = sock.recv(1000) == b""
                except BlockingIOError:
                    over = False
                except OSError:
                    over = True
                if over:
                    ended.setdefault(name, time.monotonic() - began)
            time.sleep(0.5)
        self.assertEqual(set(ended), {"headers", "body", "unwanted body"}, ended)
        self.assertGreater(min(ended.values()), 25)


class TooManyConnections(api.Case):
    config = "max_connections = 20\n"

    def test_they_go_and_it_answers(self):
        socks = [self.server.connect() for _ in range(60)]
        time.sleep(0.5)
        for sock in socks:
            sock.close()
        self.assertTrue(api.wait_until(self.healthy))

    def healthy(self):
        try:
            return self.client.get("/healthz").status == 200
        except OSError:
            return False


class Memory(api.Case):
    config = ""
    SIZE = 300 << 20

    def pieces(self):
        piece = os.urandom(1 << 20)
        for _ in range(self.SIZE >> 20):
            yield piece

    def test_large_bodies_pass_through(self):
        session = self.session(limits={"disk": "700m"})
        session.cell("1")
        before = self.server.peak_memory()
        connection, response = self.client.send("PUT", session.file("up"), self.pieces())
        self.assertEqual(response.status, 201, response.read())
        response.read()
        connection.close()
        self.assertEqual(api.result(session.cell("import os; os.path.getsize('up')")), str(self.SIZE))
        connection, response = self.client.send("GET", session.file("up"))
        got = 0
        while piece := response.read(1 << 20):
            got += len(piece)
        connection.close()
        self.assertEqual(got, self.SIZE)
        connection, response = self.client.send("GET", session.path + "/files?archive=zip")
        got = 0
        while piece := response.read(1 << 20):
            got += len(piece)
        connection.close()
        self.assertGreater(got, self.SIZE)  # noise does not get smaller
        head = b'--b\r\nContent-Disposition: form-data; name="f"; filename="form"\r\n\r\n'
        body = itertools.chain([head], self.pieces(), [b"\r\n--b--\r\n"])
        connection, response = self.client.send("POST", session.path + "/files", body,
                                                {"Content-Type": "multipart/form-data; boundary=b"})
        self.assertEqual(response.status, 201, response.read())
        connection.close()
        if not api.SANITIZED:
            self.assertLess(self.server.peak_memory() - before, 40 << 20)

    def test_a_reader_that_does_not_read(self):
        session = self.session(limits={"output": "64m"})
        before = self.server.peak_memory()
        with session.stream("x = 'x' * 65536\nfor i in range(2000): print(x)") as stream:
            self.assertTrue(api.wait_until(lambda: session.info()["status"] != "busy"))
            if not api.SANITIZED:
                self.assertLess(self.server.peak_memory() - before, 700 << 20)
            stream.close()

    def test_text_that_is_not_read(self):
        """So much waits for its reader, who gets the rest with the cell."""
        session = self.session(limits={"output": "64m"})
        with session.stream("x = '\\x01' * 65536\nfor i in range(300): print(x)\nopen('printed', 'w').close()\n"
                            "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)") as stream:
            self.assertTrue(api.wait_until(lambda: session.get("printed").status == 200))
            self.assertLess(self.client.metrics()["retort_buffers_bytes"], 80 << 20)
            session.put("go")
            cell = stream.cell()
        self.assertEqual(len(api.text(cell)), 300 * 65537)
        self.assertLess(sum(len(d["text"]) for n, d in stream.events if n == "stdout"), 300 * 65537)


class Buffers(api.Case):
    """What is held for requests has a bound, for each token and for all."""
    config = "max_buffers = 64m\nmax_runs = 1\nmax_waiting = 50\n"
    SHARE = 16 << 20

    def held(self):
        return self.client.metrics()["retort_buffers_bytes"]

    def assertGivenBack(self):
        self.assertTrue(api.wait_until(lambda: self.held() < 1 << 20), self.held())

    def sent(self, data, buffer=None):
        sock = socket.socket()
        self.addCleanup(sock.close)
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.connect((self.server.address, self.server.port))
        with contextlib.suppress(OSError):  # refused before all was sent
            sock.sendall(data)
        return sock

    def test_runs_that_wait(self):
        files = {"f": base64.b64encode(os.urandom(6 << 20)).decode()}
        first = self.client.stream("/v1/run", code="print('now', flush=True)\nimport time; time.sleep(1000)", timeout="none")
        with first:
            first.until("stdout", "now")
            waiting = [api.Later(lambda: self.client.post("/v1/run", code="1", files=files)) for _ in range(8)]
            self.assertTrue(api.wait_until(lambda: sum(later.over for later in waiting) >= 4))
        answers = [later.result() for later in waiting]
        refused = [a for a in answers if a.status != 200]
        self.assertLess(self.held(), self.SHARE * 2)
        self.assertTrue(4 <= len(refused) <= 7, answers)
        for answer in refused:
            self.assertError(answer, 503, "busy")
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.assertGivenBack()
        self.assertEqual(self.client.post("/v1/run", code="1", files=files).status, 200)

    def test_one_token_does_not_use_up_everything(self):
        other = self.server.client(self.server.new_token("other"))
        body = b'{"code": "' + b"#" * (7 << 20)
        socks = [self.sent(self.client.raw("POST", "/v1/run", f"Content-Length: {8 << 20}", body=body)) for _ in range(12)]
        self.assertTrue(api.wait_until(lambda: self.held() >= self.SHARE), self.held())
        time.sleep(0.5)
        self.assertLess(self.held(), self.SHARE * 2)
        self.assertError(self.client.post("/v1/run", code="#" * 200000), 503, "busy")
        self.assertEqual(self.client.post("/v1/run", code="1").status, 200)  # small ones always pass
        self.assertEqual(other.post("/v1/run", code="#" * 200000).status, 200)
        for sock in socks:
            sock.close()
        self.assertGivenBack()

    def test_answers_that_are_not_read(self):
        session = self.session(limits={"output": "6m"})
        session.cell("print('x' * 3500000)")
        slow = [self.sent(self.client.raw("GET", session.path + "/cells/1"), 4096) for _ in range(12)]
        self.assertTrue(api.wait_until(lambda: "slow reader shut" in self.server.log))
        self.assertLess(self.held(), self.SHARE * 2)
        self.assertEqual(len(api.text(self.client.get(session.path + "/cells/1").json)), 3500001)
        got, closed = api.receive(slow[0])
        self.assertTrue(closed and len(got) < 3500000, "the oldest one is still there")
        for sock in slow:
            sock.close()
        self.assertGivenBack()

    def test_streams_that_are_not_read(self):
        """Whoever does not read gets the rest with the cell, and then nothing more than that is held."""
        session, socks = self.session(limits={"output": "6m"}), []
        for n in range(1, 4):
            sock = self.sent(self.client.raw("POST", session.path + "/cells", "Accept: text/event-stream", "Content-Length: 55",
                                             body=json.dumps({"code": "for i in range(600): print('x' * 5000)"}).ljust(55).encode()), 4096)
            self.assertTrue(api.wait_until(lambda: session.info()["cells"] == n))
            socks.append(sock)
        self.assertTrue(1 << 20 < self.held() < self.SHARE * 2, self.held())
        for sock in socks:
            sock.close()
        self.assertGivenBack()

    def test_archives(self):
        session = self.session()
        session.cell("import os\nopen('f', 'wb').write(os.urandom(8 << 20))\n"
                     "for i in range(5000): open(f'{i}' + 'n' * 200, 'w').close()", timeout=60)
        slow = [self.sent(self.client.raw("GET", session.path + "/files?archive=zip"), 4096) for _ in range(4)]
        self.assertTrue(api.wait_until(lambda: self.held() > 12 << 20), self.held())
        other = self.session()
        other.cell("import os\nopen('f', 'wb').write(os.urandom(8 << 20))\n"
                   "for i in range(5000): open(f'{i}' + 'n' * 240, 'w').close()", timeout=60)
        slow.append(self.sent(self.client.raw("GET", other.path + "/files?archive=zip"), 4096))
        self.assertTrue(api.wait_until(lambda: self.held() >= self.SHARE), self.held())
        self.assertError(self.client.get(other.path + "/files?archive=zip"), 503, "busy")
        for sock in slow:
            sock.close()
        self.assertGivenBack()
