"""Who may do what: tokens, their quotas and their sight; Host, Origin and addresses."""
import os
import socket
import time

import api
import spec


class Authentication(api.Case):
    def test_every_call_asks_for_a_token(self):
        sid = "x" * 32
        for method, path, operation in spec.operations():
            if operation.get("security") == []:
                continue
            target = path.replace("{sid}", sid).replace("{n}", "1").replace("{path}", "f")
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer "},
                            {"Authorization": "Basic eDp5"}, {"Authorization": self.client.token},
                            {"X-API-Key": ""}, {"Authorization": "Bearer " + self.client.token[:-1]},
                            {"Authorization": f"Bearer {self.client.token}x"}):
                with self.subTest(method=method, path=path, headers=headers):
                    body = {"code": "1"} if method == "POST" else None
                    answer = self.server.stranger().call(method, target, body, headers)
                    self.assertError(answer, 401, "unauthorized")
                    self.assertTrue(answer.headers["WWW-Authenticate"].startswith("Bearer"))

    def test_both_headers(self):
        stranger = self.server.stranger()
        for headers in ({"Authorization": f"Bearer {self.client.token}"}, {"X-API-Key": self.client.token},
                        {"authorization": f"bearer {self.client.token}"}):
            self.assertEqual(stranger.get("/v1/sessions", headers=headers).status, 200, headers)

    def test_not_in_the_query(self):
        """There it would end up in logs and histories."""
        answer = self.server.stranger().get(f"/v1/sessions?token={self.client.token}")
        self.assertError(answer, 401, "unauthorized")

    def test_health_needs_none(self):
        self.assertEqual(self.server.stranger().get("/healthz").json, {"status": "ok"})

    def test_strange_tokens(self):
        for token in ("\xff\xfe", "a" * 8000, "'; DROP TABLE tokens; --", "%00", "\t", "null"):
            with self.subTest(token=token[:10]):
                headers = {"Authorization": f"Bearer {token}".encode("latin-1")}
                self.assertError(self.server.stranger().get("/v1/sessions", headers=headers), 401)
        self.assertAnswers()

    def test_the_refusal_comes_before_the_body(self):
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        got, _ = api.receive(sock, answers=1)
        self.assertEqual(api.split_responses(got)[0][0], 401)


