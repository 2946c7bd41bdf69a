"""Errors, exits, and programs that mean harm: the status is true and the session goes on."""
import sys
import unittest

from owner import PATIENCE, Dead, Session, needs
from test_cells import Case


class Errors(Case):
    def fails(self, code, name=None, **options):
        cell = self.session.run(code, **options)
        self.assertEqual(cell.status, "error", cell.outputs)
        if name:
            self.assertEqual(cell.error[0], name)
        for part, limit in zip(cell.error, (1100, 66000, 263000)):
            self.assertLess(len(part), limit)
        for hidden in ("retort_kernel", "IPython/core", "\x1b["):
            self.assertNotIn(hidden, cell.error[2])
        return cell

    def test_shape(self):
        cell = self.fails("def f(a, *b, k=1, **c):\n    # before\n    x = 1\n    return a / 0\n\nf(1)", "ZeroDivisionError")
        self.assertEqual(cell.error[1], "division by zero")
        self.assertEqual(cell.traceback, (
            "-" * 75 + "\n"
            "ZeroDivisionError                         Traceback (most recent call last)\n"
            "Cell In[1], line 6\n"
            "      4     return a / 0\n"
            "      5\n"
            "----> 6 f(1)\n"
            "\n"
            "Cell In[1], line 4, in f(a, *b, k, **c)\n"
            "      2 # before\n"
            "      3 x = 1\n"
            "----> 4 return a / 0\n"
            "\n"
            "ZeroDivisionError: division by zero\n"))

    def test_lines_of_files(self):
        cell = self.fails("import json\njson.loads('{')", "JSONDecodeError")
        self.assertIn("json/decoder.py:", cell.traceback)
        self.assertRegex(cell.traceback, r"-> \d+ +obj, end = ")

    @needs("pandas")
    def test_lines_of_pandas(self):
        cell = self.fails("import pandas as pd\npd.DataFrame({'a': [1]})['b']", "KeyError")
        self.assertIn("direct cause", cell.traceback)
        self.assertIn("DataFrame.__getitem__(self, key)", cell.traceback)

    def test_earlier_cells(self):
        self.run_ok("def f():\n    raise ValueError('here')")
        cell = self.fails("\nf()")
        self.assertIn("Cell In[1], line 2, in f()\n      1 def f():\n----> 2     raise", cell.traceback)
        self.assertIn("Cell In[2], line 2\n", cell.traceback)

    def test_chains(self):
        cell = self.fails("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e", "KeyError")
        self.assertLess(cell.traceback.index("division"), cell.traceback.index("direct cause"))
        cell = self.fails("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k')", "KeyError")
        self.assertIn("During handling", cell.traceback)
        cell = self.fails("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from None")
        self.assertNotIn("division", cell.traceback)
        cell = self.fails("a, b = ValueError('a'), ValueError('b')\na.__cause__ = b; b.__cause__ = a\nraise a")
        self.assertEqual(cell.traceback.count("ValueError: b"), 1)
        self.fails("e = None\nfor i in range(500):\n    n = ValueError(i); n.__cause__ = e; e = n\nraise e")

    @unittest.skipIf(sys.version_info < (3, 11), "ExceptionGroup came with Python 3.11")
    def test_groups(self):
        cell = self.fails("raise ExceptionGroup('many', [ValueError(1), ExceptionGroup('in', [KeyError(2)])])")
        self.assertIn("  | ValueError: 1", cell.traceback)
        self.assertIn("  |   | KeyError: 2", cell.traceback)
        self.fails("g = ValueError(1)\nfor i in range(900): g = ExceptionGroup('g', [g, g])\nraise g")
        self.fails("raise ExceptionGroup('g', [ValueError('x' * 100000)] * 200)")
        cell = self.fails("e = ValueError('v'); e.add_note('a note'); raise e")
        self.assertIn("a note", cell.traceback)

    def test_syntax(self):
        cell = self.fails("x = 1\nfor", "SyntaxError")
        self.assertEqual(cell.traceback, "  Cell In[1], line 2\n    for\n       ^\nSyntaxError: invalid syntax\n")
        self.fails("if x:\nprint(1)", "IndentationError")
        self.fails("return 5", "SyntaxError")
        self.fails("'\\ud800".encode().decode() + "'\n(", "SyntaxError")
        self.fails("x = '\0'")
        cell = self.fails("eval('1 +')", "SyntaxError")
        self.assertIn("----> 1 eval('1 +')", cell.traceback)
        self.fails("e = SyntaxError('m'); e.filename = 3; e.lineno = 'x'; e.text = []; e.offset = {}; raise e")
        self.fails("(" * 5000)
        self.fails("raise SyntaxError('m', ('<cell 1>', 10**9, -5, 'text', -10**9, 10**12))")

    def test_recursion(self):
        cell = self.fails("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError")
        self.assertIn("skipping similar frames", cell.traceback)
        self.assertLess(len(cell.traceback), 3000)
        cell = self.fails("def a(n): return b(n)\ndef b(n): return a(n)\na(0)", "RecursionError")
        self.assertIn("frames left out", cell.traceback)
        self.fails("def p(n):\n    print(n); print(n, file=__import__('sys').stderr); display(n); p(n + 1)\np(0)",
                   "RecursionError")
        self.run_ok("1")

    def test_hostile_exceptions(self):
        for body, value in (
                ("raise ValueError", "failed with ValueError"),
                ("raise SystemExit", "failed with SystemExit"),
                ("return self.__str__()", "failed with RecursionError"),
                ("return 5", "failed with TypeError"),
                ("return 'x' * 200_000_000", "characters left out")):
            cell = self.fails(f"class E(Exception):\n    def __str__(self):\n        {body}\n"
                              "    __repr__ = __str__\nraise E", "E")
            self.assertIn(value, cell.error[1])
        self.fails("class M(type):\n    @property\n    def __name__(cls): raise ValueError\n"
                   "class E(Exception, metaclass=M): pass\nraise E", "E")
        self.fails("E = type('E' * 5000, (Exception,), {}); raise E")
        self.fails("class E(Exception):\n    __traceback__ = __cause__ = property(lambda s: 1/0)\nraise E")
        self.fails("class E(Exception):\n    def __getattribute__(self, n): raise KeyError(n)\nraise E")
        self.fails("class S(str):\n    def __len__(self): 1/0\n    encode = None\n"
                   "class E(Exception):\n    def __str__(self): return S('s')\nraise E")
        self.fails("raise ValueError('\\ud800')")
        self.fails("class B(BaseException): pass\nraise B", "B")
        self.fails("exec(compile('\\n' * 10 + '1/0', '/dev/zero', 'exec'))")
        self.fails("import os; os.mkfifo('f'); exec(compile('1/0', 'f', 'exec'))")
        self.fails("import ctypes; ctypes.pythonapi.PyErr_SetString(None, None) if 0 else int('x')", "ValueError")
        self.run_ok("1")

    def test_hostile_str_can_be_interrupted(self):
        self.session.start("class E(Exception):\n    def __str__(self):\n        print('in')\n        while 1: pass\nraise E")
        cell = self.session.finish(tick=interrupt_at(self.session, "in\n"))
        self.assertEqual((cell.status, cell.error[0]), ("error", "E"))
        self.run_ok("1")

    def test_reprs(self):
        cell = self.fails("class R:\n    def __repr__(self): return 1/0\nR()", "ZeroDivisionError")
        self.assertIn("__repr__", cell.traceback)
        self.fails("class R:\n    def __repr__(self): return repr(self)\nR()", "RecursionError")
        cell = self.run_ok("class R:\n    def _repr_html_(self): 1/0\n    def __repr__(self): return 'fine'\nR()")
        self.assertEqual(cell.result, {"text/plain": b"fine"})
        self.assertIn("ZeroDivisionError", cell.stderr)
        cell = self.session.run("class R:\n    def __repr__(self): raise SystemExit(4)\nR()")
        self.assertEqual((cell.status, cell.code), ("exit", 4))
        self.fails("class R:\n    def __repr__(self): 1/0\ndisplay(R())", "ZeroDivisionError")
        self.run_ok("class R:\n    def _repr_mimebundle_(self, **k): return {'image/png': 'not base64!', 5: 6, 'x/y': 1+2j}\nR()")
        self.run_ok("class R:\n    def _repr_mimebundle_(self, **k): return {f'x/{i}': 'y' for i in range(1000)}\nR()")
        self.fails("class R:\n    def _repr_mimebundle_(self, **k): return {'application/json': R}\n"
                   "    __str__ = lambda s: 1/0\ndisplay({'application/json': R()}, raw=True)")
        self.run_ok("class R:\n    def __getattr__(self, n): return R()\n    def __repr__(self): return 'r'\nR()")
        self.run_ok("l = []; l.append(l); l")
        cell = self.session.run("10**5000")
        self.assertEqual(cell.status, "error" if hasattr(sys, "set_int_max_str_digits") else "ok")


