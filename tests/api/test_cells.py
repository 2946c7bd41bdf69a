"""Cells as one answer: outputs, statuses, the queue, interrupts, disconnects, variables, the journal."""
import base64
import hashlib
import http.client
import json
import socket
import struct
import time

import api


class Run(api.Case):
    def setUp(self):
        self.s = self.session()

    def test_the_shape(self):
        cell = self.s.cell("import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('out again')\n"
                           "open('f.txt', 'w').write('data')\n6 * 7")
        self.assertEqual([o["type"] for o in cell["outputs"]], ["stdout", "stderr", "stdout", "result"])
        self.assertEqual(api.text(cell), "out\nout again\n")
        self.assertEqual(cell["outputs"][-1]["data"]["text/plain"], "42")
        self.assertEqual(cell["files"], [{"path": "f.txt", "change": "created", "size": 4,
                                          "sha256": hashlib.sha256(b"data").hexdigest()}])
        self.assertEqual((cell["n"], cell["status"]), (1, "ok"))
        for absent in ("error", "limit", "truncated"):
            self.assertNotIn(absent, cell)
        self.assertGreater(cell["receipt"]["peak_memory"], 1 << 17)

    def test_a_summary(self):
        cell = self.s.cell("print('\\x1b[31mred\\x1b[0m')\nopen('f', 'w').write('x' * 2000)\n6 * 7")
        self.assertEqual(cell["summary"], "stdout:\n```\nred\n```\nresult:\n```\n42\n```\n"
                                          "files:\n```\ncreated f (2.0 kB)\n```")
        self.assertEqual(self.s.client.get(self.s.path + "/cells/1").json["summary"], cell["summary"])

    def test_pictures_are_no_larger_than_asked_for(self):
        code = ("from PIL import Image\nfrom IPython.display import Image as Shown, display\n"
                "for i in range(2): Image.new('RGB', (3000, 600)).save(f'{i}.png'); display(Shown(f'{i}.png'))")
        for asked, size in (({"pictures": 500}, (500, 100)), ({"pictures": None}, (3000, 600)), ({}, (3000, 600))):
            for cell in (self.s.cell(code, **asked), self.client.post("/v1/run", code=code, **asked).json):
                shown = [base64.b64decode(o["data"]["image/png"]) for o in cell["outputs"]]
                self.assertEqual([struct.unpack_from(">II", data, 16) for data in shown], [size] * 2)
        for wrong in (0, 63, 8193, "500", 1.5, [], True):
            with self.subTest(wrong=wrong):
                self.assertError(self.s.client.post(self.s.path + "/cells", code="1", pictures=wrong), 400, "bad_request",
                                 "pictures")

    def test_a_summary_in_its_budget(self):
        code = "for i in range(20000): print(i)\nraise ValueError('why')"
        for budget, most in (("1k", 1024), (3000, 3000), (None, 8192)):
            cell = self.s.cell(code, summary=budget)
            self.assertTrue(most * 0.8 < len(cell["summary"].encode()) <= most, len(cell["summary"]))
            self.assertTrue(cell["summary"].endswith("ValueError: why\n```"), cell["summary"][-200:])
            self.assertIn("stdout (the first ", cell["summary"])
        for wrong in (0, "none", 100, "2m", -1, 1.5, [], "x"):
            with self.subTest(wrong=wrong):
                self.assertError(self.s.client.post(self.s.path + "/cells", code="1", summary=wrong), 400, "bad_request", "summary")

    def test_variables_stay(self):
        self.s.cell("x = [1, 2]")
        self.assertEqual(api.result(self.s.cell("x.append(3)\nx")), "[1, 2, 3]")

    def test_an_error(self):
        cell = self.s.cell("print('before')\n{}['x']")
        self.assertEqual(cell["status"], "error")
        self.assertEqual((cell["error"]["name"], cell["error"]["value"]), ("KeyError", "'x'"))
        self.assertIn("{}['x']", cell["error"]["traceback"])
        self.assertEqual(api.text(cell), "before\n")

    def test_a_display(self):
        cell = self.s.cell("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
        picture = next(o for o in cell["outputs"] if o["type"] == "display")
        self.assertTrue(base64.b64decode(picture["data"]["image/png"]).startswith(b"\x89PNG"))

    def test_a_time_limit_keeps_what_was(self):
        self.s.cell("x = 41")
        began = time.monotonic()
        cell = self.s.cell("print('before', flush=True)\nx += 1\nwhile True: pass", timeout=0.5)
        self.assertLess(time.monotonic() - began, api.SOON)  # not the session's 60
        self.assertEqual((cell["status"], cell["limit"]["kind"], cell["limit"]["limit"]), ("limit", "wall", 0.5))
        self.assertGreaterEqual(cell["limit"]["used"], 0.5)
        self.assertEqual(api.text(cell), "before\n")
        self.assertEqual(api.result(self.s.cell("x")), "42")

    def test_no_time_limit(self):
        session = self.session(limits={"timeout": 0.5})
        self.assertEqual(session.cell("import time; time.sleep(1); 1", timeout="none")["status"], "ok")
        self.assertEqual(session.cell("import time; time.sleep(1); 1", timeout=30)["status"], "ok")
        self.assertEqual(session.cell("import time; time.sleep(3); 1")["status"], "limit")

    def test_output_over_the_limit(self):
        session = self.session(limits={"output": 1000})
        cell = session.cell("print('a' * 5000 + 'z')")
        text = api.text(cell)
        self.assertEqual((text[0], text[-2:]), ("a", "z\n"))
        self.assertEqual(cell["truncated"], {"stdout_bytes": 5002 - len(text), "stderr_bytes": 0})

    def test_code_of_any_kind(self):
        for code, wanted in (("", None), ("'é ü 漢字 😀'", "'é ü 漢字 😀'"), ("'\\x00'", "'\\x00'"), ("1\r\n+1\r\n", "1"),
                             ("%%time\npass", None), ("!echo hi", None)):
            with self.subTest(code=code):
                cell = self.s.cell(code)
                self.assertEqual(cell["code"], code)
                self.assertEqual(cell["status"], "ok", cell)
                if wanted:
                    self.assertIn(wanted, api.result(cell) or "")

    def test_escapes_in_json(self):
        body = b'{"code": "print(\\u0027\\ud83d\\ude00\\u0027, \\"\\u00e9\\")"}'
        answer = self.client.post(self.s.path + "/cells", body)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(api.text(answer.json), "😀 é\n")

    def test_text_that_is_not_utf8(self):
        cell = self.s.cell("import sys\nsys.stdout.buffer.write(b'a\\xffb\\n')\nsys.stdout.flush()")
        self.assertEqual(api.text(cell), "a\ufffdb\n")
        cell = self.s.cell("raise ValueError('\\udc80')")
        self.assertEqual(cell["status"], "error")

    def test_a_nul_in_the_code(self):
        answer = self.client.post(self.s.path + "/cells", code="print(1)\u0000print(2)")
        self.assertIn(answer.status, (200, 400), answer)
        if answer.status == 200:
            self.assertEqual(answer.json["status"], "error")

    def test_a_megabyte_of_code(self):
        code = "x = '" + "a" * (1 << 20) + "'\nlen(x)"
        cell = self.s.cell(code)
        self.assertEqual(api.result(cell), str(1 << 20))
        self.assertEqual(cell["code"], code)

    def test_what_files_it_changed(self):
        self.s.put("same", b"1")
        self.s.put("changed", b"1")
        self.s.put("dir/deleted", b"1")
        cell = self.s.cell("import os\nopen('changed', 'w').write('22')\nos.remove('dir/deleted')\n"
                           "os.makedirs('a/b')\nopen('a/b/ü', 'w').write('x')\nopen('/tmp/no', 'w').write('x')")
        changes = {f["path"]: (f["change"], f.get("size")) for f in cell["files"]}
        self.assertEqual(changes, {"changed": ("changed", 2), "dir/deleted": ("deleted", None),
                                   "a/b/ü": ("created", 1)})
        self.assertEqual(self.s.cell("pass")["files"], [])

    def test_uploads_are_nobodys_change(self):
        self.s.cell("pass")
        self.s.put("uploaded", b"x")
        self.assertEqual(self.s.cell("open('own', 'w').close()")["files"][0]["path"], "own")

    def test_refused(self):
        for body in ({}, {"code": 1}, {"code": None}, {"code": ["x"]}, {"code": {}}, [],
                     {"code": "1", "timeout": 0}, {"code": "1", "timeout": -1}, {"code": "1", "timeout": "soon"},
                     {"code": "1", "timeout": []}, {"code": "1", "timeout": True}, {"code": "1", "timeout": {}}):
            with self.subTest(body=body):
                self.assertError(self.client.post(self.s.path + "/cells", body), 400, "bad_request")
        for body in ({"code": "1", "stream": True}, {"cod": "1"}, {"code": "1", "limits": {}}):
            with self.subTest(body=body):
                unknown = next(k for k in body if k not in ("code", "timeout"))
                self.assertError(self.client.post(self.s.path + "/cells", body), 400, "bad_request", unknown)
        self.assertEqual(self.s.info()["cells"], 0)

    def test_the_type_of_the_body(self):
        path = self.s.path + "/cells"
        body = b'{"code": "1"}'
        for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8", None,
                     "application/x-www-form-urlencoded"):  # what curl -d says of anything
            self.assertEqual(self.client.post(path, body, headers={"Content-Type": kind}).status, 200, kind)
        for kind in ("text/plain", "multipart/form-data; boundary=x",
                     "application/jsonx", "text/json5"):
            with self.subTest(kind=kind):
                self.assertError(self.client.post(path, body, headers={"Content-Type": kind}), 415,
                                 "unsupported_media_type")


