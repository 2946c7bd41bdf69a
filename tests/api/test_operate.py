"""What a server says of itself: its log, its metrics, its description."""
import contextlib
import glob
import json
import os
import re
import signal
import time

import api
import processes
import spec


class Log(api.Case):
    config = ""

    def test_one_line_a_request_and_no_secrets(self):
        token = self.server.new_token("logged")
        client = self.server.client(token)
        session = client.session(metadata={"secret-metadata": 1})
        api.wait_until(lambda: "status=201" in self.server.log)
        before = len(self.server.log.splitlines())
        calls = 0
        for act in (lambda: session.cell("'secret-code'\nprint('secret-output')"), lambda: session.put("secret-name.txt", b"secret-data"),
                    lambda: session.get("secret-name.txt"), lambda: client.get("/v1/sessions?after=secret-query"),
                    lambda: client.get("/secret-path"), lambda: client.post("/v1/run", b"secret-json"),
                    lambda: session.cell("raise ValueError('secret-error')"),
                    lambda: client.get("/healthz", headers={"User-Agent": "secret-agent", "Host": "localhost"}),
                    lambda: client.get("/v1/sessions", headers={"Authorization": "Bearer secret-token"}),
                    lambda: client.get("/healthz", headers={"Host": "secret-host"}),
                    lambda: client.get("/healthz", headers={"Origin": "http://secret-origin"}),
                    lambda: session.stream("print('secret-stream')").cell(),
                    lambda: client.post("/v1/run", code="'secret-run'", files={"secret-file": ""}),
                    lambda: client.delete(session.path)):
            act()
            calls += 1
        api.wait_until(lambda: len(self.server.log.splitlines()) - before >= calls, api.SOON)
        log = self.server.log
        lines = log.splitlines()[before:]
        requests = [line for line in lines if "status=" in line]
        self.assertEqual(len(requests), calls, "\n".join(lines))
        for secret in ("secret", token, self.server.token):
            self.assertNotIn(secret, log)
        for line in requests:
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z .*\bmethod=\S+ .*\bstatus=\d{3}\b")
        self.assertIn("logged", log)

    def test_line_breaks_cannot_forge_lines(self):
        before = len(self.server.log.splitlines())
        self.client.get("/x%0a2020-01-01T00:00:00Z%20forged")
        self.client.get("/healthz", headers={"Host": "a\tb"})
        api.wait_until(lambda: len(self.server.log.splitlines()) - before >= 2, api.SOON)
        self.assertNotIn("forged", self.server.log)
        self.assertEqual(len(self.server.log.splitlines()) - before, 2)


class Quiet(api.Case):
    config = "log_requests = no\n"

    def test_no_lines(self):
        before = self.server.log
        self.client.get("/healthz")
        self.client.get("/v1/sessions")
        time.sleep(0.3)
        self.assertEqual(self.server.log, before)


