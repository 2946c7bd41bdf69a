"""retort mcp, with what no honest client writes, and with pipes that close at the wrong time: the right errors, an end when
there is nobody left, and no process behind."""
import json
import os
import resource
import shutil
import signal
import threading
import time
import unittest

import api
import wire
from processes import wait_gone
from test_malformed_http import NO_MESSAGES, NOT_JSON
from wire import METHOD, PARAMS, PARSE, REQUEST


class Case(unittest.TestCase):
    def start(self, *args, **more):
        s = wire.Stdio(*args, **more)
        self.addCleanup(s.__exit__)
        return s

    def assertGone(self, s, below, status=0):
        """It has ended well, and so has all that it had started."""
        self.assertEqual(s.wait(), status, b"".join(s.log).decode(errors="replace"))
        self.assertEqual(wait_gone(below), set())

    def text(self, answer):
        return answer["result"]["content"][0]["text"]


class Lines(Case):
    @classmethod
    def setUpClass(cls):
        cls.s = wire.Stdio()
        cls.addClassCleanup(cls.s.__exit__)

    def tearDown(self):
        self.assertIn("tools", self.s.ask(wire.request("tools/list", id="still there"))["result"])

    def refused(self, line):
        """The error that a line gets."""
        self.s.write(line + b"\n")
        message = self.s.next()
        while "method" in message:
            message = self.s.next()
        self.assertEqual(message["jsonrpc"], "2.0")
        return message["error"]["code"]

    def test_not_json(self):
        for line in NOT_JSON:
            if line and b"\n" not in line:
                with self.subTest(line=line[:30]):
                    self.assertIn(self.refused(line), (PARSE, REQUEST))

    def test_no_messages(self):
        for message in NO_MESSAGES:
            with self.subTest(message=message):
                self.assertIn(self.refused(json.dumps(message).encode()), (REQUEST, PARAMS))

    def test_empty_lines(self):
        self.s.write(b"\n\n  \n\r\n")
        self.s.write(json.dumps(wire.request("tools/list", id=5)).encode() + b"\r\n")
        self.assertIn("tools", self.s.answer(5)["result"])

    def test_batches(self):
        self.assertEqual(self.refused(json.dumps([wire.request("tools/list"), wire.request("tools/list")]).encode()), REQUEST)
        self.assertEqual(self.refused(b"[]"), REQUEST)

    def test_unknown_methods(self):
        for method in ("no/such", "ping", "logging/setLevel", ""):
            with self.subTest(method=method):
                self.assertEqual(self.s.ask(wire.request(method, id=9))["error"]["code"], METHOD)
        self.assertIn(self.s.ask(wire.request("x" * 100_000, id=9))["error"]["code"], (METHOD, REQUEST))

    def test_giant_line(self):
        """It is not kept, and not taken for a message."""
        self.s.write(b'{"jsonrpc": "2.0", "id": 1, "method": "')
        for _ in range(64):
            self.s.write(b"x" * (1 << 20))
        self.assertIn(self.refused(b'"}'), (PARSE, REQUEST))

    def test_slow_line(self):
        for byte in json.dumps(wire.request("tools/list", id=6)).encode():
            self.s.write(bytes([byte]))
        self.s.write(b"\n")
        self.assertIn("tools", self.s.answer(6)["result"])

    def test_many_in_one_write(self):
        self.s.write(b"".join(json.dumps(wire.request("tools/list", id=i)).encode() + b"\n" for i in range(200)))
        found = {self.s.next()["id"] for _ in range(200)}
        self.assertEqual(found, set(range(200)))

    def test_both_eras(self):
        """A client that tried the new one and goes on with the old."""
        self.assertIn(wire.MODERN, self.s.ask(wire.request("server/discover", id=1))["result"]["supportedVersions"])
        self.assertEqual(self.s.ask(wire.initialize(id=2))["result"]["protocolVersion"], wire.LEGACY)
        self.s.write(wire.old("notifications/initialized", id=None))
        self.assertEqual(self.s.ask(wire.old("ping", id=3))["result"], {})
        self.assertNotIn("resultType", self.s.ask(wire.old("tools/list", id=4))["result"])

    def test_progress(self):
        """It comes before the answer, never after it."""
        message = wire.run_python("import time\nfor i in range(5):\n    print(i, flush=True)\n    time.sleep(0.1)", id=30)
        message["params"]["_meta"]["progressToken"] = "t"
        before = len(self.s.others)
        self.s.ask(message)
        told = [m["params"] for m in self.s.others[before:] if m.get("method") == "notifications/progress"]
        self.assertTrue(told)
        self.assertEqual({p["progressToken"] for p in told}, {"t"})
        self.assertEqual([p["progress"] for p in told], sorted({p["progress"] for p in told}))
        self.s.ask(wire.request("tools/list", id=31))
        self.assertEqual([m for m in self.s.others[before + len(told):] if m.get("method") == "notifications/progress"], [])

    def test_cancelled(self):
        """No answer is owed then, and one for an unknown call is nothing."""
        session = self.s.ask(wire.run_python("kept = 1", id=20))["result"]["structuredContent"]["session"]
        message = wire.run_python("kept = 2\nprint('begun', flush=True)\nimport time\ntime.sleep(100)", id=21, session=session)
        message["params"]["_meta"]["progressToken"] = "p"
        self.s.write(message)
        while "begun" not in self.s.next()["params"]["message"]:
            pass
        for id in (21, 4711, "21"):
            cancelled = wire.request("notifications/cancelled", {"requestId": id})
            del cancelled["id"]
            self.s.write(cancelled)
        self.assertIn("('kept', 2)", self.text(self.s.ask(wire.run_python("('kept', kept)", id=22, session=session))))


