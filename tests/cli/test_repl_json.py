"""retort repl --json: a conversation with a program."""
import json
import signal
import time

import cli
from cli import Repl, result, text


class Conversation(cli.Case):
    def test_state_stays(self):
        with Repl() as r:
            self.assertEqual(r.cell("x = 41")["status"], "ok")
            cell = r.cell("x + 1")
            self.assertEqual(result(cell), "42")
            self.assertEqual(cell["n"], 2)
            self.assertEqual(cell["code"], "x + 1")
            self.assertNotIn("session_ended", cell)

    def test_an_error_keeps_the_session(self):
        with Repl() as r:
            r.cell("x = 1")
            cell = r.cell("1/0")
            self.assertEqual(cell["error"]["name"], "ZeroDivisionError")
            self.assertEqual(result(r.cell("x")), "1")

    def test_end_of_input(self):
        with Repl() as r:
            r.send(code="print(1)")
            r.send(code="print(2)")
            status, rest = r.end()
            self.assertEqual(status, 0)
            self.assertEqual([text(c) for c in rest], ["1\n", "2\n"])

    def test_last_line_without_newline(self):
        done = cli.run("repl", "--json", input='\n  \n{"code":"1+1"}')
        self.assertStatus(done, 0)
        self.assertEqual(result(done.json), "2")
        self.assertEqual(done.err, "")

    def test_answers_in_the_order_of_the_lines(self):
        lines = ['{"code":"import time; time.sleep(1); print(1)"}', "nonsense",
                 '{"code":"print(2)"}', '{"cod":1}', '{"code":"print(3)"}']
        done = cli.run("repl", "--json", input="\n".join(lines) + "\n")
        answers = [json.loads(l) for l in done.out.splitlines()]
        self.assertEqual([a["error"]["code"] if "error" in a else text(a).strip() for a in answers],
                         ["1", "invalid_json", "2", "invalid_request", "3"])

    def test_lines_that_are_no_requests(self):
        with Repl() as r:
            for line, code in ((b"{", "invalid_json"), (b"[]", "invalid_request"),
                               (b'"x"', "invalid_request"), (b"{}", "invalid_request"),
                               (b'{"code":5}', "invalid_request"), (b"\xff\xfe", "invalid_json"),
                               (b'{"code":"1","timeout":0}', "invalid_request"),
                               (b'{"code":"1","timeout":-1}', "invalid_request"),
                               (b'{"code":"1","timeout":true}', "invalid_request"),
                               (b'{"code":"' + b"x" * (33 << 20) + b'"}', "too_large")):
                with self.subTest(line=line[:40]):
                    r.send_raw(line + b"\n")
                    answer = r.answer()
                    self.assertEqual(answer["error"]["code"], code)
                    self.assertTrue(answer["error"]["message"])
            self.assertEqual(result(r.cell("1")), "1")

    def test_the_queue_is_bounded(self):
        with Repl() as r:
            r.send(code="import time; time.sleep(2)")
            r.send_raw(b'{"code":"pass"}\n' * 100)
            answers = [r.answer() for _ in range(101)]
            full = [a for a in answers if a.get("error", {}).get("code") == "queue_full"]
            self.assertEqual(len(full), 36)
            self.assertEqual(sum(a.get("status") == "ok" for a in answers), 65)

    def test_nul_and_unicode_in_code(self):
        with Repl() as r:
            self.assertEqual(result(r.cell("len('é漢\\U0001F600')")), "3")
            self.assertEqual(r.cell("x = '\0'")["status"], "error")
            self.assertEqual(result(r.cell("1")), "1")

    def test_long_code(self):
        with Repl() as r:
            self.assertEqual(result(r.cell(f"len('{'x' * (4 << 20)}')")), str(4 << 20))

    def test_sys_exit_does_not_end_the_conversation(self):
        with Repl() as r:
            r.cell("x = 5; import sys")
            r.cell("sys.exit(3)")
            self.assertEqual(r.answers.qsize(), 0)
            self.assertIn(result(r.cell("x")), ("5",))


