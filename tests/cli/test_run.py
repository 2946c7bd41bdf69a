"""retort run: streams, results, exit statuses, signals."""
import base64
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import cli


class Streams(cli.Case):
    def test_stdout_stderr_and_result(self):
        done = cli.run("run", "-c", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "out\n42\n")
        self.assertEqual(done.err, "err\n")

    def test_text_comes_as_it_is_written(self):
        p = cli.start("run", "--timeout", "600", "-c", "import time\nprint('now')\ntime.sleep(600)")
        cli.read_until(p.stdout, b"now\n")
        self.assertIsNone(p.poll())
        p.terminate()
        cli.finish(p)

    def test_order_on_one_pipe(self):
        code = ("import sys\nfor i in range(50):\n"
                "    print('o', i); print('e', i, file=sys.stderr)\n")
        p = cli.start("run", "-c", code, stderr=subprocess.STDOUT)
        wanted = "".join(f"o {i}\ne {i}\n" for i in range(50))
        self.assertEqual(cli.finish(p).out, wanted)

    def test_bytes_pass_through_raw_where_there_is_no_terminal(self):
        done = cli.run("run", "-c", r"print('\x1b[31mred\x1b]0;title\x07 é ü 漢字 \x9b')")
        self.assertEqual(done.out, "\x1b[31mred\x1b]0;title\x07 é ü 漢字 \x9b\n")

    def test_a_terminal_gets_colours_and_no_other_control(self):
        with cli.Terminal("run", "-c", r"print('\x1b[31mred\x1b]0;title\x07\x1b[2J\x1b]52;c;eA==\x07')") as t:
            self.assertEqual(t.wait(), 0)
            self.assertIn(b"\x1b[31mred", t.seen)
            for control in (b"title", b"\x1b[2J", b"\x1b]52"):
                self.assertNotIn(control, t.seen)

    def test_displays(self):
        done = cli.run("run", "-c", "from IPython.display import display, HTML\n"
                                    "display({'a': 1})\ndisplay(HTML('<b>x</b>'))\nprint('end')")
        self.assertStatus(done, 0)
        self.assertEqual(done.out.splitlines()[0], "{'a': 1}")
        self.assertEqual(done.out.splitlines()[-1], "end")
        self.assertNotIn("<b>", done.out)

    def test_traceback_on_stderr(self):
        done = cli.run("run", "-c", "print('before')\ndef f():\n    return {}['x']\nf()")
        self.assertStatus(done, 1)
        self.assertEqual(done.out, "before\n")
        self.assertIn("KeyError: 'x'", done.err)
        self.assertIn("return {}['x']", done.err)
        self.assertNotIn("retort_kernel", done.err)


class Programs(cli.Case):
    def test_from_a_file(self):
        path = self.write("p.py", "#!/usr/bin/env python3\nprint('é')\n")
        self.assertEqual(cli.run("run", path).out, "é\n")

    def test_with_a_byte_order_mark(self):
        path = self.write("p.py", b"\xef\xbb\xbfprint('bom')\r\nprint('crlf')\r\n")
        self.assertEqual(cli.run("run", path).out, "bom\ncrlf\n")

    def test_from_standard_input(self):
        self.assertEqual(cli.run("run", "-", input="print(1)").out, "1\n")
        self.assertEqual(cli.run("run", input="print(2)").out, "2\n")

    def test_options_after_the_file(self):
        path = self.write("p.py", "open('x', 'w').write('1')")
        self.assertStatus(cli.run("run", path, "-o", self.path("out")), 0)
        self.assertEqual(self.read("out/x"), b"1")

    def test_empty(self):
        self.assertStatus(cli.run("run", "-c", ""), 0)
        self.assertStatus(cli.run("run", "-", input=""), 0)

    def test_several_megabytes(self):
        done = cli.run("run", "-", input="x = '" + "a" * (8 << 20) + "'\nprint(len(x))")
        self.assertEqual(done.out, f"{8 << 20}\n")

    def test_does_not_read_our_standard_input(self):
        done = cli.run("run", "-c", "input()", input="secret")
        self.assertStatus(done, 1)
        self.assertIn("EOFError", done.err)


