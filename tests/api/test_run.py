"""POST /v1/run: one cell in a fresh box."""
import base64
import contextlib
import http.client
import json
import signal
import time

import api


def encode(data):
    return base64.b64encode(data).decode()


def endless_run(client):
    """The stream of a run that has begun, and goes on until it is closed."""
    stream = client.stream("/v1/run", code="print('now', flush=True)\nimport time; time.sleep(1000)", timeout="none")
    stream.until("stdout", "now")
    return stream


class Run(api.Case):
    def run_code(self, code, **more):
        answer = self.client.post("/v1/run", code=code, **more)
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def test_a_cell(self):
        cell = self.run_code("print('out')\nopen('new', 'w').write('x')\n6 * 7")
        self.assertEqual((cell["n"], cell["status"], api.text(cell), api.result(cell)), (1, "ok", "out\n", "42"))
        self.assertEqual([f["path"] for f in cell["files"]], ["new"])

    def test_nothing_stays(self):
        self.run_code("x = 1\nopen('f', 'w').close()\nopen('/tmp/g', 'w').close()")
        cell = self.run_code("import os\nprint(os.listdir('.'), os.listdir('/tmp'), 'x' in globals())")
        self.assertEqual(api.text(cell), "[] [] False\n")

    def test_no_session_is_left(self):
        before = self.client.get("/v1/sessions?limit=500").json["data"]
        ended = self.client.get("/v1/sessions?status=ended&limit=500").json["data"]
        self.run_code("1")
        self.assertEqual(self.client.get("/v1/sessions?limit=500").json["data"], before)
        self.assertEqual(self.client.get("/v1/sessions?status=ended&limit=500").json["data"], ended)

    def test_files(self):
        files = {"a.csv": encode(b"x,y\n1,2\n"), "dir/sub/b.bin": encode(bytes(range(256))), "empty": "",
                 "ü 漢.txt": encode("é".encode())}
        cell = self.run_code("import os\nprint(open('a.csv').read(), open('dir/sub/b.bin', 'rb').read() == bytes(range(256)),"
                             "os.path.getsize('empty'), open('ü 漢.txt').read())", files=files)
        self.assertEqual(api.text(cell), "x,y\n1,2\n True 0 é\n", cell)
        self.assertEqual(cell["files"], [])

    def test_a_few_megabytes_of_files(self):
        data = bytes(range(256)) * (4 << 12)
        cell = self.run_code("import os\nos.path.getsize('big')", files={"big": encode(data)})
        self.assertEqual(api.result(cell), str(len(data)))

    def test_limits(self):
        cell = self.run_code("while True: pass", limits={"timeout": 0.5})
        self.assertEqual((cell["status"], cell["limit"]["kind"]), ("limit", "wall"))
        cell = self.run_code("print('x' * 1000)", limits={"output": 300})
        self.assertIn("truncated", cell)
        cell = self.run_code("while True: pass", timeout=0.5)
        self.assertEqual((cell["status"], cell["limit"]["kind"]), ("limit", "wall"))

    def test_statuses(self):
        self.assertEqual(self.run_code("1/0")["error"]["name"], "ZeroDivisionError")
        self.assertEqual(self.run_code("print('b', flush=True)\nimport os; os.abort()")["status"], "crashed")

    def test_a_stream(self):
        cell = self.client.stream("/v1/run", code="print('now')\n1").cell()
        self.assertEqual((cell["status"], api.text(cell), api.result(cell)), ("ok", "now\n", "1"))

    def test_the_first_byte_comes_before_the_end(self):
        with endless_run(self.client) as stream:
            self.assertLess(time.monotonic() - stream.began, api.SOON)

    def test_going_away_ends_it(self):
        before = self.client.metrics()['retort_cells_total{status="interrupted"}']
        endless_run(self.client).close()
        self.assertTrue(api.wait_until(
            lambda: self.client.metrics()['retort_cells_total{status="interrupted"}'] > before))

    def test_a_summary(self):
        cell = self.run_code("print('x' * 5000)", summary="1k")
        self.assertLessEqual(len(cell["summary"]), 1024)
        self.assertIn("of 5000 bytes", cell["summary"])

    def test_refused(self):
        for body in ({}, {"code": 1}, [], {"code": "1", "files": []}, {"code": "1", "files": {"a": 1}},
                     {"code": "1", "files": {"a": None}}, {"code": "1", "limits": []}, {"code": "1", "timeout": 0},
                     {"code": "1", "limits": {"memory": 0}}, {"code": "1", "limits": {"ram": 1}}):
            with self.subTest(body=body):
                self.assertError(self.client.post("/v1/run", body), 400, "bad_request")
        self.assertError(self.client.post("/v1/run", code="1", metadata={}), 400, "bad_request", "metadata")

    def test_base64_that_is_none(self):
        for text in ("!", "a", "ab=c", "YQ==YQ==", "YQ=", "ü", "YQ\u0000=="):
            with self.subTest(text=text):
                self.assertError(self.client.post("/v1/run", code="1", files={"f": text}), 400)

    def test_names_that_lead_out(self):
        for name in ("../a", "/etc/passwd", "", ".", "..", "a/../b", "a//b", "a/", "x" * 256, "a/./b"):
            with self.subTest(name=name[:20]):
                self.assertError(self.client.post("/v1/run", code="1", files={name: ""}), 400, "bad_path")

    def test_files_in_each_others_way(self):
        answer = self.client.post("/v1/run", code="1", files={"a": encode(b"x"), "a/b": encode(b"x")})
        self.assertError(answer, 400, "bad_path")

    def test_files_over_the_workspace(self):
        answer = self.client.post("/v1/run", code="1", limits={"disk": "64k"}, files={"f": encode(bytes(100000))})
        self.assertError(answer, 413, "no_space")
        self.assertAnswers()

    def test_files_over_the_memory(self):
        """The interpreter dies while its files are on their way: the run ends with its session."""
        data = bytes(45 << 20)
        answer = self.client.post("/v1/run", code="1", limits={"memory": "16m"}, files={"a": encode(data)})
        if answer.status != 200:  # without cgroups nothing dies of what a file takes
            self.assertError(answer, 410, "session_ended")
        self.assertAnswers()

    def test_going_away_while_files_are_on_their_way(self):
        body = json.dumps({"code": "1", "limits": {"memory": "16m"}, "files": {"a": encode(bytes(45 << 20))}}).encode()
        for wait in (0, 0.05, 0.2):
            gone = self.server.connect()
            gone.sendall(self.client.raw("POST", "/v1/run", f"Content-Length: {len(body)}", body=body))
            time.sleep(wait)
            gone.close()
        self.assertTrue(api.wait_until(lambda: self.client.metrics()['retort_sessions{status="idle"}'] == 0))
        self.assertAnswers()

    def test_many_at_once(self):
        laters = [api.Later(lambda i=i: self.client.post("/v1/run", code=f"print({i})")) for i in range(24)]
        self.assertEqual([api.text(later.result().json) for later in laters], [f"{i}\n" for i in range(24)])


