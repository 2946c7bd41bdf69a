"""Sessions: made, listed, shown, ended; their limits, their idle time, and how many there may be."""
import os
import time

import api

LIMITS = {"timeout", "cpu", "memory", "disk", "files", "pids", "output", "cpus"}


class Make(api.Case):
    def test_without_a_body(self):
        answer = self.client.post("/v1/sessions")
        self.assertEqual(answer.status, 201, answer)
        session = answer.json
        self.addCleanup(self.client.delete, f"/v1/sessions/{session['id']}")
        self.assertEqual(answer.headers["Location"], f"/v1/sessions/{session['id']}")
        self.assertEqual(session["status"], "idle")
        self.assertEqual(session["environment"], "default")
        self.assertEqual(session["cells"], 0)
        self.assertEqual(session["metadata"], {})
        self.assertEqual(session["idle_timeout"], 1200)
        self.assertEqual(session["limits"], {"timeout": 60, "cpu": "none", "memory": 1 << 30, "disk": 512 << 20,
                                             "files": 10000, "pids": 64, "output": 1 << 20, "cpus": 1})
        self.assertLess(abs(api.moment(session["created_at"]) - time.time()), 30)
        self.assertAlmostEqual(api.moment(session["expires_at"]),
                               api.moment(session["last_active_at"]) + 1200, delta=1)
        self.assertEqual(self.client.get(f"/v1/sessions/{session['id']}").json["id"], session["id"])

    def test_bodies_that_say_nothing(self):
        for body, headers in ((b"", {}), (b"{}", {}), (b" {\n} ", {"Content-Type": "application/json; charset=utf-8"}),
                              (b"", {"Content-Type": "application/json"})):
            with self.subTest(body=body, headers=headers):
                answer = self.client.post("/v1/sessions", body, headers=headers)
                self.assertEqual(answer.status, 201, answer)
                self.client.delete(f"/v1/sessions/{answer.json['id']}")

    def test_everything_can_be_said(self):
        metadata = {"user": "Zoë", "n": 1, "deep": [{"a": [None, True, 1.5]}], "": "\t😀"}
        session = self.session(limits={"timeout": 5, "cpu": 2.5, "memory": "256m", "disk": "1.5m", "files": "100",
                                       "pids": 20, "output": 2048, "cpus": 0.5},
                               idle_timeout=77.5, environment="default", metadata=metadata)
        info = session.info()
        self.assertEqual(info["limits"], {"timeout": 5, "cpu": 2.5, "memory": 256 << 20, "disk": 3 << 19,
                                          "files": 100, "pids": 20, "output": 2048, "cpus": 0.5})
        self.assertEqual(info["idle_timeout"], 77.5)
        self.assertEqual(info["metadata"], metadata)

    def test_limits_hold(self):
        session = self.session(limits={"disk": "1m", "timeout": 0.5, "output": 300})
        self.assertIn("No space", session.cell("open('f', 'wb').write(bytes(2 << 20))")["error"]["value"])
        limit = session.cell("while True: pass")["limit"]
        self.assertEqual((limit["kind"], limit["limit"]), ("wall", 0.5))
        self.assertIn("truncated", session.cell("print('x' * 1000)"))

    def test_none_lifts(self):
        session = self.session(limits={"timeout": "none", "cpus": "none"}, idle_timeout="none")
        info = session.info()
        self.assertEqual((info["limits"]["timeout"], info["limits"]["cpus"]), ("none", "none"))
        self.assertEqual(info["idle_timeout"], "none")
        self.assertIsNone(info["expires_at"])

    def test_ids_cannot_be_guessed(self):
        ids = {self.session().id for _ in range(3)}
        self.assertEqual(len(ids), 3)
        for sid in ids:
            self.assertRegex(sid, r"^[A-Za-z0-9._~-]{22,63}$")


