"""retort run and repl --server: what they do with boxes of their own, on a server's. First the tests of
the local verbs, as they are; then what only a server can do to them."""
import contextlib
import json
import os
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
import time

import cli
import test_files
import test_repl_json
import test_repl_terminal
import test_run
import test_verify

server = None


def setUpModule():
    global server
    server = cli.Server()


def tearDownModule():
    server.stop()


class There:
    """A test of the local verbs, on the server; it leaves nothing there."""

    def setUp(self):
        super().setUp()
        cli.SERVER, cli.LEAVE = server.link, signal.SIGTERM
        self.addCleanup(self.look)

    def look(self):
        cli.SERVER, cli.LEAVE = None, signal.SIGKILL
        left = server.wait_empty()
        for session in left:  # the others' business goes on
            server.call("DELETE", f"/v1/sessions/{session['id']}")
        self.assertEqual([s["status"] for s in left], [])


class Streams(There, test_run.Streams):
    pass


class Verify(There, test_verify.Cells):
    pass


class Programs(There, test_run.Programs):
    pass


class Status(There, test_run.Status):
    pass


class Json(There, test_run.Json):
    pass


class Signals(There, test_run.Signals):
    """Nothing is below the client's process: There looks whether the server has something left."""

    def test_termination_leaves_nothing(self):
        p = self.busy("import subprocess; subprocess.Popen(['sleep', '1000'])")
        self.assertEqual(cli.descendants(p.pid), set())
        p.send_signal(signal.SIGTERM)
        self.assertStatus(cli.finish(p), 143)

    def test_killed_leaves_nothing(self):
        p = self.busy()
        p.kill()
        p.communicate()
        left = server.sessions()
        self.assertEqual(len(left), 1)
        self.assertLessEqual(left[0]["idle_timeout"], 300)  # which ends it
        end = time.monotonic() + cli.PATIENCE
        while server.sessions()[0]["status"] == "busy" and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(server.sessions()[0]["status"], "idle")  # its cell was interrupted
        server.call("DELETE", f"/v1/sessions/{left[0]['id']}")

    def test_a_reader_who_stops_does_not_stop_the_limits(self):
        p = cli.start("run", "--timeout", "1", "-c",
                      "print('x' * 400000, flush=True)\nwhile True: pass")
        cli.read_until(p.stdout, b"x")
        self.assertEqual(server.wait_empty(), [])
        self.assertIsNone(p.poll())  # it still has text for us
        done = cli.finish(p)
        self.assertStatus(done, 124)
        self.assertGreater(len(done.out), 300000)


class OrdinaryUser(There, test_run.OrdinaryUser):
    pass


class Uploads(There, test_files.Uploads):
    def test_from_a_pipe_that_takes_its_time(self):
        os.mkfifo(self.path("slow"))
        p = cli.start("run", "-f", self.path("slow"), "-c", "print(open('slow').read())")
        with open(self.path("slow"), "w") as pipe:
            pipe.write("one ")
            pipe.flush()
            time.sleep(1)
            pipe.write("two")
        self.assertEqual(cli.finish(p).out, "one two\n")

    def test_that_do_not_fit(self):
        path = self.write("big", bytes(2 << 20))
        done = cli.run("run", "-f", path, "--disk", "1m", "-c", "print('ran')")
        self.assertStatus(done, 125)
        self.assertEqual(done.out, "")
        self.assertIn("big", done.err)
        self.assertIn("--disk", done.err)

    def test_interrupted(self):
        os.mkfifo(self.path("never"))
        p = cli.start("run", "-f", self.path("never"), "-c", "print('ran')")
        with open(self.path("never"), "w") as pipe:
            pipe.write("a")
            pipe.flush()
            end = time.monotonic() + cli.PATIENCE
            while not server.sessions() and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(0.3)
            p.send_signal(signal.SIGINT)
            done = cli.finish(p)
        self.assertStatus(done, 130)
        self.assertEqual(done.out, "")


