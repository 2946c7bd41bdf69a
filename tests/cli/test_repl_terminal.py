"""retort repl at a terminal, as a person uses it, and with its input from a pipe."""
import os
import signal
import time

import cli
from cli import Terminal


class Person(cli.Case):
    def session(self, *args, **options):
        t = Terminal("repl", *args, **options)
        self.addCleanup(t.__exit__)
        t.expect(r"In \[1\]: $")
        return t

    def test_banner(self):
        t = self.session("--memory", "256m", "--timeout", "5")
        banner = t.plain.splitlines()
        self.assertRegex(banner[0], r"^retort \d+\.\d+\.\d+: .*Ctrl-D")
        self.assertRegex(banner[1], r"5 s a cell.*256 MiB memory.*no network")
        self.assertRegex(banner[2], r"%undo .*%fork ")

    def test_results(self):
        t = self.session()
        t.line("x = 20")
        t.expect(r"In \[2\]: $")
        t.line("x * 2 + 2")
        t.expect(r"Out\[2\]: 42\n\nIn \[3\]: $")
        t.line("print('hello')")
        t.expect(r"\nhello\n\nIn \[4\]: $")
        t.line("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
        t.expect(r"Out\[4\]: \n   a\n0  1\n1  2\n")

    def test_multi_line_with_indentation(self):
        t = self.session()
        t.line("for i in range(2):")
        t.expect(r"   \.\.\.:     $")
        t.line("print('i', i)")
        t.expect(r"   \.\.\.:     $")
        t.line("")
        t.expect(r"\ni 0\ni 1\n\nIn \[2\]: $")
        t.line("%%time")
        t.expect(r"\.\.\.: +$")
        t.line("print('timed')")
        t.expect(r"\.\.\.: +$")
        t.line("")
        t.expect(r"\ntimed\n")
        t.expect(r"In \[3\]: $")
        t.line("(1 +")
        t.expect(r"\.\.\.: +$")
        t.line("")
        t.expect(r"\.\.\.: +$")
        t.line("2)")
        t.expect(r"Out\[3\]: 3\n")

    def test_paste_with_an_empty_line_in_it(self):
        t = self.session()
        t.send("def f():\r    a = 1\r\r    return a + 1\r\r")
        t.expect(r"In \[2\]: $")
        t.line("f()")
        t.expect(r"Out\[2\]: 2\n")

    def test_tab_indents(self):
        t = self.session()
        t.line("x = '\t|'")
        t.expect(r"In \[2\]: $")
        t.line("x")
        t.expect(r"Out\[2\]: '    \|'\n")

    def test_syntax_error(self):
        t = self.session()
        t.line("x = = 1")
        t.expect("SyntaxError")
        t.expect(r"In \[2\]: $")

    def test_unicode(self):
        t = self.session()
        t.line("'é漢' * 2")
        t.expect(r"Out\[1\]: 'é漢é漢'\n")

    def test_control_c_at_the_prompt_forgets_the_line(self):
        t = self.session()
        t.send("garbage that is not")
        t.expect("not$")
        t.send("\x03")
        t.expect(r"\^C\nIn \[1\]: $")
        t.line("1 + 1")
        t.expect(r"Out\[1\]: 2\n")
        t.line("for i in range(2):")
        t.expect(r"\.\.\.: +$")
        t.send("\x03")
        t.expect(r"\^C\nIn \[2\]: $")

    def test_control_c_in_a_cell_keeps_the_session(self):
        t = self.session()
        t.line("x = 7")
        t.expect(r"In \[2\]: $")
        t.line("import time; print('go'); time.sleep(600)")
        t.expect(r"\ngo\n")
        t.send("\x03")
        t.expect("KeyboardInterrupt")
        t.expect(r"In \[3\]: $")
        t.line("x")
        t.expect(r"Out\[3\]: 7\n")

    def test_control_d_leaves(self):
        t = self.session()
        t.send("\x04")
        self.assertEqual(t.wait(), 0)
        self.assertRegex(t.plain, r"In \[1\]: (\^D)?\n$")

    def test_termination(self):
        t = self.session()
        os.kill(t.pid, signal.SIGTERM)
        self.assertEqual(t.wait(), 143)
        t = self.session()
        t.line("while True: pass")
        t.expect("\n")
        os.kill(t.pid, signal.SIGTERM)
        self.assertEqual(t.wait(), 143)

    def test_stopped_and_back(self):
        t = self.session()
        t.send("40 +")
        t.expect(r"40 \+$")
        os.kill(t.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, t.pid, os.WSTOPPED)
        os.kill(t.pid, signal.SIGCONT)
        t.expect(r"In \[1\]: 40 \+$")
        t.line(" 2")
        t.expect(r"Out\[1\]: 42\n")

    def test_words_that_leave(self):
        for word in ("exit", "quit", "exit()", "quit()"):
            with self.subTest(word=word):
                t = self.session()
                t.line(word)
                self.assertEqual(t.wait(), 0)

    def test_sys_exit_leaves_with_its_status(self):
        t = self.session()
        t.line("import sys; sys.exit(3)")
        self.assertEqual(t.wait(), 3)

    def test_a_crash_is_told_and_the_session_goes_on(self):
        t = self.session()
        t.line("x = 1")
        t.expect(r"In \[2\]: $")
        t.line("import os; os.abort()")
        t.expect("retort: .*signal 6")
        t.expect("retort: the interpreter is gone; the session goes on with the state after cell 1\n")
        t.expect(r"In \[3\]: $")
        t.line("x")
        t.expect(r"Out\[3\]: 1\n")
        t.line("import os; os._exit(7)")  # looking at x left no trace: what was kept is as good after it
        t.expect("retort: the interpreter is gone; the session goes on with the state after cell 3\n")
        t.expect(r"In \[5\]: $")

    def test_a_memory_limit_is_told(self):
        t = self.session("--memory", "100m")
        t.line("y = 1")
        t.expect(r"In \[2\]: $")
        t.line("x = bytearray(300 << 20)")
        t.expect("retort: stopped: memory limit of 100 MiB reached")
        t.expect("retort: the interpreter is gone; the session goes on with the state after cell 1\n")
        t.expect(r"In \[3\]: $")

    def test_a_time_limit_keeps_the_variables(self):
        t = self.session("--timeout", "1")
        t.line("x = 5")
        t.expect(r"In \[2\]: $")
        t.line("while True: pass")
        t.expect("stopped: wall time limit of 1 s")
        t.expect(r"In \[3\]: $")
        t.line("x")
        t.expect(r"Out\[3\]: 5\n")

    def test_undo(self):
        t = self.session()
        for n, line in enumerate(("x = 1", "x = 2; open('a', 'w').close()", "x = 3"), 1):
            t.line(line)
            t.expect(rf"In \[{n + 1}\]: $")
        t.line("x")
        t.expect(r"Out\[4\]: 3\n\nIn \[5\]: $")
        t.line("%undo")
        t.expect(r"back to the state after cell 2, .*\n\nIn \[5\]: $")
        t.line("import os; x, os.listdir()")
        t.expect(r"Out\[5\]: \(2, \['a'\]\)\n\nIn \[6\]: $")
        t.line("%undo 1")
        t.expect(r"back to the state after cell 1, .*\n\nIn \[6\]: $")
        t.line("import os; x, os.listdir()")
        t.expect(r"Out\[6\]: \(1, \[\]\)\n\nIn \[7\]: $")

    def test_undo_as_far_as_it_goes(self):
        t = self.session()
        time.sleep(0.3)  # as a person does: so the beginning is kept
        t.line("x = 1")
        t.expect(r"In \[2\]: $")
        t.line("  %undo ")
        t.expect(r"back to where the session began.*\n\nIn \[2\]: $")
        t.line("%undo")
        t.expect(r"nothing to go back to\n\nIn \[2\]: $")
        t.line("%undo 7")
        t.expect(r"the state after cell 7 is not kept; there are: 0.*\n\nIn \[2\]: $")
        for wrong in ("%undo -1", "%undo x", "%undo 1 2", "%undo 4294967295"):
            t.line(wrong)
            t.expect(r"%undo takes nothing, or the number of a cell.*\n\nIn \[2\]: $")
        t.line("'x' in globals()")
        t.expect(r"Out\[2\]: False\n")

    def test_checkpoints(self):
        t = self.session()
        time.sleep(0.3)
        t.line("import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True, "
               "name='w' + chr(27) + ']0;t').start()")
        t.expect(r"In \[2\]: $")
        t.line("1")
        t.expect(r"In \[3\]: $")
        t.line("%checkpoints")
        t.expect(r"cell  time +memory  lost\n +0  \d\d:\d\d:\d\d +\d\S* .?B\n"
                 r"\* +2  \d\d:\d\d:\d\d +\d\S* .?B  thread w\?\]0;t\n\nIn \[3\]: $")
        t.line("%checkpoints please")
        t.expect(r"%checkpoints takes nothing\n")
        self.assertNotIn(b"\x1b]0;t", t.seen)

    def test_fork(self):
        t = self.session()
        for n, line in enumerate(("x = 1; open('a', 'w').close()", "x = 2; import os"), 1):
            t.line(line)
            t.expect(rf"In \[{n + 1}\]: $")
        t.line("%fork")
        t.expect(r"retort: branch 2, which left branch 1 after cell 2\n\nIn \[3\]: $")
        t.line("x = 'b'; os.unlink('a')")
        t.expect(r"In \[4\]: $")
        t.line("%branch 1")
        t.expect(r"retort: branch 1\n\nIn \[3\]: $")
        t.line("x, os.listdir()")
        t.expect(r"Out\[3\]: \(2, \['a'\]\)\n\nIn \[4\]: $")
        t.line(" %branch\t2 ")
        t.expect(r"retort: branch 2\n\nIn \[4\]: $")
        t.line("x, os.listdir()")
        t.expect(r"Out\[4\]: \('b', \[\]\)\n\nIn \[5\]: $")
        t.line("%branches")
        t.expect(r"  branch +of +after cell +next cell\n  +1 +4\n\* +2 +1 +2 +5\n\nIn \[5\]: $")
        t.send("\x04")
        self.assertEqual(t.wait(), 0)

    def test_fork_of_an_earlier_state(self):
        t = self.session()
        for n in range(1, 4):
            t.line(f"x = {n}")
            t.expect(rf"In \[{n + 1}\]: $")
        t.line("%fork 1")
        t.expect(r"retort: branch 2, which left branch 1 after cell 1\n\nIn \[2\]: $")
        t.line("y = x; y")
        t.expect(r"Out\[2\]: 1\n\nIn \[3\]: $")
        t.line("%fork")
        t.expect(r"retort: branch 3, which left branch 2 after cell 2\n\nIn \[3\]: $")
        for n in (3, 4):
            t.line(f"y = {n}")
            t.expect(rf"In \[{n + 1}\]: $")
        t.line("%undo 3")
        t.expect(r"back to the state after cell 3.*\n\nIn \[5\]: $")
        t.line("%fork")
        t.expect(r"retort: branch 4, which left branch 3 after cell 3\n\nIn \[4\]: $")
        t.line("x, y")
        t.expect(r"Out\[4\]: \(1, 3\)\n")

    def test_fork_of_the_beginning(self):
        t = self.session()
        t.line("%fork")
        t.expect(r"retort: branch 2, as branch 1 began\n\nIn \[1\]: $")
        t.line("6 * 7")
        t.expect(r"Out\[1\]: 42\n")

    def test_where_no_branch_can_leave(self):
        t = self.session()
        t.line("x = 1")
        t.expect(r"In \[2\]: $")
        time.sleep(0.3)
        t.line("%fork 7")
        t.expect(r"retort: the state after cell 7 is not kept; there are: .*1\n\nIn \[2\]: $", 5)
        for wrong in ("%fork -1", "%fork x", "%fork 1 2"):
            t.line(wrong)
            t.expect(r"%fork takes nothing, or the number of a cell.*\n\nIn \[2\]: $")
        for wrong in ("%branch", "%branch x"):
            t.line(wrong)
            t.expect(r"%branch takes the number of a branch.*\n\nIn \[2\]: $")
        for wrong in ("0", "2"):
            t.line("%branch " + wrong)
            t.expect(rf"there is no branch {wrong}; the last is 1\n\nIn \[2\]: $")
        t.line("%branches please")
        t.expect(r"%branches takes nothing\n\nIn \[2\]: $")
        t.line("x")
        t.expect(r"Out\[2\]: 1\n")

    def test_control_c_while_a_branch_is_made(self):
        t = self.session()
        t.line("import os, time; x = 1; os.register_at_fork(before=lambda: time.sleep(4))")  # to keep it takes so long
        t.expect(r"In \[2\]: $")
        t.line("%fork")
        t.expect(r"%fork\n")
        time.sleep(0.5)
        t.send("\x03")
        t.expect(r"retort: no branch was made.*\n\nIn \[2\]: $", 3)
        t.line("x")
        t.expect(r"Out\[2\]: 1\n\nIn \[3\]: $")
        t.line("%branches")
        t.expect(r"\* +1 +3\n\nIn \[3\]: $")

    def test_a_branch_that_dies_alone(self):
        t = self.session()
        # What sends nonsense where messages go, while no cell runs, ends its session.
        t.line("import threading, time, os; x = 1; threading.Timer(1, exec, ('for fd in range(3, 99):"
               r"\n try: os.write(fd, b\'\\xff\' * 99)\n except OSError: pass', globals())).start()")
        t.expect(r"In \[2\]: $")
        t.line("%fork")
        t.expect(r"In \[2\]: $")
        t.line("time.sleep(1.5); x")
        t.expect(r"Out\[2\]: 1\n\nIn \[3\]: $")
        t.line("%branch 1")
        if not cli.SERVER:  # where it shows with the next cell
            t.expect(r"retort: branch 1\nretort: .*a fresh session goes on\n\nIn \[1\]: $")
        t.line("'x' in globals()")
        t.expect(r"False\n\nIn \[2\]: $")
        t.line("%branch 2")
        t.expect(r"retort: branch 2\n\nIn \[3\]: $")
        t.line("x")
        t.expect(r"Out\[3\]: 1\n")

    def test_figures(self):
        t = self.session("-o", self.path("out"))
        t.line("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
        t.expect(r"retort: figure 1: image/png, [0-9.]+ kB, saved as .*figure-1\.png")
        self.assertTrue(self.read("out/figure-1.png").startswith(b"\x89PNG"))
        t.line("open('f.txt', 'w').write('x')")
        t.expect(r"retort: wrote .*f\.txt \(1 B\)")
        self.assertEqual(self.read("out/f.txt"), b"x")

    def test_history(self):
        t = self.session(env={"HOME": self.dir})
        t.line("111 + 1")
        t.expect(r"In \[2\]: $")
        t.send("\x1b[A")
        t.expect(r"111 \+ 1$")
        t.send("\x04\x03")
        t.expect(r"In \[2\]: $")
        t.send("\x04")
        self.assertEqual(t.wait(), 0)
        self.assertEqual(os.listdir(self.dir), [])

    def test_history_in_a_file(self):
        file = self.path("history")
        t = self.session(env={"RETORT_HISTORY": file})
        t.line("222 + 1")
        t.expect(r"In \[2\]: $")
        t.send("\x04")
        t.wait()
        t = self.session(env={"RETORT_HISTORY": file})
        t.send("\x1b[A")
        t.expect(r"222 \+ 1$")

    def test_resize_and_long_lines(self):
        t = self.session(columns=40)
        t.resize(60, 20)
        t.line("len('" + "x" * 100 + "')")
        t.expect(r"Out\[1\]: 100\n")


class Escapes(cli.Case):
    """What a cell prints must not command the terminal."""

    def shown(self, text):
        with Terminal("repl") as t:
            t.expect(r"In \[1\]: $")
            t.line(f"print({ascii(text)}); print('END' + 'MARK')")
            t.expect("ENDMARK\n")
            end = t.seen.index(b"ENDMARK\r\n")
            return t.seen[t.seen.rindex(b"\r\n", 0, t.seen.rindex(b"\r\n", 0, end)) + 2:end]

    def test_sequences_are_taken_out(self):
        for text in ("\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x1b\\", "\x1b[2J", "\x1b[6n",
                     "\x1bP+q544e\x1b\\", "\x1b[?1049h", "\x1bc", "\x9b2J", "\x9d0;t\x9c", "\x07",
                     "\x0e", "\x05", "\x7f", "\x1b(0", "\x1b_x\x1b\\", "\x1b^x\x1b\\"):
            with self.subTest(text=text):
                self.assertEqual(self.shown(f"a{text}b"), b"ab\r\n")

    def test_colours_stay_and_are_reset(self):
        self.assertIn(b"\x1b[31mred", self.shown("\x1b[31mred"))

    def test_plain_text_stays(self):
        self.assertEqual(self.shown("é漢|").decode(), "é漢|\r\n")

    def test_raw_where_there_is_no_terminal(self):
        done = cli.run("repl", input="print('\\x1b[2J')\n")
        self.assertEqual(done.out, "\x1b[2J\n")

    def test_results_and_tracebacks_too(self):
        with Terminal("repl") as t:
            t.expect(r"In \[1\]: $")
            t.line("C = type('C', (), {'__repr__': lambda s: chr(27) + ']0;t' + chr(7) + 'shown'})")
            t.expect(r"In \[2\]: $")
            t.line("C()")
            t.expect(r"Out\[2\]: shown")
            t.line("raise ValueError(chr(27) + ']0;t' + chr(7) + 'ra' + 'ised')")
            t.expect("raised\n")
            self.assertNotIn(b"\x1b]0;t", t.seen)


class Pipe(cli.Case):
    def test_lines(self):
        done = cli.run("repl", input="x = 1\nfor i in range(2):\n    print(i)\n\nx + 1\n")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "0\n1\n2\n")
        self.assertEqual(done.err, "")

    def test_blocks(self):
        done = cli.run("repl", input="def f():\n    a = 1\n\n    # and\n    return a\n\nprint(f())\n"
                                     "if True:\n    print('yes')\nelse:\n    print('no')")
        self.assertEqual(done.out, "1\nyes\n")

    def test_an_error_does_not_end_it(self):
        done = cli.run("repl", input="1/0\nprint('on')\n")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "on\n")
        self.assertIn("ZeroDivisionError", done.err)

    def test_last_line_without_newline(self):
        self.assertEqual(cli.run("repl", input="1 + 1").out, "2\n")

    def test_empty(self):
        done = cli.run("repl", input="")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "")

    def test_exit(self):
        self.assertEqual(cli.run("repl", input="exit\nprint(1)\n").out, "")
        self.assertStatus(cli.run("repl", input="import sys\nsys.exit(4)\n"), 4)