class Full(api.Case):
    config = "max_runs = 1\nmax_waiting = 2\n"

    def setUp(self):
        super().setUp()  # the run of the test before may still be at its end, and hold the one place
        self.assertTrue(api.wait_until(lambda: self.sessions_alive() == 0))

    def sessions_alive(self):
        metrics = self.client.metrics()
        return metrics['retort_sessions{status="idle"}'] + metrics['retort_sessions{status="busy"}']

    def run_later(self, client):
        return api.Later(lambda: client.post("/v1/run", code="1"))

    def assertWaiting(self, n):
        self.assertTrue(api.wait_until(lambda: self.client.metrics()["retort_runs_waiting"] == n))

    def test_turns(self):
        code = "import time; time.sleep(0.5)"
        laters = [api.Later(lambda: self.client.post("/v1/run", code=code)) for _ in range(3)]
        for later in laters:
            self.assertEqual(later.result().status, 200)

    def test_beyond_those_that_may_wait(self):
        with endless_run(self.client):
            laters = [self.run_later(self.client) for _ in range(5)]
            self.assertTrue(api.wait_until(lambda: sum(later.over for later in laters) == 3))
            self.assertWaiting(2)
        answers = [later.result() for later in laters]
        refused = [a for a in answers if a.status != 200]
        self.assertEqual(len(refused), 3, answers)
        for answer in refused:
            self.assertError(answer, 503, "busy")
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)

    def test_one_that_waits_and_goes_away(self):
        body = b'{"code": "1"}'
        with endless_run(self.client):
            gone = self.server.connect()
            gone.sendall(self.client.raw("POST", "/v1/run", f"Content-Length: {len(body)}", body=body))
            self.assertWaiting(1)
            gone.close()
            self.assertWaiting(0)
        self.assertEqual(self.client.post("/v1/run", code="1").status, 200)

    def test_one_that_waits_counts_for_its_token(self):
        client = self.server.client(self.server.new_token("few", "--sessions", "2"))
        with endless_run(client):
            later = self.run_later(client)
            self.assertWaiting(1)
            self.assertError(client.post("/v1/run", code="1"), 429, "quota_sessions")
        self.assertEqual(later.result().status, 200)
        self.assertTrue(api.wait_until(lambda: client.post("/v1/run", code="1").status == 200))

    def test_one_that_waits_for_a_token_that_is_revoked(self):
        client = self.server.client(self.server.new_token("short"))
        with endless_run(self.client):
            later = self.run_later(client)
            self.assertWaiting(1)
            self.assertEqual(api.run("token", "revoke", "short", "--state", self.server.state).returncode, 0)
            self.assertError(later.result(), 401, "unauthorized")


class Ended(api.Case):
    def test_the_server_ends_before_the_box_stands(self):
        server = self.start("pool = 0\nblanks = 0\ndrain = 0\n")
        client = server.client()
        laters = [api.Later(lambda: client.post("/v1/run", code="1", files={"a": encode(b"x")})) for _ in range(6)]
        api.wait_until(lambda: client.metrics()['retort_sessions{status="idle"}'] > 0, step=0)
        self.assertEqual(server.end(signal.SIGTERM), 0)
        for later in laters:
            with contextlib.suppress(OSError, http.client.HTTPException):  # it came when nobody listened any more
                self.assertIn(later.result().status, (200, 410, 503))