class Refused(api.Case):
    def refused(self, body, code="bad_request", text=None):
        with self.subTest(body=body):
            answer = self.client.post("/v1/sessions", body)
            if answer.status == 201:
                self.client.delete(f"/v1/sessions/{answer.json['id']}")
            self.assertError(answer, 400, code, text)

    def test_not_an_object(self):
        for body in ("x", 1, b"null", True):
            self.refused(body, None)

    def test_wrong_types(self):
        for body in ([], {"limits": []}, {"limits": 1}, {"limits": "1g"}, {"metadata": []},
                     {"metadata": "x"}, {"environment": 1}, {"environment": []}, {"idle_timeout": []},
                     {"idle_timeout": {}}, {"idle_timeout": True}, {"limits": {"memory": []}},
                     {"limits": {"memory": True}}, {"limits": {"memory": {}}}):
            self.refused(body)

    def test_unknown_members_are_named(self):
        self.refused({"limit": {}}, text="limit")
        self.refused({"limits": {"ram": 1}}, text="ram")
        self.refused({"timeout": 5}, text="timeout")

    def test_limits_that_are_none(self):
        for name in sorted(LIMITS):
            self.refused({"limits": {name: 0}}, text=name)
            self.refused({"limits": {name: -1}}, text=name)
            self.refused({"limits": {name: "much"}}, text=name)
            self.refused({"limits": {name: "0"}}, text=name)
        self.refused({"limits": {"memory": "1e400"}}, text="memory")
        self.refused({"limits": {"memory": 1}}, text="memory")
        self.refused({"limits": {"files": 20.5}}, text="files")

    def test_idle_times_that_are_none(self):
        for value in (0, -1, "never", "", -0.5):
            self.refused({"idle_timeout": value}, text="idle_timeout")

    def test_an_environment_that_is_not_offered(self):
        for name in ("no-such", "", "../default", "/etc"):
            self.refused({"environment": name}, text="environment")

    def test_large_metadata(self):
        self.assertError(self.client.post("/v1/sessions", metadata={"x": "y" * 30000}), 400, "bad_request", "metadata")
        self.assertError(self.client.post("/v1/sessions", metadata={"x": "y" * (4 << 20)}), 413, "too_large")


class TooHigh(api.Case):
    config = "max_memory = 512m\nmax_timeout = 100\nmemory = 256m\ntimeout = 50\nidle_timeout = 300\nmax_disk = 1g\n"

    def test_the_servers_own_defaults(self):
        info = self.session().info()
        self.assertEqual((info["limits"]["memory"], info["limits"]["timeout"], info["idle_timeout"]),
                         (256 << 20, 50, 300))

    def test_over_the_most(self):
        for limits in ({"memory": "513m"}, {"memory": "none"}, {"timeout": 101}, {"timeout": "none"}, {"disk": "2g"}):
            with self.subTest(limits=limits):
                name = next(iter(limits))
                self.assertError(self.client.post("/v1/sessions", limits=limits), 400, "limit_too_high", name)
                self.assertError(self.client.post("/v1/run", code="1", limits=limits), 400, "limit_too_high", name)
        self.session(limits={"memory": "512m", "timeout": 100})

    def test_a_cells_own_time(self):
        session = self.session()
        for timeout in (101, "none"):
            answer = self.client.post(session.path + "/cells", code="1", timeout=timeout)
            self.assertError(answer, 400, "limit_too_high", "timeout")
            answer = self.client.post("/v1/run", code="1", timeout=timeout)
            self.assertError(answer, 400, "limit_too_high", "timeout")
        self.assertEqual(session.cell("1", timeout=100)["status"], "ok")