class NoQueue(api.Case):
    config = "max_queue = 0\n"

    def test_nobody_waits(self):
        session = self.session()
        self.assertEqual(session.cell("1")["status"], "ok")
        later = session.hold()
        self.assertError(self.client.post(session.path + "/cells", code="1"), 429, "too_many_cells")
        session.release()
        later.result()
        self.assertEqual(session.cell("1")["status"], "ok")
        self.assertEqual(self.client.post("/v1/run", code="1").status, 200)
        self.assertEqual(self.client.get(session.path + "/variables").status, 200)


class Queue(api.Case):
    config = "max_queue = 3\n"

    def test_in_order(self):
        session = self.session()
        first = session.hold("order = ['first']")
        waiting = [post(self.server, session, f"order.append({i}); print(order)") for i in range(3)]
        self.assertEqual(session.info()["status"], "busy")
        session.release()
        first.result()
        cells = [json.loads(w.getresponse().read()) for w in waiting]
        self.assertEqual([c["n"] for c in cells], [2, 3, 4])
        self.assertEqual(api.text(cells[-1]), "['first', 0, 1, 2]\n")

    def test_beyond_the_queue(self):
        session = self.session()
        session.hold()
        waiting = [post(self.server, session, "1") for _ in range(3)]
        answer = self.client.post(session.path + "/cells", code="1")
        self.assertError(answer, 429, "too_many_cells")
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        with session.stream("1") as stream:
            self.assertError(stream.answer, 429, "too_many_cells")
        other = self.session()
        self.assertEqual(other.cell("1")["status"], "ok")
        self.client.post(session.path + "/interrupt")
        self.assertEqual([w.getresponse().status for w in waiting], [200, 200, 200])
        self.assertEqual(session.cell("2")["n"], 5)

    def test_one_that_waits_and_goes_away(self):
        session = self.session()
        first = session.hold()
        connection = post(self.server, session, "print('not wanted')")
        connection.close()
        time.sleep(0.2)
        session.release()
        first.result()
        cell = session.cell("print('next')")
        self.assertEqual((cell["n"], api.text(cell)), (2, "next\n"))