class Results(There, test_files.Results):
    def test_also_after_a_crash_and_a_time_limit(self):
        self.out("open('b', 'w').write('2')\nwhile True: pass", "--timeout", "1", status=124)
        self.out("open('c', 'w').write('3')\n1/0", status=1)
        self.assertEqual(self.tree(), ["b", "c"])

    def test_a_crash_takes_the_box_along(self):
        done = self.out("open('a', 'w').write('1')\nimport os; os.abort()", status=1)
        self.assertIn("not copied: a: the box is gone", done.err)
        self.assertEqual(self.tree(), [])


class Figures(There, test_files.Figures):
    def test_large_ones_come_once_and_are_whole(self):
        code = ("import numpy as np, matplotlib.pyplot as plt\n"
                "for seed in (1, 2):\n"
                "    plt.figure(figsize=(6, 6)); plt.axis('off')\n"
                "    plt.imshow(np.random.default_rng(seed).random((500, 500))); plt.show()\n"
                "    plt.figure(figsize=(1, 1)); plt.plot([seed]); plt.show()\n")
        done = cli.run("run", "--json", "-o", self.path("out"), "-c", code)
        self.assertStatus(done, 0)
        import base64
        shown = [base64.b64decode(o["data"]["image/png"]) for o in done.json["outputs"]]
        self.assertEqual(len(shown), 4)
        self.assertGreater(len(shown[0]), 64 << 10)
        self.assertLess(len(shown[1]), 64 << 10)
        for i, png in enumerate(shown):
            self.assertEqual(self.read("out", f"figure-{i + 1}.png"), png)


class Hostile(There, test_files.Hostile):
    def test_names_that_are_not_text(self):
        done = self.out("open(b'\\xff\\xfe', 'w').close()")  # JSON cannot name it
        self.assertStatus(done, 0)
        self.assertIn("not copied: ", done.err)
        self.assertEqual(os.listdir(self.path("out")), [])


class Conversation(There, test_repl_json.Conversation):
    pass


class Limits(There, test_repl_json.Limits):
    pass


class Checkpoints(There, test_repl_json.Checkpoints):
    pass


class Branches(There, test_repl_json.Branches):
    test_those_that_died_leave_room = None  # a server has other bounds


class Interrupts(There, test_repl_json.Interrupts):
    pass


class Person(There, test_repl_terminal.Person):
    pass


class Escapes(There, test_repl_terminal.Escapes):
    pass


class Pipe(There, test_repl_terminal.Pipe):
    pass


# ---- what only a server can do ----


class Token(cli.Case):
    def refused(self, *args, **options):
        done = cli.run("run", *args, "-c", "print('ran')", **options)
        self.assertEqual(done.out, "")
        self.assertNotIn(server.token, done.err)
        return done

    def test_by_each_way(self):
        file = self.write("token", server.token + "\n")
        for args, env in ((["--server", server.link], {}), (["--server", server.base, "--token-file", file], {}),
                          (["--server", server.base + "/"], {"RETORT_TOKEN": server.token})):
            with self.subTest(args=args):
                done = cli.run("run", *args, "-c", "6 * 7", env=env)
                self.assertStatus(done, 0)
                self.assertEqual(done.out, "42\n")

    def test_none_and_a_wrong_one(self):
        for env in ({}, {"RETORT_TOKEN": "rt_wrong"}):
            with self.subTest(env=env):
                done = self.refused("--server", server.base, env=env)
                self.assertStatus(done, 125)
                self.assertIn("RETORT_TOKEN", done.err)
                self.assertIn("token", done.err)
        done = cli.run("repl", "--server", server.base, input="1\n")
        self.assertStatus(done, 125)

    def test_is_wiped_from_the_arguments(self):
        p = cli.start("run", "--server", server.link, "-c", "print('go', flush=True)\nwhile True: pass")
        cli.read_until(p.stdout, b"go\n")
        with open(f"/proc/{p.pid}/cmdline", "rb") as f:
            self.assertNotIn(server.token.encode(), f.read())
        p.send_signal(signal.SIGTERM)
        cli.finish(p)

    def test_mistakes_are_wrong_usage(self):
        for args in (["--server", "127.0.0.1:8722:1"], ["--server", "ftp://127.0.0.1/"],
                     ["--server", "http://u:p@127.0.0.1/"], ["--server", ""],
                     ["--server", server.base + "/?tokn=x"],
                     ["--server", server.base, "--token-file", self.path("none")],
                     ["--server", server.link, "--token-file", self.write("t", "x")],
                     ["--token-file", self.write("t", "x")],
                     ["--server", server.base, "--token-file", self.write("two", "a b\n")]):
            with self.subTest(args=args):
                self.assertStatus(self.refused(*args), 2)

    def test_only_the_option_decides(self):
        done = cli.run("run", "-c", "6 * 7", env={"RETORT_SERVER": "http://127.0.0.1:1"})
        self.assertStatus(done, 0)