class Tokens(api.Case):
    def setUp(self):
        self.state = self.directory()
        self.server = self.start(state=self.state)

    def test_the_text_is_stored_nowhere(self):
        tokens = [self.server.token, self.server.new_token("one"), self.server.new_token("two", "--sessions", "3")]
        for token in tokens:
            self.assertEqual(self.server.client(token).post("/v1/run", code="1").status, 200)
            self.server.client(token).session().cell("1")
        self.server.end(15)
        seen = 0
        for directory, _, names in os.walk(self.state):
            for name in names:
                with open(os.path.join(directory, name), "rb") as f:
                    data = f.read()
                seen += len(data)
                for token in tokens:
                    self.assertFalse(token.partition("_")[2].encode() in data, name)  # which would be long to show
        self.assertGreater(seen, 1000)
        for token in tokens:
            self.assertNotIn(token, self.server.log)

    def test_the_state_is_private(self):
        for directory, _, names in os.walk(self.state):
            for name in names:
                self.assertEqual(os.stat(os.path.join(directory, name)).st_mode & 0o007, 0, name)

    def test_new_list_revoke(self):
        token = self.server.new_token("alice")
        self.assertGreaterEqual(len(token), 22)
        listed = api.run("token", "list", "--state", self.state)
        self.assertEqual(listed.returncode, 0, listed)
        self.assertIn("alice", listed.stdout)
        self.assertNotIn(token, listed.stdout)
        again = api.run("token", "new", "alice", "--state", self.state)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("alice", again.stderr)
        for name in ("", "a b", "ü", "x" * 65, "a/b"):
            self.assertNotEqual(api.run("token", "new", name, "--state", self.state).returncode, 0, name)
        self.assertEqual(self.server.client(token).get("/v1/sessions").status, 200)
        self.assertEqual(api.run("token", "revoke", "alice", "--state", self.state).returncode, 0)
        self.assertError(self.server.client(token).get("/v1/sessions"), 401, "unauthorized")
        self.assertNotEqual(api.run("token", "revoke", "alice", "--state", self.state).returncode, 0)
        fresh = self.server.new_token("alice")
        self.assertNotEqual(fresh, token)
        self.assertEqual(self.server.client(fresh).get("/v1/sessions").json["data"], [])

    def test_revoked_while_a_stream_runs(self):
        client = self.server.client(self.server.new_token("bob"))
        session = client.session()
        with session.stream("import time\nfor i in range(1000):\n    print(i, flush=True)\n    time.sleep(0.1)",
                            timeout="none") as stream:
            stream.until("stdout")
            began = time.monotonic()
            api.run("token", "revoke", "bob", "--state", self.state)
            try:
                for _ in stream:
                    pass
            except Exception:
                pass  # however it ends
            self.assertLess(time.monotonic() - began, api.SOON)
        self.assertError(client.get(session.path), 401)

    def test_revoked_ones_leave_no_sessions(self):
        client = self.server.client(self.server.new_token("carol"))
        client.session()
        operator = self.server.client()
        self.assertEqual(operator.metrics()['retort_sessions{status="idle"}'], 1)
        api.run("token", "revoke", "carol", "--state", self.state)
        self.assertTrue(api.wait_until(lambda: operator.metrics()['retort_sessions{status="idle"}'] == 0))


class Sight(api.Case):
    """Another token's session is a 404 everywhere."""

    def test_everywhere(self):
        mine = self.server.client(self.server.new_token("mine"))
        other = self.server.client(self.server.new_token("other"))
        live, ended = self.session(mine), self.session(mine)
        for session in (live, ended):
            session.cell("print('secret')")
            session.put("f", b"secret")
        ended.delete()
        for client in (other, self.client):
            for session in (live, ended):
                for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/cells"), ("GET", "/cells/1"),
                                     ("POST", "/cells"), ("POST", "/interrupt"), ("GET", "/variables"), ("GET", "/files"),
                                     ("GET", "/files?archive=zip"), ("GET", "/files/f"), ("PUT", "/files/f"),
                                     ("DELETE", "/files/f"), ("GET", "/notebook")):
                    with self.subTest(method=method, path=path):
                        body = {"code": "1"} if (method, path) == ("POST", "/cells") else b"" if method == "PUT" else None
                        self.assertError(client.call(method, session.path + path, body), 404, "not_found")
                with client.stream(session.path + "/cells", code="1") as stream:
                    self.assertError(stream.answer, 404)
            form = {"Content-Type": "multipart/form-data; boundary=b"}
            body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="g"\r\n\r\nx\r\n--b--\r\n'
            self.assertError(client.post(live.path + "/files", body, headers=form), 404, "not_found")
            for query in ("", "?status=ended"):
                ids = [s["id"] for s in client.get("/v1/sessions" + query).json["data"]]
                self.assertFalse({live.id, ended.id} & set(ids))
        self.assertEqual(live.files(), ["f"])
        self.assertEqual(live.cell("1")["n"], 2)

    def test_the_same_answer_as_for_one_that_never_was(self):
        mine = self.server.client(self.server.new_token("mine2"))
        other = self.server.client(self.server.new_token("other2"))
        session = self.session(mine)
        self.assertEqual(other.get(session.path).body, other.get("/v1/sessions/" + "x" * len(session.id)).body)

    def test_metrics(self):
        mine = self.server.client(self.server.new_token("mine3"))
        other = self.server.client(self.server.new_token("other3"))
        session = self.session(mine)
        session.cell("1")
        session.cell("1/0")
        seen = mine.metrics()
        self.assertEqual((seen['retort_sessions{status="idle"}'], seen["retort_sessions_total"],
                          seen['retort_cells_total{status="ok"}'], seen['retort_cells_total{status="error"}']), (1, 1, 1, 1))
        seen = other.metrics()
        self.assertEqual((seen['retort_sessions{status="idle"}'], seen["retort_sessions_total"],
                          seen['retort_cells_total{status="ok"}'], seen["retort_cell_seconds_count"]), (0, 0, 0, 0))
        for name in ("retort_boxes", "retort_boxes_ready", "retort_boxes_blank", "retort_zygotes_started_total",
                     "process_resident_memory_bytes", "process_open_fds"):
            self.assertNotIn(name, seen)
            self.assertIn(name, self.client.metrics())
        operator = self.server.client(self.server.new_token("op3", "--operator"))
        self.assertIn("retort_boxes", operator.metrics())
        self.assertGreaterEqual(operator.metrics()['retort_cells_total{status="error"}'], 1)
        self.assertError(operator.get(session.path), 404)