def post(server, session, code):
    """A connection on which a cell was asked for, whose answer nobody has read."""
    connection = http.client.HTTPConnection(server.address, server.port, timeout=api.PATIENCE)
    connection.request("POST", session.path + "/cells", json.dumps({"code": code}),
                       {"Authorization": f"Bearer {session.client.token}", "Content-Type": "application/json"})
    return connection


class Interrupt(api.Case):
    def setUp(self):
        self.s = self.session()

    def test_variables_stay(self):
        later = self.s.begin("import time\ntime.sleep(60)", first="x = 7\nprint('working', flush=True)")
        answer = self.client.post(self.s.path + "/interrupt")
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json["id"], self.s.id)
        cell = later.result().json
        self.assertEqual((cell["status"], api.text(cell)), ("interrupted", "working\n"))
        self.assertEqual(api.result(self.s.cell("x")), "7")

    def test_when_idle(self):
        answer = self.client.post(self.s.path + "/interrupt")
        self.assertEqual((answer.status, answer.json["status"]), (200, "idle"))
        self.assertEqual(self.s.cell("1")["status"], "ok")

    def test_with_a_body(self):
        self.assertEqual(self.client.post(self.s.path + "/interrupt", b"{}").status, 200)
        self.assertError(self.client.post(self.s.path + "/interrupt", x=1), 400, "bad_request", '"x"')

    def test_one_that_does_not_listen(self):
        self.s.cell("kept = 5")
        later = self.s.begin("while True: pass", first="import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
        began = time.monotonic()
        self.client.post(self.s.path + "/interrupt")
        cell = later.result().json
        self.assertLess(time.monotonic() - began, api.SOON)
        self.assertEqual((cell["status"], cell["restored_to"]), ("interrupted", 1))
        self.assertEqual(self.s.info()["status"], "idle")
        self.assertEqual(api.result(self.s.cell("kept")), "5")


class Check(api.Case):
    def setUp(self):
        self.s = self.session()

    def check(self, code):
        return self.client.post(self.s.path + "/check", code=code)

    def test_what_it_says(self):
        for code, status, indent in (("x = 1", "complete", ""), ("", "complete", ""),
                                     ("for i in range(2):", "incomplete", "    "),
                                     ("for i in range(2):\n    print(i)\n\n", "complete", ""),
                                     ("(1 +", "incomplete", ""), ("x = = 1", "invalid", ""),
                                     ("%%time", "incomplete", "")):
            with self.subTest(code=code):
                answer = self.check(code)
                self.assertEqual(answer.status, 200, answer)
                self.assertEqual(answer.json["status"], status)
                if indent:
                    self.assertEqual(answer.json["indent"], indent)
        self.assertEqual(self.s.cell("1")["n"], 1)  # nothing was run

    def test_while_a_cell_runs(self):
        later = self.s.hold()
        self.assertError(self.check("1"), 409, "session_busy")
        self.s.release()
        self.assertEqual(later.result().json["status"], "ok")
        self.assertEqual(self.check("1").json["status"], "complete")

    def test_many_at_once(self):
        answers = [self.client.post(self.s.path + "/check", code=f"x{i} =" if i % 2 else "1") for i in range(40)]
        self.assertEqual({a.status for a in answers}, {200})
        self.assertEqual([a.json["status"] for a in answers], ["complete", "invalid"] * 20)

    def test_an_interpreter_that_does_not_answer(self):
        # PyDLL does not let go of the interpreter's lock.
        self.s.cell("import threading, time, ctypes, os\n"
                    "def hold():\n    while not os.path.exists('hold'): time.sleep(0.02)\n"
                    "    ctypes.PyDLL(None).system(b'touch held; until test -e go; do sleep 0.02; done')\n"
                    "threading.Thread(target=hold).start()")
        self.s.put("hold")
        self.assertTrue(api.wait_until(lambda: self.s.get("held").status == 200))
        began = time.monotonic()
        answer = self.check("1")
        self.assertError(answer, 503, "no_answer")
        self.assertLess(time.monotonic() - began, api.SOON)
        self.s.put("go")
        answer = api.wait_until(lambda: (a := self.check("x = = 1")).status == 200 and a)
        self.assertEqual(answer.json["status"], "invalid")  # not the late one's

    def test_mistakes(self):
        self.assertError(self.client.post(self.s.path + "/check"), 400, "bad_request")
        self.assertError(self.client.post(self.s.path + "/check", code=5), 400, "bad_request")
        self.assertError(self.client.post(self.s.path + "/check", code="1", timeout=1), 400, "bad_request")
        self.s.cell("import os, threading; threading.Timer(0.2, os.write, (3, bytes(64))).start()")
        self.assertTrue(api.wait_until(lambda: self.s.info()["status"] == "ended"))
        self.assertError(self.check("1"), 410, "session_ended")


class Exits(api.Case):
    def test_how_it_left(self):
        for code, exit, died in (("import sys; sys.exit(3)", {"status": 3}, False),
                                 ("import sys; sys.exit()", {"status": 0}, False),
                                 ("import os; os._exit(200)", {"status": 200}, True),
                                 ("import os; os.kill(os.getpid(), 11)", {"signal": 11}, True),
                                 ("1", None, False), ("1/0", None, False)):
            with self.subTest(code=code):
                session = self.session()
                session.cell("kept = 5")
                cell = session.cell(code)
                self.assertEqual(cell.get("exit"), exit)
                self.assertEqual(cell.get("restored_to"), 1 if died else None)
                self.assertNotIn("session_ended", cell)
                self.assertEqual(api.result(session.cell("kept")), "5")


class Disconnect(api.Case):
    def leaves(self, how):
        session = self.session()
        connection = post(self.server, session, "x = 'left'\nimport time\ntry:\n"
                                                "    open('begun', 'w').close()\n    time.sleep(50)\n"
                                                "except KeyboardInterrupt:\n    y = 'interrupted'\n    raise")
        self.assertTrue(api.wait_until(lambda: session.get("begun").status == 200))
        how(connection.sock)
        connection.close()
        began = time.monotonic()
        cell = session.cell("x, y")
        self.assertLess(time.monotonic() - began, api.SOON)
        self.assertEqual(api.result(cell), "('left', 'interrupted')")
        self.assertEqual(self.client.get(session.path + "/cells/1").json["status"], "interrupted")

    def test_closes(self):
        self.leaves(lambda sock: None)

    def test_resets(self):
        linger_zero = b"\x01\0\0\0\0\0\0\0"
        self.leaves(lambda sock: sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero))

    def test_a_half_closed_connection_is_no_stall(self):
        """Whether it counts as gone or not, somebody is answered."""
        session = self.session()
        connection = post(self.server, session, "import time; time.sleep(1); print('x')")
        connection.sock.shutdown(socket.SHUT_WR)
        got, _ = api.receive(connection.sock)
        connection.close()
        if got:
            self.assertEqual(api.split_responses(got)[0][0], 200)
        self.assertEqual(session.cell("1")["status"], "ok")