def interrupt_at(session, text):
    """A tick for Session.finish: SIGINT once this text has come."""
    sent = []

    def tick(cell):
        if not sent and text in cell.stdout:
            sent.append(1)
            session.interrupt()
    return tick


class Exits(Case):
    def test_codes(self):
        for code, expected in (("import sys; sys.exit()", 0), ("exit()", 0), ("quit()", 0), ("exit", 0),
                               ("exit(3)", 3), ("sys.exit(7)", 7), ("sys.exit(True)", 1), ("sys.exit(-1)", 255),
                               ("raise SystemExit", 0), ("def f(): exit(5)\nf()", 5)):
            cell = self.session.run(code)
            self.assertEqual((cell.status, cell.code, cell.error, cell.stderr), ("exit", expected, None, ""), code)
        self.run_ok("1")

    def test_message(self):
        cell = self.session.run("import sys\nprint('before')\nsys.exit('a message')\nprint('after')")
        self.assertEqual((cell.status, cell.code, cell.stdout, cell.stderr), ("exit", 1, "before\n", "a message\n"))

    def test_hostile(self):
        cell = self.session.run("class C:\n    def __str__(self): 1/0\nraise SystemExit(C())")
        self.assertEqual((cell.status, cell.code), ("exit", 1))
        cell = self.session.run("class X(SystemExit):\n    code = property(lambda s: 1/0)\nraise X")
        self.assertIn(cell.status, ("exit", "error"))
        self.run_ok("1")

    def test_process_ends(self):
        for code, status in (("import os; print('x'); os._exit(9)", 9 << 8),
                             ("import os; print('x'); os.abort()", 6),
                             ("import ctypes; print('x'); ctypes.string_at(0)", 11)):
            with Session() as session:
                with self.assertRaises(Dead) as caught:
                    session.run(code)
                self.assertEqual(caught.exception.args[0] & 0xff7f, status)
                self.assertEqual(session.cell.stdout, "x\n")

    def test_owner_goes(self):
        self.assertEqual(self.session.close(PATIENCE), 0)