class Ends(Case):
    def begin(self, code="import time\nprint('begun', flush=True)\ntime.sleep(100)", **more):
        """A server in the midst of a cell."""
        s = self.start(**more)
        message = wire.run_python(code, id="cell")
        message["params"]["_meta"]["progressToken"] = 1
        s.write(message)
        while "begun" not in json.dumps(s.next()):
            pass
        return s, s.below()

    def test_end_of_input(self):
        s = self.start()
        s.ask(wire.run_python("1"))
        below = s.below()
        self.assertTrue(below)
        s.process.stdin.close()
        self.assertGone(s, below)
        self.assertIsNone(s.next())

    def test_end_of_input_at_once(self):
        s = self.start()
        s.process.stdin.close()
        self.assertGone(s, set())

    def test_half_a_line_at_the_end(self):
        s = self.start()
        s.write(b'{"jsonrpc": "2.0", "id": 1, "meth')
        s.process.stdin.close()
        self.assertGone(s, set())

    def test_half_closed(self):
        """What was asked before the end is still answered."""
        s, below = self.begin("import time\nprint('begun', flush=True)\ntime.sleep(2)\n'over'")
        s.process.stdin.close()
        self.assertIn("over", json.dumps(s.answer("cell")))
        self.assertGone(s, below)

    def test_output_closed(self):
        """Nobody can be told anything any more."""
        s = self.start(read=False)
        message = wire.run_python("import time\nprint('begun', flush=True)\ntime.sleep(300)")
        message["params"]["_meta"]["progressToken"] = 1
        s.write(message)
        while b"begun" not in s.process.stdout.readline():
            pass
        below = s.below()
        s.process.stdout.close()
        began = time.monotonic()
        s.wait()
        self.assertLess(time.monotonic() - began, api.SOON)
        self.assertEqual(wait_gone(below), set())

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                s, below = self.begin()
                began = time.monotonic()
                os.kill(s.process.pid, number)
                s.wait()
                self.assertLess(time.monotonic() - began, api.SOON)
                self.assertEqual(wait_gone(below), set())

    def test_killed(self):
        s, below = self.begin()
        s.process.kill()
        s.wait()
        self.assertEqual(wait_gone(below), set())

    def test_nobody_reads(self):
        """Answers wait, within bounds; then nothing more is read. When somebody reads again, all are there."""
        s = self.start(read=False)
        count = 6000  # about 40 MiB of answers
        line = b"".join(json.dumps(wire.request("tools/list", id=i)).encode() + b"\n" for i in range(count))
        writer = threading.Thread(target=lambda: (s.write(line), s.process.stdin.close()), daemon=True)
        writer.start()
        peak = 0
        for _ in range(20):
            time.sleep(0.25)
            peak = max(peak, self.resident(s.process.pid))
        self.assertLess(peak, 300 << 20)
        threading.Thread(target=s.read, daemon=True).start()
        found = set()
        while (message := s.next()) is not None:
            found.add(message["id"])
        self.assertEqual(len(found), count)
        self.assertEqual(s.wait(), 0)

    def test_nobody_reads_long_answers(self):
        """What was asked before is answered, but not with more than is kept for who does not read."""
        s = self.start(read=False)
        s.write(wire.run_python("open('a', 'wb').write(bytes(6 << 20))"))
        made = json.loads(s.process.stdout.readline())
        uri = f"retort://{made['result']['structuredContent']['session']}/a"
        count = 24  # 192 MiB
        s.write(b"".join(json.dumps(wire.request("resources/read", {"uri": uri}, id=i)).encode() + b"\n" for i in range(count)))
        s.process.stdin.close()
        time.sleep(2)
        threading.Thread(target=s.read, daemon=True).start()
        found = {}
        while (message := s.next()) is not None:
            found[message["id"]] = message.get("error", {}).get("code")
        self.assertEqual(sorted(found), list(range(count)))
        self.assertEqual(set(found.values()), {None, -32000})
        self.assertEqual(s.wait(), 0)

    def resident(self, pid):
        total = 0
        for each in {pid} | api.descendants(pid):
            try:
                with open(f"/proc/{each}/statm") as f:
                    if os.readlink(f"/proc/{each}/exe") == api.RETORT:
                        total = max(total, int(f.read().split()[1]) * resource.getpagesize())
            except OSError:
                pass
        return total


class Files(Case):
    """Those of the user's folder, when it is named: copies."""

    def setUp(self):
        self.folder = api.new_directory()
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(os.path.join(self.folder, "sub"))
        for name, data in (("a.csv", "x\n1\n"), ("sub/b.txt", "inner"), (".hidden", "secret")):
            with open(os.path.join(self.folder, name), "w") as f:
                f.write(data)
        os.symlink("/etc/passwd", os.path.join(self.folder, "link"))

    def test_copied(self):
        s = self.start("--files", self.folder)
        code = ("import os\nopen('a.csv', 'w').write('changed')\nos.remove('sub/b.txt')\n"
                "sorted(os.path.join(d, f) for d, _, fs in os.walk('.') for f in fs)")
        self.assertIn("./a.csv", self.text(s.ask(wire.run_python(code))))
        for name, data in (("a.csv", "x\n1\n"), ("sub/b.txt", "inner")):
            with open(os.path.join(self.folder, name)) as f:
                self.assertEqual(f.read(), data)
        fresh = self.text(s.ask(wire.run_python("import os\n(open('a.csv').read(), open('sub/b.txt').read(), os.path.exists('link'), "
                                                "os.path.exists('.hidden'))")))
        self.assertIn(r"('x\n1\n', 'inner', False, False)", fresh)

    def test_only_when_named(self):
        s = self.start()
        answer = self.text(s.ask(wire.run_python(f"import os\n(os.listdir('.'), os.path.exists({self.folder!r}))")))
        self.assertIn("([], False)", answer)