class Variables(api.Case):
    def setUp(self):
        self.s = self.session()

    def variables(self):
        answer = self.client.get(self.s.path + "/variables")
        self.assertEqual(answer.status, 200, answer)
        self.assertIsNone(answer.json["next"])
        return {v["name"]: v for v in answer.json["data"]}

    def test_none_yet(self):
        self.assertEqual(self.variables(), {})

    def test_kinds(self):
        self.s.cell("import numpy as np, pandas as pd\nn = 5\ns = 'text'\nitems = [1, 2, 3]\n"
                    "a = np.zeros((3, 4))\ndf = pd.DataFrame({'x': [1, 2], 'y': [3, 4]})\nü = None\n_hidden = 1\n"
                    "long = 'x' * 100000")
        found = self.variables()
        for name in ("n", "s", "items", "a", "df", "ü", "long"):
            self.assertIn(name, found)
        self.assertEqual(found["a"]["shape"], [3, 4])
        self.assertEqual(found["df"]["shape"], [2, 2])
        self.assertEqual(found["items"]["length"], 3)
        self.assertEqual(found["s"]["length"], 4)
        self.assertIn("text", found["s"]["text"])
        self.assertEqual(found["n"]["text"], "5")
        self.assertIn("int", found["n"]["type"])
        self.assertIn("DataFrame", found["df"]["type"])
        self.assertLess(len(found["long"]["text"]), 1000)
        self.assertGreaterEqual(found["a"]["size"], 96)
        self.assertNotIn("_hidden", found)
        self.assertNotIn("In", found)

    def test_it_is_no_cell(self):
        self.s.cell("x = 1")
        self.variables()
        self.assertEqual(self.s.info()["cells"], 1)
        self.assertEqual(self.s.cell("x")["n"], 2)

    def test_it_waits_its_turn(self):
        later = self.s.begin("import time; time.sleep(1.2); turned = 1")
        self.assertIn("turned", self.variables())
        self.assertTrue(later.result().status == 200)

    def test_hostile_ones(self):
        self.s.cell("class Evil:\n    def __repr__(self): raise SystemExit\n    def __len__(self): return -1\n"
                    "    shape = property(lambda self: 1 / 0)\ne = Evil()\n"
                    "class Huge:\n    def __repr__(self): return '\\udc80' * (10 << 20)\n    shape = 'abc'\nh = Huge()")
        self.assertIn("e", self.variables())
        self.assertEqual(self.s.cell("1")["status"], "ok")

    def test_one_that_does_not_end(self):
        session = self.session(limits={"timeout": 1})
        session.cell("class Slow:\n    def __repr__(self):\n        while True: pass\nslow = Slow()")
        self.assertError(self.client.get(session.path + "/variables"), 409, "no_variables")
        self.assertEqual(api.result(session.cell("type(slow).__name__")), "'Slow'")