class Hostile(Case):
    """Each leaves the session able to run a cell and to say what went wrong with another."""

    def survives(self, code):
        cell = self.session.run(code)
        self.assertIn(cell.status, ("ok", "error"))
        self.assertEqual(self.session.run("1+1").plain, "2", code)
        self.assertEqual(self.session.run("1/0").error[0], "ZeroDivisionError", code)
        return cell

    def test_streams(self):
        self.survives("import sys; sys.stdout = sys.stderr = None")
        self.assertEqual(self.run_ok("print(1)").stdout, "1\n")
        self.survives("class W:\n    def write(self, t): 1/0\n    flush = write\nsys.stdout = sys.stderr = W()")
        self.survives("del sys.stdout, sys.stderr")
        self.survives("import os; os.close(1); os.close(2)")

    def test_builtins(self):
        self.survives("import builtins; del builtins.print")
        self.survives("import builtins; builtins.str = builtins.type = builtins.dict = None")
        self.survives("import builtins\nfor n in ('memoryview', 'sum', 'any', 'map', 'len'): delattr(builtins, n)")

    def test_modules(self):
        self.survives("import os, signal, sys\nos.write = os._exit = os.getpid = signal.signal = None")
        self.survives("sys.modules.clear()")

    def test_all_builtins_gone(self):
        self.session.run("import builtins\nvars(builtins).clear()")
        self.assertIn(self.session.run("1+1").status, ("ok", "error"))
        self.assertIn(self.session.run("1/0").status, ("error",))
        self.assertIn(self.session.check("x ="), ((0, ""), (2, "")))

    def test_ipython(self):
        self.survives("ip = get_ipython()\nip.run_cell = ip.execute = ip.showtraceback = None")
        self.survives("type(ip).execute = None")
        self.survives("import sys; sys.displayhook = None; sys.excepthook = None")
        self.survives("import linecache; linecache.cache = None; linecache.getlines = None")

    def test_interpreter_settings(self):
        self.survives("import sys\nfor n in range(1, 100):\n    try:\n        sys.setrecursionlimit(n)\n        break\n"
                      "    except RecursionError: pass")
        self.survives("sys.settrace(lambda *a: 1/0)")
        self.run_ok("sys.settrace(lambda *a: None)")
        self.assertEqual(self.run_ok("sys.gettrace() is None").plain, "True")
        self.survives("sys.setprofile(lambda *a: None)")
        self.survives("import gc; gc.disable(); gc.set_threshold(1)")
        self.survives("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)")
        self.survives("signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})")
        self.survives("import faulthandler, warnings; warnings.simplefilter('error')")
        self.session.start("print('in')\nwhile 1: pass")
        self.assertEqual(self.session.finish(tick=interrupt_at(self.session, "in\n")).status, "interrupted")

    def test_alarm_between_cells(self):
        """The usual time-out raises from a signal handler, perhaps when the cell is long over."""
        self.run_ok("import signal\ndef late(*a): raise TimeoutError('late')\nsignal.signal(signal.SIGALRM, late);")
        self.session.run("signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)")
        import time
        for _ in range(300):
            cell = self.session.run("1+1")
            self.assertIn((cell.status, cell.plain or cell.error[0]), [("ok", "2"), ("error", "TimeoutError"), ("error", "2")])
            time.sleep(0.0003)
        while self.session.run("signal.setitimer(signal.ITIMER_REAL, 0)").status != "ok":
            pass
        self.assertEqual(self.run_ok("1+1").plain, "2")

    def test_channel_closed(self):
        with Session() as session:
            with self.assertRaises(Dead) as caught:
                session.run("import os; os.closerange(3, 1000); print('x')")
            self.assertEqual(caught.exception.args[0], 70 << 8)
            self.assertEqual(session.cell.stdout, "x\n")

    def test_descriptors(self):
        self.assertEqual(self.run_ok("import os\nsorted(map(int, os.listdir('/proc/self/fd')))[:-3]").plain, "[0, 1, 2]")
        cell = self.run_ok("import subprocess\nsubprocess.run('ls /proc/self/fd', shell=True, close_fds=False);")
        self.assertEqual(cell.stdout.split(), ["0", "1", "2", "3"])