class Limited(cli.Case):
    """A server with its own defaults and bounds."""

    @classmethod
    def setUpClass(cls):
        cls.server = cli.Server("--set", "memory=200m", "--set", "max_memory=300m", "--set", "max_sessions=1",
                                "--set", "idle_timeout=6")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_its_limits_hold_where_none_are_given(self):
        done = cli.run("run", "--server", self.server.link, "-c", "x = bytearray(250 << 20)")
        self.assertStatus(done, 137)
        self.assertIn("memory limit of 200 MiB", done.err)
        done = cli.run("run", "--server", self.server.link, "--memory", "300m", "-c", "x = bytearray(200 << 20)")
        self.assertStatus(done, 0)

    def test_its_bounds_are_told(self):
        done = cli.run("run", "--server", self.server.link, "--memory", "1g", "-c", "1")
        self.assertStatus(done, 125)
        self.assertIn("at most", done.err)

    def test_no_room_now_but_soon(self):
        other = self.server.call("POST", "/v1/sessions", {"idle_timeout": "none"})["id"]
        p = cli.start("run", "--server", self.server.link, "-c", "6 * 7")
        first = p.stderr.readline().decode()
        self.assertRegex(first, r"^retort: .*try again in \d+ s\); waiting\n$")
        self.server.call("DELETE", f"/v1/sessions/{other}")
        done = cli.finish(p)
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "42\n")

    def test_no_room_at_all(self):
        other = self.server.call("POST", "/v1/sessions", {"idle_timeout": "none"})["id"]
        done = cli.run("run", "--server", self.server.link, "-c", "6 * 7")
        self.assertStatus(done, 125)
        self.assertRegex(done.err, r"try again in \d+ s\)\n$")
        self.server.call("DELETE", f"/v1/sessions/{other}")

    def test_a_repl_that_thinks_is_not_idle(self):
        with cli.Repl("--server", self.server.link) as r:
            r.cell("x = 1")
            time.sleep(8)
            self.assertEqual(cli.result(r.cell("x")), "1")
            self.assertEqual(r.end(), (0, []))
        self.assertEqual(self.server.wait_empty(), [])

    def test_no_room_for_a_branch(self):
        with cli.Repl("--server", self.server.link) as r:
            r.cell("x = 1")
            r.send(fork=True)
            error = r.answer()["error"]
            self.assertEqual(error["code"], "no_branch")
            self.assertIn("try again in", error["message"])
            self.assertEqual(cli.result(r.cell("x")), "1")
            self.assertEqual(r.end(), (0, []))

    def test_environments_are_the_servers(self):
        done = cli.run("run", "--server", self.server.link, "--environment", "default", "-c", "6 * 7")
        self.assertStatus(done, 0)
        done = cli.run("run", "--server", self.server.link, "--environment", "nosuch", "-c", "6 * 7")
        self.assertStatus(done, 125)
        self.assertIn("environment", done.err)