class Quotas(api.Case):
    def test_sessions(self):
        client = self.server.client(self.server.new_token("q1", "--sessions", "2"))
        first = self.session(client)
        self.session(client)
        answer = client.post("/v1/sessions")
        self.assertError(answer, 429, "quota_sessions")
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.session(self.client)  # others are not held by it
        first.delete()
        self.session(client)

    def test_runs_count_too(self):
        client = self.server.client(self.server.new_token("q2", "--sessions", "1"))
        self.session(client)
        self.assertError(client.post("/v1/run", code="1"), 429, "quota_sessions")

    def test_memory(self):
        client = self.server.client(self.server.new_token("q3", "--memory", "600m"))
        self.assertError(client.post("/v1/sessions"), 429, "quota_memory")
        first = self.session(client, limits={"memory": "300m"})
        self.session(client, limits={"memory": "300m"})
        self.assertError(client.post("/v1/sessions", limits={"memory": "64m"}), 429, "quota_memory")
        self.assertError(client.post("/v1/run", code="1", limits={"memory": "64m"}), 429, "quota_memory")
        first.delete()
        self.session(client, limits={"memory": "64m"})

    def test_memory_without_limit(self):
        client = self.server.client(self.server.new_token("q4", "--memory", "600m"))
        answer = client.post("/v1/sessions", limits={"memory": "none"})
        self.assertIn(answer.code, ("quota_memory", "limit_too_high"))

    def test_cells_a_minute(self):
        client = self.server.client(self.server.new_token("q5", "--cells-per-minute", "3"))
        session = self.session(client)
        for _ in range(3):
            session.cell("1")
        answer = client.post(session.path + "/cells", code="1")
        self.assertError(answer, 429, "too_many_cells")
        wait = int(answer.headers["Retry-After"])
        self.assertGreaterEqual(wait, 1)
        self.assertLessEqual(wait, 60)
        self.assertError(client.post("/v1/run", code="1"), 429, "too_many_cells")
        self.assertError(client.get(session.path + "/variables"), 429, "too_many_cells")
        self.assertEqual(session.info()["cells"], 3)
        self.assertEqual(self.session().cell("1")["status"], "ok")

    def test_it_comes_back(self):
        client = self.server.client(self.server.new_token("q6", "--cells-per-minute", "40"))
        session = self.session(client)
        self.assertEqual(session.cell("1")["status"], "ok")
        for _ in range(200):
            refused = client.post(session.path + "/cells", code="1")
            if refused.status != 200:
                break
        self.assertError(refused, 429, "too_many_cells")
        time.sleep(int(refused.headers["Retry-After"]))
        self.assertEqual(session.cell("1")["status"], "ok")