class List(api.Case):
    config = ""  # alone with its sessions

    def pages(self, path, limit):
        """All ids, page by page."""
        ids, after, pages = [], None, 0
        while True:
            separator = "&" if "?" in path else "?"
            answer = self.client.get(f"{path}{separator}limit={limit}" + (f"&after={after}" if after else ""))
            self.assertEqual(answer.status, 200, answer)
            page = answer.json
            self.assertLessEqual(len(page["data"]), limit)
            ids += [s["id"] for s in page["data"]]
            pages += 1
            after = page["next"]
            if after is None:
                return ids, pages
            self.assertEqual(len(page["data"]), limit)

    def test_pages(self):
        made = [self.session() for _ in range(5)]
        newest_first = [s.id for s in reversed(made)]
        self.assertEqual(self.pages("/v1/sessions", 50), (newest_first, 1))
        self.assertEqual(self.pages("/v1/sessions", 2), (newest_first, 3))
        self.assertEqual(self.pages("/v1/sessions", 5)[0], newest_first)
        for session in made:
            session.delete()
        self.assertEqual(self.pages("/v1/sessions", 50), ([], 1))
        ended = self.pages("/v1/sessions?status=ended", 50)[0]
        self.assertLessEqual(set(newest_first), set(ended))
        self.assertEqual(len(set(ended)), len(ended))
        self.assertEqual(self.pages("/v1/sessions?status=ended", 2)[0], ended)

    def test_a_session_that_ends_between_two_pages(self):
        made = [self.session() for _ in range(4)]
        page = self.client.get("/v1/sessions?limit=2").json
        made[2].delete()  # the last one of that page: the cursor
        rest = self.client.get(f"/v1/sessions?limit=2&after={page['next']}").json
        self.assertEqual([s["id"] for s in rest["data"]], [made[1].id, made[0].id])

    def test_bad_pages(self):
        for query in ("limit=0", "limit=501", "limit=-1", "limit=x", "limit=", "limit=1.5", "limit=99999999999999999999",
                      "limit=%00", "limit=5x"):
            with self.subTest(query=query):
                self.assertError(self.client.get(f"/v1/sessions?{query}"), 400, "bad_request", "limit")
        self.assertError(self.client.get("/v1/sessions?status=dead"), 400, "bad_request", "status")

    def test_a_cursor_that_nobody_gave(self):
        for after in ("x", "%00", "a" * 3000, "%ff"):
            with self.subTest(after=after[:10]):
                self.assertIn(self.client.get(f"/v1/sessions?after={after}").status, (200, 400))


