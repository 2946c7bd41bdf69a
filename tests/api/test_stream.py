"""Cells as server-sent events: order, timing, what the last event holds, going away."""
import time

import api


class Events(api.Case):
    def setUp(self):
        self.s = self.session()

    def test_order_and_end(self):
        stream = self.s.stream("import sys\nfrom IPython.display import display, HTML\nprint('one')\n"
                               "print('two', file=sys.stderr)\ndisplay(HTML('<b>'))\nprint('three')\n{}['x']")
        cell = stream.cell()
        names = [name for name, _ in stream.events]
        squeezed = [n for i, n in enumerate(names) if i == 0 or n != names[i - 1]]
        self.assertEqual(squeezed, ["stdout", "stderr", "display", "stdout", "error", "cell"])
        self.assertEqual("".join(d["text"] for n, d in stream.events if n == "stdout"), "one\nthree\n")
        self.assertEqual(cell["status"], "error")
        error = next(d for n, d in stream.events if n == "error")
        self.assertEqual(error, cell["error"])
        self.assertTrue(stream.over)
        self.assertEqual(self.client.get(self.s.path + "/cells/1").json, cell)

    def test_the_result(self):
        stream = self.s.stream("'é' * 3")
        cell = stream.cell()
        self.assertEqual(stream.events[0][0], "result")
        self.assertEqual(stream.events[0][1], cell["outputs"][0])

    def test_text_with_line_breaks(self):
        cell = self.s.stream("print('a\\r\\nb\\rc\\n\\n\\nd\\u2028e\\x00f: data: x')").cell()
        self.assertEqual(api.text(cell), "a\r\nb\rc\n\n\nd\u2028e\x00f: data: x\n")

    def test_headers(self):
        with self.s.stream("1") as stream:
            self.assertEqual(stream.response.headers["Content-Type"].split(";")[0], "text/event-stream")
            self.assertIn("no-", stream.response.headers["Cache-Control"])
            self.assertIsNone(stream.response.headers["Content-Length"])
            stream.cell()

    def test_the_accept_header(self):
        for accept, streams in (("text/event-stream", True), ("text/event-stream, application/json", True),
                                ("application/json, text/event-stream;q=0.5", True), ("TEXT/EVENT-STREAM", True),
                                ("*/*", False), ("text/*", False), ("application/json", False),
                                ("text/event-stream;q=0", False), ("", False)):
            with self.subTest(accept=accept):
                connection, response = self.client.send("POST", self.s.path + "/cells", {"code": "1"},
                                                        {"Accept": accept})
                response.read()
                self.assertEqual(response.headers["Content-Type"].startswith("text/event-stream"), streams)
                connection.close()

    def test_the_first_byte_comes_before_the_end(self):
        with self.s.stream("import os, time\nprint('now', flush=True)\n"
                           "while not os.path.exists('go'): time.sleep(0.02)\nprint('later')") as stream:
            stream.until("stdout", "now")
            self.s.put("go")
            self.assertEqual(api.text(stream.cell()), "now\nlater\n")

    def test_events_come_as_they_happen(self):
        code = ("import os, time\nfor i in range(6):\n    print('line', i, flush=True)\n"
                "    while not os.path.exists(f'seen{i}'): time.sleep(0.02)")
        with self.s.stream(code) as stream:
            for i in range(6):
                stream.until("stdout", f"line {i}")
                self.s.put(f"seen{i}")
            self.assertEqual(stream.cell()["status"], "ok")

    def test_a_long_output(self):
        session = self.session(limits={"output": "20m"})
        stream = session.stream("for i in range(100000): print(i, 'x' * 90)")
        cell = stream.cell()
        streamed = "".join(d["text"] for n, d in stream.events if n == "stdout")
        self.assertEqual(streamed, "".join(f"{i} {'x' * 90}\n" for i in range(100000)))
        self.assertEqual(api.text(cell), streamed)

    def test_a_large_display_comes_once(self):
        stream = self.s.stream("from IPython.display import display, HTML\ndisplay(HTML('<b>small</b>'))\n"
                               "display(HTML('x' * 100000))\n'y' * 100000")
        cell = stream.cell()
        shown = [d for n, d in stream.events if n in ("display", "result")]
        self.assertEqual(shown[1]["data"]["text/html"], "x" * 100000)
        self.assertEqual(len(shown), 3)
        self.assertNotIn("streamed", shown[1])
        small, large, last = cell["outputs"]
        self.assertEqual(small, shown[0])
        self.assertEqual((large["data"], large["streamed"]), ({}, True))
        if len(shown[2]["data"]["text/plain"]) > 65536:
            self.assertEqual((last["data"], last["streamed"]), ({}, True))
        kept = self.client.get(self.s.path + "/cells/1").json
        self.assertEqual(kept["outputs"][1]["data"]["text/html"], "x" * 100000)

    def test_a_limit(self):
        stream = self.s.stream("print('before', flush=True)\nwhile True: pass", timeout=1)
        cell = stream.cell()
        self.assertEqual((cell["status"], api.text(cell)), ("limit", "before\n"))

    def test_a_crash(self):
        self.s.cell("kept = 5")
        stream = self.s.stream("print('before', flush=True)\nimport os; os.abort()")
        cell = stream.cell()
        self.assertEqual((cell["status"], api.text(cell), cell["restored_to"]), ("crashed", "before\n", 1))

    def test_interrupted(self):
        with self.s.stream("print('now', flush=True)\nimport time; time.sleep(60)") as stream:
            stream.until("stdout", "now")
            self.client.post(self.s.path + "/interrupt")
            self.assertEqual(stream.cell()["status"], "interrupted")

    def test_refusals_are_plain_answers(self):
        stream = self.client.stream(self.s.path + "/cells", cod="1")
        self.assertError(stream.answer, 400, "bad_request")
        stream = self.client.stream("/v1/sessions/" + "x" * 32 + "/cells", code="1")
        self.assertError(stream.answer, 404, "not_found")

    def test_one_that_waits(self):
        self.s.hold()
        stream = self.s.stream("print('mine')")
        self.s.release()
        cell = stream.cell()
        self.assertEqual((cell["n"], api.text(cell)), (2, "mine\n"))

    def test_the_connection_can_be_used_again(self):
        connection, response = self.client.send("POST", self.s.path + "/cells", {"code": "print(1)"},
                                                {"Accept": "text/event-stream"})
        self.assertIn(b"event: cell", response.read())
        connection.request("GET", self.s.path, headers=self.client.headers(None))
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()