class Hosts(api.Case):
    """So that a page in somebody's browser cannot drive a local server."""

    config = "hosts = box.example other.example\norigins = https://app.example\n"

    def test_names(self):
        port = self.server.port
        for host, ok in (("localhost", True), (f"localhost:{port}", True), ("127.0.0.1", True), (f"127.0.0.1:{port}", True),
                         ("[::1]", True), (f"[::1]:{port}", True), ("10.1.2.3", True), ("box.example", True),
                         (f"BOX.example:{port}", True), ("other.example", True), ("evil.example", False),
                         ("localhost.evil.example", False), ("127.0.0.1.evil.example", False), ("box.example.evil", False),
                         ("", False), ("a b", False), ("localhost@evil.example", False), ("x" * 3000, False)):
            with self.subTest(host=host[:40]):
                for path in ("/healthz", "/v1/sessions"):
                    answer = self.client.get(path, headers={"Host": host})
                    if ok:
                        self.assertEqual(answer.status, 200, answer)
                    else:
                        self.assertIn(answer.status, (421, 400), answer)
                        if answer.status == 421:
                            self.assertEqual(answer.code, "wrong_host")

    def test_pages(self):
        port = self.server.port
        own = f"127.0.0.1:{port}"
        for origin, ok in (("https://app.example", True), (f"http://{own}", True), ("http://evil.example", False),
                           ("null", False), ("http://app.example", False), ("https://app.example.evil", False),
                           ("https://app.example:8443", False), (f"http://127.0.0.1:{port + 1}", False), ("", False),
                           (f"http://localhost:{port}", False), ("file://", False)):
            with self.subTest(origin=origin):
                answer = self.client.get("/v1/sessions", headers={"Origin": origin, "Host": own})
                if ok:
                    self.assertEqual(answer.status, 200, answer)
                else:
                    self.assertError(answer, 403, "forbidden_origin")
        answer = self.client.post("/v1/run", b'{"code": "1"}', headers={"Origin": "http://evil.example"})
        self.assertError(answer, 403, "forbidden_origin")

    def test_a_form_of_a_page_cannot_be_json(self):
        answer = self.client.post("/v1/run", b'{"code": "1"}', headers={"Content-Type": "text/plain"})
        self.assertError(answer, 415)


class Addresses(api.Case):
    def refused(self, listen, config=""):
        args = ["serve", "--listen", listen, "--state", self.directory()]
        done = api.run(*args)
        self.assertNotIn(done.returncode, (0, None))
        self.assertEqual(done.stdout, "")
        return done

    def test_other_addresses_need_a_token(self):
        for listen in ("0.0.0.0:0", "[::]:0"):
            with self.subTest(listen=listen):
                done = self.refused(listen)
                self.assertIn("token", done.stderr)
                self.assertIn(done.returncode, (1, 2, 125))

    def test_with_a_token_they_are_served(self):
        state = self.directory()
        made = api.run("token", "new", "remote", "--state", state)
        self.assertEqual(made.returncode, 0, made)
        server = self.start(state=state, listen="0.0.0.0:0", token=made.stdout.strip())
        self.assertNotIn("token=", server.ready)
        server.address = "127.0.0.1"
        self.assertEqual(server.client().get("/v1/sessions").status, 200)

    def test_loopback_of_version_6(self):
        if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6") or not open("/proc/net/if_inet6").read():
            self.skipTest("no IPv6 here")
        server = self.start(listen="[::1]:0")
        self.assertEqual(server.client().get("/v1/sessions").status, 200)

    def test_nonsense(self):
        for listen in ("127.0.0.1", "127.0.0.1:x", ":", "127.0.0.1:70000", "no.such.host.invalid:0", ""):
            with self.subTest(listen=listen):
                self.assertTrue(self.refused(listen).stderr.startswith("retort: "))

    def test_a_port_that_is_taken(self):
        done = self.refused(f"127.0.0.1:{self.server.port}")
        self.assertIn(str(self.server.port), done.stderr)