class Status(cli.Case):
    def status(self, code, *args):
        return cli.run("run", *args, "-c", code)

    def test_sys_exit(self):
        for code, wanted in (("import sys; sys.exit()", 0), ("import sys; sys.exit(0)", 0),
                             ("import sys; sys.exit(3)", 3), ("raise SystemExit(200)", 200),
                             ("import sys; sys.exit(256 + 7)", 7), ("exit(4)", 4)):
            with self.subTest(code=code):
                done = self.status(code)
                self.assertStatus(done, wanted)
                self.assertEqual(done.err, "")

    def test_sys_exit_with_a_message(self):
        done = self.status("import sys; sys.exit('no such thing')")
        self.assertStatus(done, 1)
        self.assertEqual(done.err, "no such thing\n")

    def test_os_exit(self):
        self.assertStatus(self.status("import os; os._exit(7)"), 7)
        self.assertStatus(self.status("import os; os._exit(0)"), 0)

    def test_crash(self):
        done = self.status("print('before', flush=True)\nimport ctypes; ctypes.string_at(0)")
        self.assertStatus(done, 1)
        self.assertEqual(done.out, "before\n")
        self.assertIn("retort: ", done.err)
        self.assertIn("signal 11", done.err)

    def test_wall_time(self):
        done = self.status("print('before', flush=True)\nwhile True: pass", "--timeout", "1")
        self.assertStatus(done, 124)
        self.assertEqual(done.out, "before\n")
        self.assertIn("retort: stopped: wall time limit of 1 s reached (raise it with --timeout)\n",
                      done.err)

    def test_wall_time_of_one_who_does_not_listen(self):
        code = ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                "print('deaf', flush=True)\nwhile True: pass")
        done = self.status(code, "--timeout", "1")
        self.assertStatus(done, 124)
        self.assertEqual(done.out, "deaf\n")
        self.assertIn("wall time limit", done.err)

    def test_cpu_time(self):
        done = self.status("while True: pass", "--cpu", "0.5", "--timeout", "30")
        self.assertStatus(done, 124)
        self.assertIn("retort: stopped: CPU time limit of 0.5 s reached (raise it with --cpu)\n",
                      done.err)

    def test_memory(self):
        done = self.status("print('before', flush=True)\nx = bytearray(300 << 20)",
                           "--memory", "100m")
        self.assertStatus(done, 137)
        self.assertEqual(done.out, "before\n")
        self.assertIn("retort: stopped: memory limit of 100 MiB reached (raise it with --memory)\n",
                      done.err)

    def test_a_full_workspace(self):
        done = self.status("open('big', 'wb').write(bytes(4 << 20))", "--disk", "1m")
        self.assertStatus(done, 1)
        self.assertIn("No space left", done.err)
        self.assertIn("workspace limit of 1 MiB reached (raise it with --disk)", done.err)
        done = self.status("for i in range(99): open(str(i), 'w').close()", "--files", "50")
        self.assertStatus(done, 1)
        self.assertIn("limit of 50 files in the workspace reached (raise it with --files)", done.err)

    def test_output_over_the_limit_is_no_failure(self):
        done = self.status("print('a' * 100000)\nprint('end')", "--output", "1k")
        self.assertStatus(done, 0)
        self.assertLess(len(done.out), 2000)
        self.assertTrue(done.out.startswith("aaa"))
        self.assertTrue(done.out.endswith("end\n"))
        self.assertRegex(done.err, r"^retort: 9\d\.\d kB of stdout were left out .*--output\)\n$")