class Journal(api.Case):
    def setUp(self):
        self.s = self.session()

    def test_it_has_every_cell_as_it_was_answered(self):
        cells = [self.s.cell(code) for code in ("print('a')\n1", "1/0", "open('f', 'w').write('x')", "")]
        answer = self.client.get(self.s.path + "/cells")
        self.assertEqual(answer.json, {"data": cells, "next": None})
        for cell in cells:
            self.assertEqual(self.client.get(f"{self.s.path}/cells/{cell['n']}").json, cell)
        self.assertEqual(self.s.info()["cells"], 4)

    def test_pages(self):
        for i in range(5):
            self.s.cell(str(i))
        page = self.client.get(self.s.path + "/cells?limit=2").json
        self.assertEqual([c["n"] for c in page["data"]], [1, 2])
        page = self.client.get(f"{self.s.path}/cells?limit=2&after={page['next']}").json
        self.assertEqual([c["n"] for c in page["data"]], [3, 4])
        page = self.client.get(f"{self.s.path}/cells?limit=2&after={page['next']}").json
        self.assertEqual(([c["n"] for c in page["data"]], page["next"]), ([5], None))
        for query in ("limit=0", "limit=x", "limit=501"):
            self.assertError(self.client.get(f"{self.s.path}/cells?{query}"), 400, "bad_request")
        for after in ("x", "-1", "999999999999999999999", "%00"):
            self.assertIn(self.client.get(f"{self.s.path}/cells?after={after}").status, (200, 400))

    def test_cells_that_are_not_there(self):
        self.s.cell("1")
        for n in ("0", "2", "-1", "x", "1.0", "01x", "99999999999999999999", "4294967297", "%31x", "1/2", "+1"):
            with self.subTest(n=n):
                self.assertError(self.client.get(f"{self.s.path}/cells/{n}"), 404, "not_found")

    def test_a_running_cell_is_not_in_it(self):
        later = self.s.hold()
        self.assertEqual(self.client.get(self.s.path + "/cells").json["data"], [])
        self.s.release()
        later.result()
        self.assertEqual(len(self.client.get(self.s.path + "/cells").json["data"]), 1)