class End(api.Case):
    def test_delete(self):
        session = self.session()
        session.cell("x = 1\nprint('kept')")
        answer = self.client.delete(session.path)
        self.assertEqual((answer.status, answer.body), (204, b""))
        info = session.info()
        self.assertEqual((info["status"], info["reason"], info["cells"]), ("ended", "deleted", 1))
        self.assertGreaterEqual(api.moment(info["ended_at"]), api.moment(info["created_at"]))
        self.assertIsNone(info["expires_at"])
        self.assertEqual(api.text(self.client.get(session.path + "/cells/1").json), "kept\n")
        self.assertNotIn(session.id, [s["id"] for s in self.client.get("/v1/sessions?limit=500").json["data"]])
        self.assertIn(session.id, [s["id"] for s in self.client.get("/v1/sessions?status=ended&limit=500").json["data"]])

    def test_delete_once_more_forgets(self):
        session = self.session()
        session.cell("x = 1")
        self.assertEqual(self.client.delete(session.path).status, 204)
        self.assertEqual(self.client.delete(session.path).status, 204)
        for path in ("", "/cells", "/cells/1", "/notebook", "/files", "/variables"):
            self.assertError(self.client.get(session.path + path), 404, "not_found")
        self.assertError(self.client.delete(session.path), 404, "not_found")

    def test_an_ended_one_has_only_a_journal(self):
        session = self.session()
        session.put("f", b"x")
        self.client.delete(session.path)
        for method, path in (("POST", "/cells"), ("POST", "/interrupt"), ("GET", "/variables"), ("GET", "/files"),
                             ("GET", "/files?archive=zip"), ("GET", "/files/f"), ("PUT", "/files/f"),
                             ("DELETE", "/files/f")):
            with self.subTest(method=method, path=path):
                body = {"code": "1"} if path == "/cells" else b"x" if method == "PUT" else None
                self.assertError(self.client.call(method, session.path + path, body), 410, "session_ended")
        form = {"Content-Type": "multipart/form-data; boundary=b"}
        body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nx\r\n--b--\r\n'
        self.assertError(self.client.post(session.path + "/files", body, headers=form), 410, "session_ended")
        for path in ("/cells", "/notebook", ""):
            self.assertEqual(self.client.get(session.path + path).status, 200)

    def test_delete_while_a_cell_runs(self):
        session = self.session()
        later = session.begin("import time\ntime.sleep(60)", first="print('so far', flush=True)")
        began = time.monotonic()
        self.assertEqual(self.client.delete(session.path).status, 204)
        self.assertLess(time.monotonic() - began, api.SOON)
        answer = later.result()
        if answer.status == 200:
            self.assertEqual(api.text(answer.json), "so far\n")
            self.assertIn(answer.json["status"], ("interrupted", "crashed"))
        else:
            self.assertError(answer, 410, "session_ended")
        self.assertEqual(session.info()["reason"], "deleted")

    def test_delete_with_cells_in_the_queue(self):
        session = self.session()
        first = session.begin("import time\ntime.sleep(60)")
        second = session.in_background("print('never')")
        time.sleep(0.3)
        self.assertEqual(self.client.delete(session.path).status, 204)
        first.result()
        self.assertError(second.result(), 410, "session_ended")

    def test_a_crash_is_survived(self):
        session = self.session()
        session.cell("kept = 5")
        session.put("file", b"x")
        cell = session.cell("print('before', flush=True)\nimport ctypes\nctypes.string_at(0)")
        self.assertEqual((cell["status"], api.text(cell), cell["restored_to"]), ("crashed", "before\n", 1))
        self.assertEqual(session.info()["status"], "idle")
        self.assertEqual(self.client.get(session.path + "/cells/2").json, cell)
        cell = session.cell("kept, open('file').read()")
        self.assertEqual((cell["n"], api.result(cell)), (3, "(5, 'x')"))
        names = [v["name"] for v in self.client.get(session.path + "/variables").json["data"]]
        self.assertEqual(names, ["kept"])

    def test_a_crash_while_variables_are_listed_is_survived(self):
        session = self.session()
        session.cell("import os\nclass Bad:\n    def __repr__(self): os._exit(1)\nkept = 5")
        session.cell("bad = Bad()")
        self.assertError(self.client.get(session.path + "/variables"), 409, "no_variables")
        self.assertEqual(api.result(session.cell("del bad; kept")), "5")

    def test_cells_that_wait_run_in_what_was_restored(self):
        session = self.session()
        session.cell("kept = 5")
        first = session.begin("import os, time\ntime.sleep(1)\nos.abort()")
        second = session.in_background("kept += 1; kept")
        self.assertEqual(first.result().json["restored_to"], 1)
        self.assertEqual(api.result(second.result().json), "6")

    def test_a_limit_is_survived(self):
        session = self.session(limits={"memory": "128m"})
        session.cell("kept = 5")
        cell = session.cell("print('before', flush=True)\nx = bytearray(400 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1")
        self.assertEqual(api.text(cell), "before\n")
        if cell["status"] == "error" and (api.USER is not None or os.geteuid() != 0):
            self.assertEqual(cell["error"]["name"], "MemoryError")  # without cgroups it is refused to one process
            return
        self.assertEqual((cell["status"], cell["limit"]["kind"], cell["restored_to"]), ("limit", "memory", 1))
        self.assertEqual(session.info()["status"], "idle")
        self.assertEqual(api.result(session.cell("kept")), "5")

    def test_one_that_talks_nonsense_between_cells(self):
        session = self.session()
        session.cell("import threading, os\nthreading.Timer(0.3, os.write, (3, bytes(64))).start()")
        self.assertTrue(api.wait_until(lambda: session.info()["status"] == "ended"))
        self.assertEqual(session.info()["reason"], "crashed")
        self.assertError(self.client.post(session.path + "/cells", code="1"), 410, "session_ended")

    def test_exit_is_survived(self):
        session = self.session()
        session.cell("kept = 5")
        cell = session.cell("import os; os._exit(0)")
        self.assertEqual((cell["status"], cell["restored_to"]), ("crashed", 1))
        self.assertEqual(session.info()["status"], "idle")