class KeepAlive(api.Case):
    def test_a_comment_every_ten_seconds(self):
        session = self.session()
        with session.stream("import time; time.sleep(23)") as stream:
            self.assertEqual(stream.cell()["status"], "ok")
            self.assertIn(len(stream.comments), (2, 3), stream.comments)
            self.assertGreater(stream.comments[0], 5)


class Leaving(api.Case):
    def test_it_interrupts(self):
        session = self.session()
        with session.stream("x = 'left'\nimport time\ntry:\n    print('now', flush=True)\n    time.sleep(50)\n"
                            "except KeyboardInterrupt:\n    y = 'interrupted'\n    raise") as stream:
            stream.until("stdout", "now")
        began = time.monotonic()
        self.assertEqual(api.result(session.cell("x, y")), "('left', 'interrupted')")
        self.assertLess(time.monotonic() - began, api.SOON)
        self.assertEqual(self.client.get(session.path + "/cells/1").json["status"], "interrupted")

    def test_in_the_middle_of_a_flood(self):
        session = self.session()
        for _ in range(3):
            with session.stream("while True: print('x' * 1000)") as stream:
                stream.until("stdout")
        began = time.monotonic()
        self.assertEqual(session.cell("1")["status"], "ok")
        self.assertLess(time.monotonic() - began, api.SOON)
        self.assertAnswers()

    def test_one_that_does_not_read(self):
        """Its cell goes on or waits, but nobody else does, and no memory is lost to it."""
        session, other = self.session(limits={"output": "64m"}), self.session()
        with session.stream("while True: print('x' * 4000)", timeout="none") as stream:
            time.sleep(2)
            began = time.monotonic()
            self.assertEqual(other.cell("1")["status"], "ok")
            self.assertLess(time.monotonic() - began, api.SOON)
            self.assertEqual(session.info()["status"], "busy")
            stream.close()
        self.assertTrue(api.wait_until(lambda: session.info()["status"] != "busy"))