class Limits(cli.Case):
    def test_timeout_of_one_cell_keeps_variables(self):
        with Repl() as r:
            r.cell("x = 1")
            cell = r.cell("print('partial')\nwhile True: pass", timeout=0.5)
            self.assertEqual(cell["status"], "limit")
            self.assertEqual(cell["limit"]["kind"], "wall")
            self.assertEqual(cell["limit"]["limit"], 0.5)
            self.assertEqual(text(cell), "partial\n")
            self.assertNotIn("session_ended", cell)
            self.assertEqual(result(r.cell("x")), "1")

    def test_memory_ends_the_interpreter_and_another_takes_its_place(self):
        with Repl("--memory", "100m") as r:
            r.cell("x = 1")
            cell = r.cell("print('partial', flush=True)\ny = bytearray(300 << 20)")
            self.assertEqual(cell["limit"]["kind"], "memory")
            self.assertEqual(text(cell), "partial\n")
            self.assertEqual(cell["restored_to"], 1)
            self.assertNotIn("session_ended", cell)
            cell = r.cell("x")
            self.assertEqual((result(cell), cell["n"]), ("1", 3))
            self.assertEqual(r.cell("y")["error"]["name"], "NameError")

    def test_crash(self):
        with Repl() as r:
            r.cell("x = 1")
            cell = r.cell("import os; os.kill(os.getpid(), 11)")
            self.assertEqual(cell["status"], "crashed")
            self.assertEqual(cell["restored_to"], 1)
            self.assertNotIn("session_ended", cell)
            cell = r.cell("x")
            self.assertEqual(result(cell), "1")
            self.assertNotIn("restored_to", cell)

    def test_30_crashes_in_a_row(self):
        with Repl() as r:
            r.cell("import os; kept = 5")
            for i in range(30):
                cell = r.cell("os.abort()")
                self.assertEqual((cell["status"], cell["restored_to"]), ("crashed", 1), i)
            self.assertEqual(result(r.cell("kept")), "5")

    def test_a_crash_after_each_of_30_cells(self):
        with Repl() as r:
            r.cell("import os; kept = []")
            for i in range(30):
                n = r.cell(f"kept.append({i})")["n"]
                self.assertEqual(r.cell("os._exit(0)")["restored_to"], n)
            self.assertEqual(result(r.cell("kept == list(range(30))")), "True")

    def test_a_session_that_rests_is_kept_as_it_began(self):
        """Also when its first cell left no trace."""
        with Repl() as r:
            r.cell("1")
            cell = r.cell("import os; x = 1; os._exit(3)")
            self.assertEqual(cell["status"], "crashed")
            self.assertIn(cell["restored_to"], (0, 1))
            self.assertEqual(r.cell("x")["error"]["name"], "NameError")

    def test_a_crash_of_the_very_first_cell(self):
        """Nothing is kept yet of a session that runs its first cell as soon as it is there."""
        with Repl() as r:
            cell = r.cell("import os; x = 1; os._exit(3)")
            self.assertEqual(cell["status"], "crashed")
            if "restored_to" in cell:
                self.assertEqual(cell["restored_to"], 0)
            else:
                self.assertIs(cell["session_ended"], True)
            self.assertEqual(r.cell("x")["error"]["name"], "NameError")
            self.assertEqual(result(r.cell("2")), "2")

    def test_death_between_two_cells(self):
        with Repl() as r:
            r.cell("import threading, time, os\n"
                   "threading.Thread(target=lambda: (time.sleep(.3), os._exit(1))).start()")
            time.sleep(1)
            cell = r.cell("1 + 1")
            self.assertEqual((result(cell), cell["n"]), ("2", 2))
            self.assertRegex(text(cell, "stderr"), r"^retort: the interpreter left with status 1 .*while no cell ran; "
                                                   r"the session goes on with the state after cell 1\n")
            self.assertEqual(result(r.cell("os.__name__")), "'os'")


class Interrupts(cli.Case):
    def test_a_running_cell(self):
        with Repl() as r:
            r.cell("x = 1")
            r.send(code="print('go', flush=True)\nwhile True: pass")
            time.sleep(1)
            r.send(interrupt=True)
            cell = r.answer()
            self.assertEqual(cell["status"], "interrupted")
            self.assertEqual(cell["error"]["name"], "KeyboardInterrupt")
            self.assertEqual(text(cell), "go\n")
            self.assertEqual(result(r.cell("x")), "1")

    def test_at_once(self):
        """The interrupt is on its way together with the cell it means."""
        with Repl() as r:
            for _ in range(20):
                r.send_raw(b'{"code":"while True: pass"}\n{"interrupt":true}\n')
                self.assertEqual(r.answer()["status"], "interrupted")
            self.assertEqual(result(r.cell("1")), "1")

    def test_when_nothing_runs(self):
        with Repl() as r:
            for _ in range(20):
                r.send(interrupt=True)
                self.assertEqual(result(r.cell("1")), "1")

    def test_goes_past_the_queue(self):
        with Repl() as r:
            r.send(code="while True: pass")
            r.send(code="print('next')")
            r.send(interrupt=True)
            self.assertEqual(r.answer()["status"], "interrupted")
            self.assertEqual(text(r.answer()), "next\n")

    def test_one_who_does_not_listen_is_killed(self):
        with Repl() as r:
            r.cell("import signal; x = 5")
            r.send(code="signal.signal(2, signal.SIG_IGN)\nwhile True: pass")
            time.sleep(2)
            r.send(interrupt=True)
            cell = r.answer()
            self.assertEqual((cell["status"], cell["restored_to"]), ("interrupted", 1))
            self.assertEqual(result(r.cell("x")), "5")
            # SIGINT means what it meant then
            r.send(code="while True: pass")
            time.sleep(1)
            r.send(interrupt=True)
            cell = r.answer()
            self.assertEqual(cell["status"], "interrupted")
            self.assertNotIn("restored_to", cell)

    def test_signals(self):
        with Repl() as r:
            r.cell("1")
            r.send(code="while True: pass")
            time.sleep(0.5)
            r.process.send_signal(signal.SIGINT)
            self.assertEqual(r.answer()["status"], "interrupted")
            r.process.send_signal(signal.SIGTERM)
            self.assertEqual(r.process.wait(cli.PATIENCE), 143)