class Idle(api.Case):
    def test_it_ends_when_it_said_so(self):
        answer = self.client.post("/v1/sessions", idle_timeout=1.5)
        session, expires = api.Session(self.client, answer.json["id"]), api.moment(answer.json["expires_at"])
        self.assertTrue(api.wait_until(lambda: session.info()["status"] == "ended"))
        info = session.info()
        self.assertEqual(info["reason"], "idle")
        self.assertLess(api.moment(info["ended_at"]), expires + api.SOON)
        self.assertGreaterEqual(api.moment(info["ended_at"]), expires - 0.05)

    def test_looking_does_not_keep_it(self):
        """Or else a page that shows it would."""
        session = self.session(idle_timeout=300)
        before = session.info()["expires_at"]
        time.sleep(0.5)
        self.assertEqual(session.info()["expires_at"], before)

    def test_a_cell_keeps_it(self):
        session = self.session(idle_timeout=300)
        before = session.info()
        time.sleep(0.6)
        cell = session.cell("import time; time.sleep(0.6); print('x')")
        after = session.info()
        self.assertGreater(api.moment(after["expires_at"]), api.moment(before["expires_at"]) + 1)
        self.assertAlmostEqual(api.moment(after["expires_at"]), api.moment(after["last_active_at"]) + 300, delta=0.1)
        self.assertEqual(cell["status"], "ok")

    def test_a_running_cell_is_not_idle(self):
        session = self.session(idle_timeout=1)
        later = session.hold("print('done')")
        time.sleep(2)
        info = session.info()
        self.assertEqual(info["status"], "busy")
        session.release()
        self.assertEqual(api.text(later.result().json), "done\n")

    def test_a_file_keeps_it(self):
        session = self.session(idle_timeout=300)
        before = api.moment(session.info()["expires_at"])
        time.sleep(0.6)
        session.put("f", b"x")
        self.assertGreater(api.moment(session.info()["expires_at"]), before + 0.4)


class Full(api.Case):
    config = "max_sessions = 2\n"

    def test_no_more_than_so_many(self):
        first, second = self.session(), self.session()
        answer = self.client.post("/v1/sessions")
        self.assertError(answer, 503, "too_many_sessions")
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.assertEqual(first.cell("1")["status"], "ok")
        second.delete()
        third = self.session()
        self.assertEqual(third.cell("1")["status"], "ok")


class Missing(api.Case):
    def test_a_session_that_never_was(self):
        for sid in ("x" * 32, "..", "%2e%2e", "a", "%00", "x" * 5000, "%ff%fe", "-", "a%2fb"):
            for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/cells"), ("GET", "/cells/1"),
                                 ("POST", "/cells"), ("POST", "/interrupt"), ("GET", "/variables"), ("GET", "/files"),
                                 ("GET", "/files/a"), ("PUT", "/files/a"), ("DELETE", "/files/a"), ("GET", "/notebook")):
                with self.subTest(sid=sid[:40], method=method, path=path):
                    body = {"code": "1"} if path == "/cells" and method == "POST" else None
                    answer = self.client.call(method, f"/v1/sessions/{sid}{path}", body)
                    self.assertError(answer, 404, "not_found")


class Together(api.Case):
    config = ""

    def test_sessions_of_one_moment_are_all_listed(self):
        """Many are made within a millisecond; no page may lose one or show one twice."""
        laters = [api.Later(lambda: self.session()) for _ in range(12)]
        made = {later.result().id for later in laters}
        for limit in (1, 5):
            ids, after = [], ""
            while after is not None:
                page = self.client.get(f"/v1/sessions?limit={limit}" + (f"&after={after}" if after else "")).json
                ids += [s["id"] for s in page["data"]]
                after = page["next"]
            self.assertEqual(sorted(ids), sorted(made))

    def test_deleted_by_two(self):
        session = self.session()
        session.begin("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass")
        laters = [api.Later(lambda: self.client.delete(session.path)) for _ in range(2)]
        statuses = sorted(later.result().status for later in laters)
        self.assertIn(statuses, ([204, 204], [204, 409]))


class FewDescriptors(api.Case):
    def test_what_finds_none_fails_alone(self):
        """One box too many, or one file, and everything else goes on."""
        server = self.start("pool = 1\nblanks = 0\nmemory = 64m\n", descriptors=150)
        client, sessions = server.client(), []
        self.assertIn("descriptors=150", server.log)
        while len(sessions) < 30 and (answer := client.post("/v1/sessions")).status == 201:
            sessions.append(api.Session(client, answer.json["id"]))
        self.assertError(answer, 503, "no_box", "descriptors")
        self.assertGreater(len(sessions), 3)
        sessions[0].cell("open('f', 'w').write('x')")
        self.assertIn(sessions[0].get("f").status, (200, 503))
        for session in sessions:
            self.assertEqual(session.cell("1")["status"], "ok")
            session.delete()
        again = client.session()
        self.assertEqual(again.put("f", b"x").status, 201)
        self.assertEqual(again.get("f").body, b"x")
