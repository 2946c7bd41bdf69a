"""POST /v1/ask: questions to a server that has a model."""
import http.client
import json
import os
import re
import time

import asking
import cli
from asking import KEY
from test_secrets import memory_has

SUM = [{"text": "I add.", "calls": ["total = sum(range(4))\nopen('sum.txt', 'w').write(str(total))\nprint('total', total)"]},
       {"expect": "total 6", "text": "It is **6**."}]


class Server(asking.Case):
    """One with a model."""

    SETTINGS = ()
    SCRIPT = ()

    def setUp(self):
        super().setUp()
        self.model = self.server(list(self.SCRIPT), "chat")
        config = self.write("model.conf", f"model = scripted\nbase_url = {self.model.base}\nprotocol = chat\n"
                                          f"key_file = {self.path('key')}\n")
        self.process = self.serve("--set", f"model_config={config}", *self.SETTINGS)

    def serve(self, *args):
        p = cli.start("serve", "--listen", "127.0.0.1:0", "--state", self.path("state"), "--set", "preload=none",
                      "--set", "log_requests=no", *args, env=self.environment())
        self.addCleanup(cli.finish, p)
        self.addCleanup(p.terminate)
        link = re.search(rb"http://([\d.:]+)/\?token=(\S+)", cli.read_until(p.stdout, b"\n"))
        self.address, self.token = link[1].decode(), link[2].decode()
        return p

    def call(self, method, path, body=None, token=None, **headers):
        c = http.client.HTTPConnection(self.address, timeout=cli.PATIENCE)
        self.addCleanup(c.close)
        data = None if body is None else json.dumps(body)
        c.request(method, path, data, {"Authorization": f"Bearer {token or self.token}", **headers})
        response = c.getresponse()
        response.leave = c.close
        return response

    def answer_to(self, question="What is the sum?", status=200, **members):
        r = self.call("POST", "/v1/ask", {"question": question, **members})
        body = json.loads(r.read())
        self.assertEqual(r.status, status, body)
        return body

    def stream(self, question="What is the sum?", **members):
        r = self.call("POST", "/v1/ask", {"question": question, **members}, Accept="text/event-stream")
        self.assertEqual(r.status, 200)
        return r

    @staticmethod
    def events(response):
        for block in response.read().decode().split("\n\n"):
            lines = [line for line in block.splitlines() if not line.startswith(":")]
            if lines:
                yield lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))

    def askers(self):
        """Processes below the server that are neither its keeper's nor its own."""
        keeper = [p for p in cli.children(self.process.pid)
                  if os.readlink(f"/proc/{p}/ns/user") == os.readlink("/proc/self/ns/user")]
        return [p for p in keeper if "sweeper" not in open(f"/proc/{p}/comm").read()]