class Metrics(api.Case):
    config = ""

    def test_they_count(self):
        before = self.client.metrics()
        session = self.session()
        session.cell("1")
        session.cell("1/0")
        session.cell("while True: pass", timeout=0.3)
        later = session.begin("import time; time.sleep(30)")
        busy = self.client.metrics()
        self.assertEqual(busy['retort_sessions{status="busy"}'], 1)
        self.client.post(session.path + "/interrupt")
        later.result()
        self.client.get("/v1/sessions/none")
        after = self.client.metrics()
        self.assertEqual(after['retort_sessions{status="idle"}'], 1)
        for name, more in (("retort_sessions_total", 1), ('retort_cells_total{status="ok"}', 1), ('retort_cells_total{status="error"}', 1),
                           ('retort_cells_total{status="limit"}', 1), ('retort_cells_total{status="interrupted"}', 1),
                           ('retort_cells_total{status="crashed"}', 0), ("retort_cell_seconds_count", 4)):
            self.assertEqual(after[name] - before[name], more, name)
        self.assertGreaterEqual(after['retort_requests_total{code="4xx"}'] - before['retort_requests_total{code="4xx"}'], 1)
        self.assertGreaterEqual(after['retort_requests_total{code="2xx"}'] - before['retort_requests_total{code="2xx"}'], 6)
        self.assertGreater(after["retort_request_seconds_count"], before["retort_request_seconds_count"])
        self.assertGreater(after["process_resident_memory_bytes"], 1 << 20)
        self.assertGreater(after["process_open_fds"], 5)
        self.assertGreaterEqual(after["retort_zygotes_started_total"], 1)
        self.assertGreaterEqual(after["retort_boxes"], 1)

    def test_they_do_not_wait_for_the_keeper(self):
        session = self.session()
        children = processes.children(self.server.process.pid)
        self.assertTrue(children)
        try:
            for pid in children:
                os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            for _ in range(3):
                self.assertGreaterEqual(self.client.metrics()["retort_boxes"], 1)
            self.assertLess(time.monotonic() - began, api.SOON)
        finally:
            for pid in children:
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(session.cell("1")["status"], "ok")

    def test_the_format(self):
        """Each family has its HELP and TYPE before its samples, once; buckets grow."""
        self.session().cell("1")
        answer = self.client.get("/metrics")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        types, helps, seen = {}, set(), []
        for line in answer.body.decode().splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.assertNotIn(name, types)
                types[name] = kind
            elif line.startswith("# HELP "):
                helps.add(line.split(" ")[2])
            else:
                found = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"\\]*"\})? (\S+)', line)
                self.assertTrue(found, line)
                float(found[3])
                family = re.sub(r"_(bucket|sum|count)$", "", found[1]) if found[1] not in types else found[1]
                self.assertIn(family, types, line)
                seen.append(line)
        self.assertEqual(set(types), helps)
        buckets = [float(line.rsplit(" ", 1)[1]) for line in seen if line.startswith("retort_cell_seconds_bucket")]
        self.assertEqual(buckets, sorted(buckets))
        count = next(float(line.rsplit(" ", 1)[1]) for line in seen if line.startswith("retort_cell_seconds_count"))
        self.assertEqual(buckets[-1], count)
        for name, kind in (("retort_sessions", "gauge"), ("retort_sessions_total", "counter"), ("retort_cells_total", "counter"),
                           ("retort_cell_seconds", "histogram"), ("retort_requests_total", "counter"), ("retort_request_seconds", "histogram"),
                           ("retort_boxes", "gauge"), ("retort_boxes_ready", "gauge"), ("retort_boxes_blank", "gauge"),
                           ("retort_zygotes_started_total", "counter"), ("process_resident_memory_bytes", "gauge"), ("process_open_fds", "gauge")):
            self.assertEqual(types.get(name), kind, name)


class Preload(api.Case):
    LOADED = "import sys; print(*(name in sys.modules for name in ('pandas', 'sklearn', 'sympy', 'statsmodels.api', 'colorsys')))"

    def loaded(self, setting):
        client = self.start(f"{setting}\npool = 0\nblanks = 0\n").client()
        return api.text(client.post("/v1/run", code=self.LOADED).json).split()

    def test_none(self):
        self.assertEqual(self.loaded("preload = none")[:4], ["False"] * 4)

    def test_some(self):
        self.assertEqual(self.loaded("preload = pandas colorsys"), ["True", "False", "False", "False", "True"])

    def test_the_usual(self):
        self.assertEqual(self.loaded("# preload")[:4], ["True"] * 4)

    def test_wrong(self):
        done = api.run("serve", "--state", api.new_directory(), "--listen", "127.0.0.1:0", "--set", "preload=os;system")
        self.assertEqual(done.returncode, 125, done)
        self.assertIn("preload", done.stderr)