class Idle(cli.Case):
    def test_a_branch_that_nobody_is_in_is_not_idle(self):
        server = cli.Server("--set", "idle_timeout=3")
        self.addCleanup(server.stop)
        with cli.Repl("--server", server.link) as r:
            r.cell("x = 1")
            for branch in (2, 3):
                r.send(fork=True)
                self.assertEqual(r.answer()["branch"], branch)
                r.cell(f"x = {branch}")
            time.sleep(6)
            for branch in (2, 1, 3):
                r.send(branch=branch)
                r.answer()
                self.assertEqual(cli.result(r.cell("x")), str(branch))
            self.assertEqual(r.end(), (0, []))
        self.assertEqual(server.wait_empty(1), [])


class Gone(cli.Case):
    def test_nobody_there(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            link = f"http://127.0.0.1:{s.getsockname()[1]}/?token=rt_x"
            for verb in ("run", "repl"):
                done = cli.run(verb, "--server", link, input="1")
                self.assertStatus(done, 125)
                self.assertIn("there is no server at http://127.0.0.1:", done.err)

    def test_in_the_middle_of_a_cell(self):
        own = cli.Server()
        self.addCleanup(own.stop)
        p = cli.start("run", "--server", own.link, "-c", "print('go', flush=True)\nwhile True: pass")
        cli.read_until(p.stdout, b"go\n")
        own.process.kill()
        done = cli.finish(p)
        self.assertStatus(done, 125)
        self.assertIn("connection", done.err)

    def test_between_two_cells_of_a_repl(self):
        own = cli.Server()
        self.addCleanup(own.stop)
        with cli.Repl("--server", own.link) as r:
            self.assertEqual(cli.result(r.cell("1")), "1")
            own.stop(kill=True)
            r.send(code="2")
            self.assertEqual(r.process.wait(cli.PATIENCE), 125)
            self.assertIn(b"no server", r.process.stderr.read())

    def test_it_drains(self):
        """A server that stops gives its cells their time, and then says what became of them."""
        own = cli.Server("--set", "drain=1")
        self.addCleanup(own.stop)
        p = cli.start("run", "--server", own.link, "-c", "print('go', flush=True)\nwhile True: pass")
        cli.read_until(p.stdout, b"go\n")
        own.process.terminate()
        self.assertIn(cli.finish(p).status, (125, 130))


class Fake(contextlib.AbstractContextManager):
    """A server that says what it is told to, each time it is asked."""

    def __init__(self, *answers, tls=None):
        fake = self
        self.asked = []
        answers = list(answers)

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                head = b""
                while b"\r\n\r\n" not in head and (piece := self.request.recv(65536)):
                    head += piece
                fake.asked.append(head.split(b"\r\n")[0].decode())
                given = answers.pop(0) if answers else b""
                with contextlib.suppress(OSError):  # who has enough hangs up
                    self.wfile.write(given(fake) if callable(given) else given)

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.link = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_address[1]}/?token=rt_x"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def answer(status, body, kind="application/json"):
    if not isinstance(body, (bytes, str)):
        body = json.dumps(body)
    body = body.encode() if isinstance(body, str) else body
    return (f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            f"Connection: close\r\n\r\n").encode() + body


LIMITS = {"timeout": 60, "cpu": "none", "memory": 1 << 30, "disk": 1 << 20, "files": 100, "pids": 64,
          "output": 1 << 20, "cpus": 1}
SESSION = answer(201, {"id": "abc", "limits": LIMITS, "idle_timeout": 300})
CELL = {"n": 1, "code": "1", "status": "ok", "outputs": [], "files": [],
        "receipt": {"wall_ms": 1, "cpu_ms": 1, "peak_memory": 1}}


def events(*pairs):
    text = "".join(f"event: {name}\ndata: {data if isinstance(data, str) else json.dumps(data)}\n\n"
                   for name, data in pairs)
    return answer(200, text, "text/event-stream")