class Json(cli.Case):
    def test_shape(self):
        done = cli.run("run", "--json", "-c", "import sys\nprint('o')\nprint('e', file=sys.stderr)\n"
                                              "open('f.txt', 'w').write('data')\n1 + 1")
        self.assertStatus(done, 0)
        self.assertEqual(done.err, "")
        cell = done.json
        self.assertEqual(cell["n"], 1)
        self.assertTrue(cell["code"].startswith("import sys"))
        self.assertEqual(cell["status"], "ok")
        self.assertEqual([o["type"] for o in cell["outputs"]], ["stdout", "stderr", "result"])
        self.assertEqual(cell["outputs"][2]["data"]["text/plain"], "2")
        self.assertEqual(cell["files"][0]["path"], "f.txt")
        self.assertEqual(cell["files"][0]["change"], "created")
        self.assertEqual(cell["files"][0]["size"], 4)
        self.assertRegex(cell["files"][0]["sha256"], "^[0-9a-f]{64}$")
        self.assertGreater(cell["receipt"]["wall_ms"], 0)
        self.assertGreater(cell["receipt"]["cpu_ms"], 0)
        self.assertGreater(cell["receipt"]["peak_memory"], 1 << 17)
        self.assertNotIn("error", cell)
        self.assertNotIn("limit", cell)

    def test_changes_of_given_files(self):
        args = []
        for name in ("same", "changed", "deleted"):
            args += ["-f", self.write(name, "before")]
        done = cli.run("run", "--json", *args, "-c", "import os\nos.remove('deleted')\nopen('changed', 'w').write('x')\n"
                                                     "open('new', 'w').write('n'); os.remove('new')")
        files = {f["path"]: f for f in done.json["files"]}
        self.assertEqual({name: f["change"] for name, f in files.items()},
                         {"changed": "changed", "deleted": "deleted"})
        self.assertEqual(files["changed"]["sha256"], hashlib.sha256(b"x").hexdigest())

    def test_summary(self):
        code = "print('a' * 5000)"
        for options, most in (((), 8192), (("--summary", "1k"), 1024)):
            cell = cli.run("run", "--json", *options, "-c", code).json
            self.assertLessEqual(len(cell["summary"].encode()), most)
            self.assertTrue(cell["summary"].startswith("stdout"), cell["summary"])
        self.assertStatus(cli.run("run", "--summary", "10", "-c", "1"), 2)

    def test_truncated(self):
        done = cli.run("run", "--json", "--output", "1000", "-c", "print('a' * 5000 + 'z')")
        text = "".join(output["text"] for output in done.json["outputs"])  # head, and tail
        self.assertEqual((text[0], text[-2:]), ("a", "z\n"))
        self.assertLessEqual(len(text), 1000)
        self.assertEqual(done.json["truncated"], {"stdout_bytes": 5002 - len(text), "stderr_bytes": 0})
        self.assertEqual(done.json["limit"]["kind"], "output")

    def test_statuses(self):
        for args, status, name, exit_status in (
                (["-c", "1/0"], "error", "ZeroDivisionError", 1),
                (["-c", "while 1: pass", "--timeout", "0.5"], "limit", "KeyboardInterrupt", 124),
                (["-c", "x = bytearray(300 << 20)", "--memory", "100m"], "limit", None, 137),
                (["-c", "import os; os.abort()"], "crashed", None, 1)):
            with self.subTest(args=args):
                done = cli.run("run", "--json", *args)
                self.assertStatus(done, exit_status)
                self.assertEqual(done.err, "")
                self.assertEqual(done.json["status"], status)
                if name:
                    self.assertEqual(done.json["error"]["name"], name)

    def test_picture(self):
        done = cli.run("run", "--json", "-o", self.path("out"), "-c",
                       "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
        shown = [o for o in done.json["outputs"] if o["type"] == "display"]
        png = base64.b64decode(shown[0]["data"]["image/png"])
        self.assertTrue(png.startswith(b"\x89PNG\r\n"))
        self.assertEqual(self.read("out/figure-1.png"), png)

    def test_bytes_that_are_not_text(self):
        done = cli.run("run", "--json", "-c", "import os; os.write(1, b'a\\xff\\n')")
        self.assertEqual(cli.text(done.json), "a\ufffd\n")


class Signals(cli.Case):
    def busy(self, code="", *args):
        p = cli.start("run", *args, "-c", f"{code}\nprint('go', flush=True)\nwhile True: pass")
        cli.read_until(p.stdout, b"go\n")
        return p

    def test_interrupt(self):
        p = self.busy()
        p.send_signal(signal.SIGINT)
        done = cli.finish(p)
        self.assertStatus(done, 130)
        self.assertIn("KeyboardInterrupt", done.err)

    def test_interrupted_program_may_clean_up(self):
        p = cli.start("run", "-c", "try:\n    print('go', flush=True)\n    while True: pass\n"
                                   "finally: print('cleaned')")
        cli.read_until(p.stdout, b"go\n")
        p.send_signal(signal.SIGINT)
        self.assertEqual(cli.finish(p).out, "cleaned\n")

    def second_interrupt(self):
        """The seconds until it has left."""
        p = self.busy("import signal; signal.signal(2, signal.SIG_IGN)")
        p.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.assertIsNone(p.poll())
        below = cli.descendants(p.pid)
        p.send_signal(signal.SIGINT)
        began = time.monotonic()
        self.assertStatus(cli.finish(p), 130)
        took = time.monotonic() - began
        self.assertEqual(cli.wait_gone(below), set())
        return took

    def test_second_interrupt_leaves_at_once(self):
        # After two seconds it would leave in any case, and a busy machine may take as long: not five times.
        self.assertTrue(any(self.second_interrupt() < 1.5 for _ in range(5)))

    def test_termination_leaves_nothing(self):
        p = self.busy("import subprocess; subprocess.Popen(['sleep', '1000'])")
        below = cli.descendants(p.pid)
        self.assertGreaterEqual(len(below), 4)
        p.send_signal(signal.SIGTERM)
        self.assertStatus(cli.finish(p), 143)
        self.assertEqual(cli.wait_gone(below), set())

    def test_killed_leaves_nothing(self):
        p = self.busy("import subprocess; subprocess.Popen(['sleep', '1000'])")
        below = cli.descendants(p.pid)
        p.kill()
        p.communicate()
        self.assertEqual(cli.wait_gone(below), set())

    def test_closed_stdout(self):
        p = cli.start("run", "-c", "import time\nprint('first', flush=True)\n"
                                   "for i in range(1000):\n    print(i, flush=True); time.sleep(.02)")
        cli.read_until(p.stdout, b"first\n")
        below = cli.descendants(p.pid)
        p.stdout.close()
        self.assertEqual(p.wait(cli.PATIENCE), 141)
        self.assertEqual(p.stderr.read(), b"")
        p.stderr.close()
        self.assertEqual(cli.wait_gone(below), set())

    def test_a_reader_who_stops_does_not_stop_the_limits(self):
        p = cli.start("run", "--timeout", "1", "-c",
                      "print('x' * 400000, flush=True)\nwhile True: pass")
        cli.read_until(p.stdout, b"x")
        below = cli.descendants(p.pid)
        self.assertEqual(cli.wait_gone(below), set())
        self.assertIsNone(p.poll())  # it still has text for us
        done = cli.finish(p)
        self.assertStatus(done, 124)
        self.assertGreater(len(done.out), 300000)


class Failures(cli.Case):
    """Of retort itself: status 125, a message, and nothing else."""

    def test_a_step_that_fails(self):
        for step in ("box-namespaces", "init-system", "kernel-filter"):
            with self.subTest(step=step):
                done = cli.run("run", "-c", "print('ran')", env={"RETORT_FAULT": step})
                self.assertStatus(done, 125)
                self.assertEqual(done.out, "")
                self.assertIn(f"step {step}:", done.err)
                self.assertTrue(all(l.startswith("retort: ") for l in done.err.splitlines()))

    def test_upload_that_does_not_fit(self):
        path = self.write("big", bytes(2 << 20))
        done = cli.run("run", "-f", path, "--disk", "1m", "-c", "print('ran')")
        self.assertStatus(done, 125)
        self.assertEqual(done.out, "")
        self.assertIn("big", done.err)
        self.assertIn("--disk", done.err)

    def test_keeper_killed(self):
        p = cli.start("run", "-c", "print('go', flush=True)\nwhile True: pass")
        cli.read_until(p.stdout, b"go\n")
        below = cli.descendants(p.pid)
        for sweeper in cli.children(p.pid):
            for pid in [sweeper, *cli.children(sweeper)]:  # the keeper is its child
                with contextlib.suppress(ProcessLookupError):  # it ends with the other
                    os.kill(pid, signal.SIGKILL)
        done = cli.finish(p)
        self.assertIn(done.status, (1, 125), f"{done}")
        self.assertIn("keeper", done.err)
        self.assertEqual(cli.wait_gone(below), set())


class OrdinaryUser(cli.Case):
    def test_a_strict_umask(self):
        """A service's, often."""
        for user in (None, cli.NOBODY):
            with self.subTest(user=user):
                line = cli.command("run", "-c", "open('/dev/null', 'w').write('x')", user=user)
                done = subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", *line], capture_output=True,
                                      env=cli.plain_environment(), timeout=cli.PATIENCE)
                self.assertStatus(cli.Done(done.returncode, done.stdout, done.stderr), 0)

    def test_run(self):
        done = cli.run("run", "-c", "import os; print(os.getuid()); 6 * 7", user=cli.NOBODY)
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "1000\n42\n")

    def test_files(self):
        path = self.write("in.txt", "abc")
        out = self.path("out")
        os.mkdir(out)
        os.chown(out, cli.NOBODY, cli.NOBODY)
        done = cli.run("run", "-f", path, "-o", out, "-c",
                       "open('out.txt', 'w').write(open('in.txt').read().upper())", user=cli.NOBODY)
        self.assertStatus(done, 0)
        self.assertEqual(os.listdir(out), ["out.txt"])
        self.assertEqual(self.read("out/out.txt"), b"ABC")
        self.assertEqual(os.stat(self.path("out/out.txt")).st_uid, cli.NOBODY)

    def test_limits(self):
        for args, status in ((["--timeout", "1", "-c", "while True: pass"], 124),
                             (["--cpu", "0.5", "-c", "while True: pass"], 124)):
            with self.subTest(args=args):
                self.assertStatus(cli.run("run", *args, user=cli.NOBODY), status)