class Checkpoints(cli.Case):
    def kept(self, r):
        r.send(checkpoints=True)
        return r.answer()["checkpoints"]

    def test_the_list(self):
        with Repl() as r:
            r.cell("x = 1")
            r.cell("x = 2")
            r.cell("3")
            points = self.kept(r)
            self.assertEqual([p["n"] for p in points][-2:], [1, 3])
            for p in points:
                self.assertEqual(set(p), {"n", "created_at", "memory", "lost"})
                self.assertRegex(p["created_at"], r"^20\d\d-\d\d-\d\dT[\d:.]+Z$")
                self.assertEqual(p["lost"], [])
                self.assertGreater(p["memory"], 0)

    def test_going_back(self):
        with Repl() as r:
            r.cell("x = 1; _ = open('a', 'w').write('one')")
            r.cell("x = 2; _ = open('a', 'w').write('two')")
            r.send(rollback=1)
            self.assertEqual(r.answer(), {"restored_to": 1})
            cell = r.cell("x, open('a').read()")
            self.assertEqual((result(cell), cell["n"]), ("(1, 'one')", 3))

    def test_where_there_is_no_way(self):
        with Repl() as r:
            r.cell("x = 1")
            r.send(rollback=5)
            error = r.answer()["error"]
            self.assertEqual(error["code"], "no_checkpoint")
            self.assertIn("there are: ", error["message"])
            for wrong in ("1", -1, 1.5, None, 2 ** 32):
                r.send(rollback=wrong)
                self.assertEqual(r.answer()["error"]["code"], "invalid_request")
            self.assertEqual(result(r.cell("x")), "1")

    def test_how_many(self):
        with Repl("--checkpoints", "2") as r:
            for i in range(6):
                r.cell(f"x = {i}")
            r.cell("1")
            self.assertEqual(len(self.kept(r)), 2)
        with Repl("--checkpoints", "0") as r:
            r.cell("x = 1; import os")
            time.sleep(0.1)
            self.assertEqual(self.kept(r), [])
            self.assertIs(r.cell("os._exit(1)")["session_ended"], True)
            self.assertEqual(r.cell("x")["error"]["name"], "NameError")

    def test_in_its_turn(self):
        with Repl() as r:
            r.cell("x = 1")
            r.send(code="x = 2; import time; time.sleep(.3)")
            r.send(rollback=1)
            r.send(checkpoints=True)
            r.send(code="x")
            self.assertEqual(r.answer()["n"], 2)
            self.assertEqual(r.answer(), {"restored_to": 1})
            self.assertEqual(r.answer()["checkpoints"][-1]["n"], 1)
            self.assertEqual(result(r.answer()), "1")