class Answers(Server):
    def test_as_one_answer(self):
        self.model.script += SUM
        body = self.answer_to()
        self.assertEqual(set(body), {"session", "cells", "answer"})
        self.assertEqual(body["answer"]["text"], "It is **6**.")
        self.assertEqual([c["status"] for c in body["cells"]], ["ok"])
        r = self.call("GET", f"/v1/sessions/{body['session']['id']}/files/sum.txt")
        self.assertEqual((r.status, r.read()), (200, b"6"))

    def test_as_events(self):
        self.model.script += [asking.MISTAKE, *SUM]
        events = list(self.events(self.stream()))
        names = [name for name, _ in events]
        self.assertEqual((names[0], names[-1]), ("session", "answer"))
        self.assertEqual(names.count("cell"), 2)
        for wanted in ("asking", "text", "code", "reply", "running", "stdout"):
            self.assertIn(wanted, names)
        cells = [data for name, data in events if name == "cell"]
        self.assertEqual([c["status"] for c in cells], ["error", "ok"])
        self.assertTrue(cells[0]["undone"])

    def test_in_a_session_that_there_is_with_what_was_said_before(self):
        session = json.loads(self.call("POST", "/v1/sessions", {}).read())["id"]
        self.call("POST", f"/v1/sessions/{session}/cells", {"code": "known = 17"}).read()
        self.call("PUT", f"/v1/sessions/{session}/files/data.csv", "h").read()
        self.model.script += [{"expect_anywhere": r"(?s)data\.csv.*Earlier\?.*Before\.", "calls": ["print('known is', known)"]},
                              {"expect": "known is 17", "text": "17"}]
        body = self.answer_to(session=session, history=[{"question": "Earlier?", "answer": "Before."}])
        self.assertEqual((body["session"]["id"], body["answer"]["text"]), (session, "17"))
        self.assertEqual(self.model.faults, [])
        cells = json.loads(self.call("GET", f"/v1/sessions/{session}/cells").read())["data"]
        self.assertEqual([c["code"] for c in cells], ["known = 17", "print('known is', known)"])

    def test_the_asker_has_no_rights_and_nobody_else_the_key(self):
        self.model.script += [{"calls": ["import time\nprint('going', flush=True)\ntime.sleep(3)"]}, {"text": "ok"}]
        r = self.stream()
        while b"going" not in r.readline():
            pass
        [asker] = self.askers()
        status = open(f"/proc/{asker}/status").read()
        if os.geteuid() == 0:
            self.assertNotIn("Uid:\t0", status)
        self.assertRegex(status, r"CapEff:\s+0+\n")
        self.assertRegex(status, r"NoNewPrivs:\s+1\n")
        self.assertTrue(memory_has(asker, KEY.encode()))
        others = [self.process.pid, *(p for p in cli.descendants(self.process.pid) if p != asker)]
        having = [p for p in others if p not in cli.children(asker) and memory_has(p, KEY.encode())]
        self.assertEqual(having, [])
        r.read()

    def test_a_client_that_leaves_stops_it(self):
        self.model.script += [{"calls": ["import time\nprint('going', flush=True)\ntime.sleep(60)"], "loop": True}]
        r = self.stream()
        line = b""
        while b"going" not in line:
            line = r.readline()
            if line.startswith(b"data: {\"id\""):
                session = json.loads(line[6:])["id"]
        [asker] = self.askers()
        at_work = cli.children(asker)
        self.assertEqual(len(at_work), 1)
        r.leave()
        r.close()
        cli.wait_gone(at_work)
        deadline = time.monotonic() + 20
        while json.loads(self.call("GET", f"/v1/sessions/{session}").read())["status"] != "idle":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertEqual(len(self.model.requests), 1)

    def test_nor_does_a_killed_server_leave_it(self):
        self.model.script += [{"text": "never", "hang": 100}]
        self.stream()
        deadline = time.monotonic() + 30
        while not self.model.requests:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        below = cli.descendants(self.process.pid)
        self.process.kill()
        cli.wait_gone(below)

    def test_what_is_wrong_with_a_question(self):
        for body in ({}, {"question": ""}, {"question": 1}, {"question": "x", "other": 1}, {"question": "x", "history": [1]},
                     {"question": "x", "session": 1}, {"question": "x", "max_cells": 1000}, {"question": "x", "max_time": 0},
                     {"question": "x", "attempts": "many"}, {"question": "x", "limits": {"memory": "999t"}},
                     {"question": "x", "clean_retries": "no"}, {"question": "x", "environment": "none such"}):
            with self.subTest(body=body):
                r = self.call("POST", "/v1/ask", body)
                self.assertEqual(r.status, 400, r.read())
        self.assertEqual(self.call("POST", "/v1/ask", {"question": "x", "session": "no-such"}).status, 404)
        self.assertEqual(self.model.requests, [])

    def test_another_tokens_session(self):
        other = cli.run("token", "new", "other", "--state", self.path("state")).out.strip()
        session = json.loads(self.call("POST", "/v1/sessions", {}, token=other).read())["id"]
        self.assertEqual(self.call("POST", "/v1/ask", {"question": "x", "session": session}).status, 404)

    def test_a_model_that_fails(self):
        self.model.script += [{"status": 400, "message": f"bad {KEY} request"}, {"status": 400, "message": "bad"}]
        body = self.answer_to(status=502)
        self.assertEqual(body["error"]["code"], "model_failed")
        self.assertNotIn(KEY, json.dumps(body))
        self.assertEqual(list(self.events(self.stream()))[-1][0], "error")

    def test_bounds_and_limits_are_the_askers(self):
        self.model.script += [{"calls": ["import os\nprint(len(bytearray(300 << 20)))"], "loop": True}]
        body = self.answer_to(attempts=2, limits={"memory": "128m"})
        self.assertEqual(body["answer"]["end"], "bound")
        self.assertEqual([c["status"] for c in body["cells"]], ["limit", "limit"])


class Bounded(Server):
    SETTINGS = ("--set", "max_asks=1", "--set", "ask_cells=2", "--set", "max_sessions=2")

    def test_one_at_a_time(self):
        self.model.script += [{"text": "late", "hang": 3}, {"text": "now"}]
        first = self.stream()
        r = self.call("POST", "/v1/ask", {"question": "x"})
        self.assertEqual(r.status, 503)
        self.assertTrue(r.getheader("Retry-After"))
        self.assertEqual(list(self.events(first))[-1][1]["text"], "late")
        self.assertEqual(self.answer_to()["answer"]["text"], "now")

    def test_no_room_for_a_session(self):
        for _ in range(2):
            self.call("POST", "/v1/sessions", {}).read()
        body = self.answer_to(status=502)
        self.assertIn("session", body["error"]["message"])

    def test_cells(self):
        self.model.script += [{"calls": ["print(1)"], "loop": True}]
        body = self.answer_to()
        self.assertEqual((len(body["cells"]), body["answer"]["end"]), (2, "bound"))


class Without(asking.Case):
    call, serve = Server.call, Server.serve

    def test_a_model(self):
        self.serve()
        r = self.call("POST", "/v1/ask", {"question": "x"})
        self.assertEqual((r.status, json.loads(r.read())["error"]["code"]), (501, "no_model"))

    def test_a_model_that_cannot_be_is_said_at_the_start(self):
        done = cli.run("serve", "--listen", "127.0.0.1:0", "--state", self.path("state"), "--set", "preload=none",
                       "--set", "model=nobody/knows", env=self.environment())
        self.assertStatus(done, 125)
        self.assertIn("nobody", done.err)