class LongOutputs(api.Case):
    config = "journal_outputs = 64k\n"

    def test_the_journal_keeps_what_fits(self):
        session = self.session()
        whole = session.cell("from IPython.display import display, HTML\nprint('head')\ndisplay(HTML('x' * 200000))\nprint('tail')")
        self.assertEqual(len(whole["outputs"][1]["data"]["text/html"]), 200000)
        kept = self.client.get(session.path + "/cells/1")
        self.assertEqual(kept.status, 200)
        self.assertLess(len(kept.body), 100000)
        self.assertIn("head", api.text(kept.json))
        self.assertEqual(self.client.get(session.path + "/notebook").status, 200)


    def test_it_keeps_what_fits_of_the_rest(self):
        """Code, tracebacks and changed files can be as long as outputs."""
        session = self.session(limits={"files": 20000})
        for code in ("#" * 500000, "'" + "\t" * 300000 + "'\n1/0", "raise ValueError('x' * 500000)",
                     "for i in range(3000): open('f' * 100 + str(i), 'w').close()"):
            session.cell(code)
            row = self.client.get(f"{session.path}/cells/{session.info()['cells']}")
            self.assertLess(len(row.body), 70000)
            self.assertTrue(row.json["cut"], code[:20])
        self.assertEqual(len(self.client.get(session.path + "/notebook").json["cells"]), 4)