class Branches(cli.Case):
    def ask(self, r, **request):
        r.send(**request)
        return r.answer()

    def test_from_then_on_they_are_apart(self):
        with Repl() as r:
            r.cell("x = 1; _ = open('a', 'w').write('one')")
            r.cell("x = 2; _ = open('a', 'w').write('two')")
            self.assertEqual(self.ask(r, fork=True),
                             {"branch": 2, "current": True, "parent": {"branch": 1, "n": 2}, "next": 3})
            cell = r.cell("x, open('a').read()")
            self.assertEqual((cell["n"], result(cell)), (3, "(2, 'two')"))
            r.cell("x = 'b'; _ = open('a', 'w').write('b')")
            self.assertEqual(self.ask(r, branch=1), {"branch": 1, "current": True, "parent": None, "next": 3})
            cell = r.cell("x, open('a').read()")
            self.assertEqual((cell["n"], result(cell)), (3, "(2, 'two')"))
            self.assertEqual(self.ask(r, fork=1)["parent"], {"branch": 1, "n": 1})
            cell = r.cell("x, open('a').read()")
            self.assertEqual((cell["n"], result(cell)), (2, "(1, 'one')"))
            branches = self.ask(r, branches=True)["branches"]
            self.assertEqual([(b["branch"], b["current"], b["next"]) for b in branches],
                             [(1, False, 4), (2, False, 5), (3, True, 3)])
            self.assertEqual(self.ask(r, branch=2)["branch"], 2)
            self.assertEqual(result(r.cell("x, open('a').read()")), "('b', 'b')")
            self.assertEqual(r.end(), (0, []))

    def test_where_there_is_no_way(self):
        with Repl() as r:
            r.cell("x = 1")
            r.cell("1")
            error = self.ask(r, fork=50)["error"]
            self.assertEqual(error["code"], "no_checkpoint")
            self.assertIn("there are: ", error["message"])
            for wrong in ("1", -1, 1.5, None, False, 2 ** 32):
                self.assertEqual(self.ask(r, fork=wrong)["error"]["code"], "invalid_request")
                self.assertEqual(self.ask(r, branch=wrong)["error"]["code"], "invalid_request")
            for wrong in (0, 2, 99):
                self.assertEqual(self.ask(r, branch=wrong)["error"]["code"], "no_branch")
            self.assertEqual(result(r.cell("x")), "1")

    def test_no_state_is_kept(self):
        with Repl("--checkpoints", "0") as r:
            r.cell("x = 1")
            began = time.monotonic()
            self.assertEqual(self.ask(r, fork=True)["error"]["code"], "no_checkpoint")
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(result(r.cell("x")), "1")

    def test_one_that_has_done_nothing_yet(self):
        with Repl() as r:
            r.cell("x = 1")
            self.assertEqual(self.ask(r, fork=True).get("branch"), 2)
            self.assertEqual(self.ask(r, fork=True).get("branch"), 3)
            r.cell("x")
            self.assertEqual(self.ask(r, fork=True).get("branch"), 4)
            r.cell("x = 2")
            self.assertEqual(self.ask(r, rollback=2), {"restored_to": 2})
            self.assertEqual(result(r.cell("x")), "1")

    def test_in_its_turn(self):
        with Repl() as r:
            r.send(code="x = 1; import time; time.sleep(.3)")
            r.send(fork=True)
            r.send(code="x = 2")
            r.send(branch=1)
            r.send(code="x")
            self.assertEqual([r.answer().get("n") for _ in range(4)], [1, None, 2, None])
            self.assertEqual(result(r.answer()), "1")

    def test_a_crash_stays_in_its_branch(self):
        with Repl() as r:
            r.cell("x = 1; import os")
            self.ask(r, fork=True)
            r.cell("x = 2")
            self.assertEqual(r.cell("os._exit(1)")["restored_to"], 2)
            self.assertEqual(result(r.cell("x")), "2")
            self.ask(r, branch=1)
            self.assertEqual(result(r.cell("x")), "1")

    def test_as_many_as_there_can_be(self):
        with Repl() as r:
            r.cell("x = 1")
            for k in range(2, 17):
                self.assertEqual(self.ask(r, fork=True).get("branch"), k)
                r.cell(f"x = {k}")
            error = self.ask(r, fork=True)["error"]
            self.assertEqual(error["code"], "no_branch")
            self.assertIn("16 branches", error["message"])
            for k in (1, 9, 16):
                self.ask(r, branch=k)
                self.assertEqual(result(r.cell("x")), str(k))

    def test_those_that_died_leave_room(self):
        """A box lasts as long as the branches that left it."""
        with Repl() as r:
            for k in range(2, 17):
                r.cell("import threading, os\n"
                       "def end():\n"
                       "    for fd in range(3, 99):  # nonsense where messages go\n"
                       "        try: os.write(fd, b'\\xff' * 99)\n"
                       "        except OSError: pass\n"
                       "go = threading.Event()\n"
                       "threading.Thread(target=lambda: (go.wait(), time.sleep(.2), end())).start()\n"
                       "import time")
                self.assertEqual(self.ask(r, fork=True).get("branch"), k)
                self.ask(r, branch=1)
                r.cell("go.set()")
                time.sleep(1)
                self.assertEqual(r.cell("1")["n"], 1)
            self.assertEqual([b["branch"] for b in self.ask(r, branches=True)["branches"]], list(range(1, 17)))


class OrdinaryUser(cli.Case):
    def test_branches(self):
        with Repl(user=cli.NOBODY) as r:
            r.cell("x = 2")
            r.send(fork=True)
            self.assertEqual(r.answer().get("branch"), 2)
            r.cell("x = 3")
            r.send(branch=1)
            self.assertEqual(r.answer().get("branch"), 1)
            self.assertEqual(result(r.cell("x * 21")), "42")

    def test_conversation(self):
        with Repl(user=cli.NOBODY) as r:
            r.cell("x = 2")
            self.assertEqual(result(r.cell("x * 21")), "42")
