"""A server's life: ready, told to stop, killed; what it leaves behind."""
import http.client
import json
import os
import re
import signal
import subprocess
import time

import api


class Start(api.Case):
    def test_the_ready_line(self):
        server = self.start()
        self.assertRegex(server.ready, r"^retort: ready at http://127\.0\.0\.1:\d+/\?token=[\w.~-]{20,}\n$")

    def test_two_servers_do_not_share_a_state(self):
        done = api.run("serve", "--listen", "127.0.0.1:0", "--state", self.server.state)
        self.assertNotEqual(done.returncode, 0, "the second one ends the first one's sessions in the records")
        self.assertTrue(done.stderr.startswith("retort: "), done.stderr)
        self.assertAnswers()

    def test_configurations(self):
        for text, wanted in (("memry = 1g\n", "memory"), ("memory = 0\n", "memory"), ("memory 1g\n", "1"), ("max_sessions = -1\n", "max_sessions"),
                             ("listen = nowhere\n", "nowhere"), ("idle_timeout = 0\n", "idle_timeout"), ("\0\n", "config"),
                             ("max_memory = 100m\nmemory = 1g\n", "memory")):
            with self.subTest(text=text):
                directory = self.directory()
                path = os.path.join(directory, "config")
                with open(path, "w") as f:
                    f.write(text)
                os.chmod(path, 0o644)
                line = ["serve", "--state", directory, "--config", path]
                line += [] if "listen" in text else ["--listen", "127.0.0.1:0"]
                done = api.run(*line)
                self.assertIn(done.returncode, (1, 2, 125), done)
                self.assertIn(wanted, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_comments_and_flags_over_the_file(self):
        server = self.start("# a comment\nlisten = 127.0.0.1:1 # port 1\n\nmemory = 300m   # less\n")
        self.assertNotEqual(server.port, 1)
        self.assertEqual(server.client().session().info()["limits"]["memory"], 300 << 20)

    def test_a_missing_file_or_state(self):
        done = api.run("serve", "--config", "/nonexistent/config")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nonexistent/config", done.stderr)
        done = api.run("serve", "--listen", "127.0.0.1:0", "--state", "/proc/nonexistent/state")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/proc/nonexistent", done.stderr)

    def test_wrong_usage(self):
        for args in (("serve", "--nonsense"), ("token",), ("token", "new"), ("token", "brew", "x"), ("serve", "extra")):
            self.assertEqual(api.run(*args).returncode, 2, args)

    def test_it_tells_systemd(self):
        import socket
        directory = self.directory()
        path = os.path.join(directory, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.bind(path)
            os.chmod(path, 0o777)
            os.chmod(directory, 0o755)
            sock.settimeout(api.PATIENCE)
            process = subprocess.Popen(api.command("serve", "--listen", "127.0.0.1:0", "--state", api.new_directory()),
                                       env={**api.plain_environment(), "NOTIFY_SOCKET": path},
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                self.assertIn(b"READY=1", sock.recv(4096))
            finally:
                process.terminate()
                process.communicate(timeout=api.PATIENCE)
        self.assertEqual(process.returncode, 0)


class Drain(api.Case):
    def test_running_cells_get_their_time(self):
        server = self.start()
        session = server.client().session()
        later = session.begin("import time; time.sleep(6); print('finished')")
        queued = session.in_background("print('never')")
        kept = http.client.HTTPConnection(server.address, server.port, timeout=api.PATIENCE)
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        self.assertIsNone(server.process.poll())
        try:
            answer = server.client().post("/v1/sessions")
            self.assertError(answer, 503, "draining")
        except OSError:
            pass  # nobody listens any more: that is clear, too
        self.on_a_kept_connection(kept, server)
        refused = queued.result()
        self.assertError(refused, 503, "draining")
        self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
        answer = later.result()
        self.assertEqual((answer.status, answer.json["status"], api.text(answer.json)), (200, "ok", "finished\n"))
        self.assertEqual(server.process.wait(api.PATIENCE), 0)

    def on_a_kept_connection(self, kept, server):
        for method, path, status in (("GET", "/healthz", 503), ("POST", "/v1/sessions", 503), ("GET", "/v1/sessions", 503)):
            try:
                kept.request(method, path, headers=server.client().headers(None))
                response = kept.getresponse()
            except (OSError, http.client.HTTPException):
                return  # closed: clear, too
            body = json.loads(response.read())
            self.assertEqual(response.status, status)
            if path == "/healthz":
                self.assertEqual(body, {"status": "draining"})
            else:
                self.assertEqual(body["error"]["code"], "draining")
                self.assertTrue(response.headers["Retry-After"])

    def test_with_nothing_to_do_it_leaves_at_once(self):
        server = self.start("drain = none\n")
        server.client().session()
        idle = server.connect()
        self.addCleanup(idle.close)
        began = time.monotonic()
        self.assertEqual(server.end(signal.SIGTERM), 0)
        self.assertLess(time.monotonic() - began, api.SOON)

    def test_a_second_signal_does_not_wait(self):
        server = self.start("drain = none\n")
        client = server.client()
        session, other = client.session(), client.session()
        session.begin("import time; time.sleep(1000)", timeout="none")
        # It waits for a cell that does not yield.
        other.begin("time.sleep(1000)", first="import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)",
                    timeout="none")
        api.Later(other.delete)
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        self.assertIsNone(server.process.poll())
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(api.PATIENCE), 0)

    def test_without_a_limit_cells_come_to_their_end(self):
        server = self.start("drain = none\n")
        session = server.client().session()
        later = session.begin("import time; time.sleep(3); print('finished')")
        slow = server.connect()  # and nobody waits for one who does not even finish to ask
        self.addCleanup(slow.close)
        slow.sendall(server.client().raw("POST", "/v1/run", "Content-Length: 10"))
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(api.text(later.result().json), "finished\n")
        self.assertEqual(server.process.wait(api.PATIENCE), 0)

    def test_streams_get_their_end(self):
        server = self.start("drain = 1\n")
        session = server.client().session()
        with session.stream("print('now', flush=True)\nimport time; time.sleep(1000)", timeout="none") as stream:
            stream.until("stdout", "now")
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(stream.cell()["status"], "interrupted")
        self.assertEqual(server.process.wait(api.PATIENCE), 0)


def cgroups_of(pids):
    """Cgroups that bear the number of one of these keepers."""
    found = set()
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        found |= {os.path.join(directory, n) for n in names
                  if (m := re.fullmatch(r"(\d+)-[0-9a-f]{8}", n)) and int(m[1]) in pids}
    return found


class Killed(api.Case):
    def leaves_nothing(self, act):
        state = self.directory()
        mounts = open("/proc/self/mounts").read()
        server = api.Server(state=state)
        self.addCleanup(server.stop)
        client = server.client()
        for code in ("1", "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)"):
            client.session().cell(code)
        client.session().begin("while True: pass")
        pids = {server.process.pid} | api.descendants(server.process.pid)
        self.assertGreater(len(pids), 6)
        if api.USER is None:
            self.assertTrue(cgroups_of(pids), "the check cannot fail")
        act(server)
        server.process.wait(api.PATIENCE)
        self.assertTrue(api.wait_until(lambda: not api.alive(pids)), f"left: {api.alive(pids)}")
        self.assertTrue(api.wait_until(lambda: not cgroups_of(pids)), f"left: {cgroups_of(pids)}")
        self.assertEqual(open("/proc/self/mounts").read(), mounts)
        with api.Server(state=state) as again:
            self.assertEqual(again.client().session().cell("1")["status"], "ok")

    def test_sigkill_leaves_nothing(self):
        self.leaves_nothing(lambda server: server.process.kill())

    def test_sigterm_leaves_nothing(self):
        def stop(server):
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            server.process.send_signal(signal.SIGTERM)
        self.leaves_nothing(stop)

    def test_one_process_listens(self):
        server = self.start()
        port = f"{server.port:04X}"
        listening = None
        with open("/proc/net/tcp") as f:
            for line in f.read().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(":" + port) and fields[3] == "0A":
                    listening = fields[9]
        self.assertIsNotNone(listening)
        holders = set()
        for pid in {server.process.pid} | api.descendants(server.process.pid):
            try:
                if any(os.readlink(f"/proc/{pid}/fd/{fd}") == f"socket:[{listening}]" for fd in os.listdir(f"/proc/{pid}/fd")):
                    holders.add(pid)
            except OSError:
                pass
        self.assertEqual(holders, {server.process.pid})


class Churn(api.Case):
    config = ""

    def test_nothing_grows(self):
        """Sessions, runs, errors, disconnects: descriptors and processes end where they began."""
        def round_of_work():
            for _ in range(3):
                session = self.client.session()
                session.put("f", b"x")
                session.cell("1")
                with session.stream("print(1, flush=True)\nimport time; time.sleep(20)") as stream:
                    stream.until("stdout")
                session.delete()
                self.client.delete(session.path)
            self.client.post("/v1/run", code="1/0")
            self.client.post("/v1/run", b"{")
            session = self.client.session()
            session.cell("x = 1")
            session.cell("import os; os.abort()")
            session.delete()
            self.server.connect().close()

        def settled():
            api.wait_until(lambda: self.client.metrics()['retort_sessions{status="idle"}'] == 0)
            time.sleep(1.5)
            metrics = self.client.metrics()
            return self.server.descriptors(), len(list(self.server.own_processes())), metrics["process_open_fds"]

        round_of_work()
        before = settled()
        for _ in range(6):
            round_of_work()
        after = settled()
        # Boxes that wait are part of it, and their number varies.
        self.assertLessEqual(after[2], before[2] + 3, "descriptors of the gate")
        self.assertLessEqual(after[0], before[0] + 60)
        self.assertLessEqual(after[1], before[1] + 8)