class FullJournals(api.Case):
    config = "journal_session = 220k\n"

    def test_a_session_has_so_much(self):
        session = self.session()
        for _ in range(6):
            self.assertEqual(len(api.text(session.cell("print('x' * 60000)"))), 60001)
        answer = self.client.get(session.path + "/cells")
        self.assertLess(len(answer.body), 232000)
        cells = answer.json["data"]
        self.assertEqual([c["n"] for c in cells], [1, 2, 3, 4, 5, 6])
        self.assertEqual(len(api.text(cells[2])), 60001)
        self.assertTrue(0 < len(api.text(cells[5])) < 2000)
        self.assertEqual(cells[5]["outputs"][0]["cut"], 60001)
        other = self.session()
        other.cell("print('x' * 60000)")
        self.assertEqual(len(api.text(self.client.get(other.path + "/cells/1").json)), 60001)


class LongJournals(api.Case):
    def test_a_page_ends_early(self):
        """Cells of megabytes come a few at a time, however many were asked for."""
        session, server = self.session(limits={"output": "8m"}), self.server
        for _ in range(12):
            session.cell("print('x' * 3000000)")
        cells, after, pages = [], "", 0
        while after is not None:
            page = self.client.get(f"{session.path}/cells?limit=500{after}")
            self.assertLess(len(page.body), 14 << 20)
            cells += [c["n"] for c in page.json["data"]]
            after = page.json["next"] and f"&after={page.json['next']}"
            pages += 1
        self.assertEqual((cells, pages), (list(range(1, 13)), 4))
        self.assertEqual(len(self.client.get(session.path + "/notebook").json["cells"]), 12)
        if not api.SANITIZED:
            self.assertLess(server.peak_memory(), 300 << 20)


class Many(api.Case):
    def test_sessions_do_not_wait_for_each_other(self):
        sessions = [self.session() for _ in range(4)]
        laters = [s.hold("print('x')") for s in sessions]
        for session, later in zip(sessions, laters):
            self.assertFalse(later.over)
            session.release()
            self.assertEqual(api.text(later.result().json), "x\n")

    def test_keep_alive(self):
        session = self.session()
        connection = http.client.HTTPConnection(self.server.address, self.server.port, timeout=api.PATIENCE)
        for i in range(50):
            connection.request("POST", session.path + "/cells", json.dumps({"code": f"{i} + 1"}),
                               {"Authorization": f"Bearer {self.client.token}"})
            response = connection.getresponse()
            self.assertEqual(api.result(json.loads(response.read())), str(i + 1))
            if i == 0:
                sock = connection.sock
                self.assertIsNotNone(sock)
            self.assertIs(connection.sock, sock, "it was closed")
        connection.close()