class Description(api.Case):
    def test_it_is_served_as_it_is_in_the_tree(self):
        with open(spec.PATH) as f:
            self.assertEqual(self.client.get("/openapi.json").json, json.load(f))

    def test_every_call_in_it_is_there(self):
        session = self.session()
        session.cell("1")
        session.put("f", b"x")
        for method, path, _ in spec.operations():
            if (method, path) == ("DELETE", "/v1/sessions/{sid}"):
                continue
            with self.subTest(method=method, path=path):
                target = path.replace("{sid}", session.id).replace("{n}", "1").replace("{path}", "f")
                answer = self.client.call(method, target, {} if method == "POST" else None)
                # Without a session of its own protocol /mcp has no stream, and says so with this very status.
                self.assertNotIn(answer.status, (404,) if path == "/mcp" else (404, 405), answer)
                self.assertNotIn(b"this path takes", answer.body)
                if method == "POST" and answer.status == 201:
                    for made in answer.json.get("sessions", [answer.json]):
                        self.client.delete("/v1/sessions/" + made["id"])
                if method == "DELETE":
                    session.put("f", b"x")

    def test_no_other_method_is(self):
        for path, item in spec.DESCRIPTION["paths"].items():
            for method in ("GET", "PUT", "POST", "DELETE", "PATCH"):
                if method.lower() not in item:
                    with self.subTest(method=method, path=path):
                        target = path.replace("{sid}", "x" * 32).replace("{n}", "1").replace("{path}", "f")
                        self.assertError(self.client.call(method, target), 405, "method_not_allowed")

    def test_it_holds_together(self):
        """All references lead somewhere, and all that is defined is used."""
        text = json.dumps(spec.DESCRIPTION)
        used = set(re.findall(r'"#/components/([^"]+)"', text))
        for reference in used:
            spec.follow({"$ref": "#/components/" + reference})
        defined = {f"{kind}/{name}" for kind, things in spec.DESCRIPTION["components"].items()
                   for name in things if kind != "securitySchemes"}
        self.assertEqual(defined - used, set())
        ids = [operation["operationId"] for _, _, operation in spec.operations()]
        self.assertEqual(len(ids), len(set(ids)))
        for _, path, operation in spec.operations():
            names = set(re.findall(r"\{(\w+)\}", path))
            parameters = spec.DESCRIPTION["paths"][path].get("parameters", []) + operation.get("parameters", [])
            self.assertEqual({p["name"] for p in map(spec.follow, parameters) if p["in"] == "path"}, names)

    def test_every_error_in_it_is_somebodys(self):
        sources = ""
        for path in glob.glob(os.path.join(os.path.dirname(spec.PATH), "*.c")):
            with open(path) as f:
                sources += f.read()
        codes = spec.DESCRIPTION["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"]
        self.assertEqual([code for code in codes if f'"{code}"' not in sources], [])

    def test_requests_that_are_answered_are_described(self):
        session = {"$ref": "#/components/schemas/SessionRequest"}
        for body in ({}, {"limits": {"memory": "512m", "cpus": 0.5, "cpu": "none"}}, {"idle_timeout": "none"}, {"idle_timeout": 5}):
            spec.validate(body, session, "a request")
            answer = self.client.post("/v1/sessions", body)
            self.assertEqual(answer.status, 201)
            self.client.delete("/v1/sessions/" + answer.json["id"])

    def test_the_root(self):
        self.assertEqual(self.server.stranger().get("/").status, 200)


class Confined(api.Case):
    """The gate reads what strangers send: it has no right that it does not need."""

    def status(self):
        with open(f"/proc/{self.server.process.pid}/status") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)

    def test_no_rights(self):
        status = self.status()
        self.assertNotIn("0", status["Uid"].split())
        self.assertNotIn("0", status["Gid"].split())
        self.assertEqual(status["Groups"].strip() if os.geteuid() == 0 else "", "")
        for kind in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            self.assertEqual(int(status[kind], 16), 0, kind)
        self.assertEqual(status["NoNewPrivs"], "1")

    def test_a_filter(self):
        if api.SANITIZED:
            self.skipTest("the sanitizers need calls that it has no use for")
        self.assertEqual(self.status()["Seccomp"], "2")


class Light(api.Case):
    """A fork copies what its parent has mapped, for every box anew."""

    def maps(self, name):
        """Of all processes below the server with this name; one that lets nobody look has none."""
        found = []
        for pid in processes.descendants(self.server.process.pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as f, open(f"/proc/{pid}/maps") as maps:
                if f.read().strip() == name:
                    found.append(maps.read())
        return found

    def test_init_has_only_what_it_uses(self):
        session = self.session()
        session.put("a", b"bytes")
        self.assertEqual(session.cell("open('b', 'w').write('x')")["files"][0]["path"], "b")
        if os.geteuid() == 0:
            with open(f"/proc/{self.server.process.pid}/maps") as f:
                self.assertIn(".so", f.read(), "the check cannot fail")
            self.assertTrue(self.maps("init"))
        for each in self.maps("init"):
            self.assertIn("/retort-keeper", each)
            self.assertNotIn(".so", each)