class Malicious(cli.Case):
    """Servers that are none, or mean harm."""

    def run_against(self, *answers, args=()):
        with Fake(*answers) as fake:
            done = cli.run("run", "--server", fake.link, *args, "-c", "1")
        self.asked = fake.asked
        return done

    def test_another_kind_of_server(self):
        for first in (answer(200, "<html>", "text/html"), answer(404, "nothing"), answer(201, "[]"),
                      answer(201, {"id": "../../admin", "limits": LIMITS}), answer(201, {"id": "abc"}),
                      answer(201, {"id": "abc", "limits": dict(LIMITS, disk=-1)})):
            done = self.run_against(first)
            self.assertStatus(done, 125)
            self.assertIn("not a retort server", done.err)

    def test_a_redirection_is_not_followed(self):
        with Fake() as thief:
            first = (f"HTTP/1.1 307 x\r\nLocation: {thief.link}\r\nContent-Length: 0\r\n\r\n").encode()
            self.assertStatus(self.run_against(first), 125)
            self.assertEqual(thief.asked, [])

    def test_its_words_do_not_command_a_terminal(self):
        for first in (answer(400, {"error": {"code": "x", "message": "\x1b]0;title\x07\nretort: lie"}}),):
            done = self.run_against(first)
            self.assertStatus(done, 125)
            self.assertNotIn("\x1b", done.err)
            self.assertEqual(len(done.err.splitlines()), 1)

    def test_the_session_is_deleted_whatever_came(self):
        for cells in (events(), events(("cell", "not json")), events(("cell", {"n": 1})), answer(500, "oops"),
                      events(("cell", "\x1b]0;title\x07")), events(("cell", '{"n": "\x1b[2J"}')),
                      events(("error", {"name": "RetortError", "value": "no \x1b[2J room", "traceback": ""})),
                      events(("stdout", {"type": "stdout", "text": 5})),
                      events(("cell", dict(CELL, outputs=[{"type": "display", "data": {"image/png": "%%"}}])))):
            done = self.run_against(SESSION, cells, answer(204, ""))
            self.assertStatus(done, 125)
            self.assertEqual(len(done.err.splitlines()), 1)
            self.assertNotIn("\x1b", done.err)
            self.assertEqual(self.asked, ["POST /v1/sessions HTTP/1.1", "POST /v1/sessions/abc/cells HTTP/1.1",
                                          "DELETE /v1/sessions/abc HTTP/1.1"])

    def test_a_branch_that_is_none(self):
        wrong = ({}, {"sessions": []}, {"sessions": {}}, {"sessions": [{"id": "../x", "limits": LIMITS}]},
                 {"sessions": [{"id": "def"}]}, [], "<html>")
        with Fake(SESSION, *(answer(201, body) for body in wrong)) as fake:
            with cli.Repl("--server", fake.link) as r:
                for _ in wrong:
                    r.send(fork=True)
                    self.assertIn("not a retort server", r.answer()["error"]["message"])
                r.end()
        self.assertEqual([line.split()[1] for line in fake.asked],
                         ["/v1/sessions", *["/v1/sessions/abc/fork"] * len(wrong), "/v1/sessions/abc"])

    def test_one_signal_more_is_enough_to_leave_all_branches(self):
        branches = [answer(201, {"sessions": [{"id": f"b{i}", "limits": LIMITS}]}) for i in range(4)]

        def never(fake):
            time.sleep(60)
            return b""
        with Fake(SESSION, *branches, *[never] * 5) as fake:
            with cli.Repl("--server", fake.link) as r:
                for _ in branches:
                    r.send(fork=True)
                    r.answer()
                r.process.send_signal(signal.SIGTERM)
                end = time.monotonic() + 10
                while len(fake.asked) < 10 and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertEqual(sorted(line.split()[1] for line in fake.asked[5:]),
                                 ["/v1/sessions/abc", *(f"/v1/sessions/b{i}" for i in range(4))])
                self.assertIsNone(r.process.poll())
                r.process.send_signal(signal.SIGTERM)
                self.assertEqual(r.process.wait(5), 143)

    def test_values_are_counted_before_they_are_read(self):
        """Ten megabytes of text would be a gigabyte in memory."""
        with Fake(SESSION, events(("cell", '{"n": [' + "0," * 5000000 + "0]}")), answer(204, "")) as fake:
            p = cli.start("run", "--server", fake.link, "-c", "1")
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            err = p.stderr.read()
            p.communicate()
        self.assertEqual(p.returncode, 125)
        self.assertIn(b"values", err)
        self.assertLess(usage.ru_maxrss << 10, 150 << 20)

    def test_an_interrupt_does_not_overtake_its_cell(self):
        """A Ctrl-C that reaches the server before the cell would stop nothing."""
        asked = threading.Event()

        def slowly(fake):
            asked.set()
            time.sleep(1)
            fake.asked.append("it runs")
            return events(("cell", dict(CELL, status="interrupted")))

        with Fake(SESSION, slowly, answer(200, "{}"), answer(204, "")) as fake:
            p = cli.start("run", "--server", fake.link, "-c", "1")
            self.assertTrue(asked.wait(cli.PATIENCE))
            p.send_signal(signal.SIGINT)
            self.assertStatus(cli.finish(p), 130)
        for i, line in enumerate(fake.asked):
            self.assertFalse("interrupt" in line and "it runs" not in fake.asked[:i], fake.asked)

    def test_names_of_files_lead_nowhere(self):
        out = self.path("a/b/out")
        names = ["../x", "/etc/x", "a/../../x", "", ".", "a//b", "nul\0"]
        for name in names:
            cell = dict(CELL, files=[{"path": name, "change": "created", "size": 1}])
            done = self.run_against(SESSION, events(("cell", cell)), answer(200, "evil"), answer(204, ""),
                                    args=["-o", out])
            self.assertEqual([f for _, _, files in os.walk(self.dir) for f in files], [], name)
            self.assertNotIn("GET", "".join(self.asked))
            self.assertIn(done.status, (0, 125))

    def test_contents_are_bounded_by_the_workspace(self):
        cell = dict(CELL, files=[{"path": "big", "change": "created", "size": 1}])
        lie = b"HTTP/1.1 200 x\r\nConnection: close\r\n\r\n" + bytes(2 << 20)  # without a length
        for contents in (answer(200, bytes(2 << 20)), lie):
            done = self.run_against(SESSION, events(("cell", cell)), contents, answer(204, ""),
                                    args=["-o", self.path("out")])
            self.assertStatus(done, 0)
            self.assertIn("not copied: big: it claims more bytes", done.err)
            self.assertEqual(os.listdir(self.path("out")), [])

    def test_a_file_that_ends_early(self):
        cell = dict(CELL, files=[{"path": "cut", "change": "created", "size": 100}])
        half = b"HTTP/1.1 200 x\r\nContent-Length: 100\r\nConnection: close\r\n\r\nhalf"
        done = self.run_against(SESSION, events(("cell", cell)), half, answer(204, ""),
                                args=["-o", self.path("out")])
        self.assertStatus(done, 125)
        self.assertIn("not copied: cut", done.err)
        self.assertEqual(os.listdir(self.path("out")), [])


class Tls(cli.Case):
    def setUp(self):
        super().setUp()
        self.pem = self.path("both.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.path("key"),
                        "-out", self.path("cert")], check=True, capture_output=True)
        with open(self.pem, "wb") as f:
            f.write(self.read("key") + self.read("cert"))

    def test_works_with_a_certificate_that_is_trusted(self):
        with Fake(SESSION, events(("stdout", {"type": "stdout", "text": "42\n"}), ("cell", dict(
                CELL, outputs=[{"type": "stdout", "text": "42\n"}]))), answer(204, ""), tls=self.pem) as fake:
            done = cli.run("run", "--server", fake.link, "-c", "1", env={"SSL_CERT_FILE": self.path("cert")})
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "42\n")

    def test_one_that_is_not_trusted(self):
        with Fake(SESSION, tls=self.pem) as fake:
            done = cli.run("run", "--server", fake.link, "-c", "1")
        self.assertStatus(done, 125)
        self.assertIn("certificate", done.err)
        self.assertEqual(fake.asked, [])

    def test_a_server_that_speaks_none(self):
        done = cli.run("run", "--server", server.link.replace("http:", "https:"), "-c", "1")
        self.assertStatus(done, 125)
        self.assertIn("http://", done.err)
