"""What cells do: values, state, text and its order, displays, magics."""
import base64
import json
import os
import struct
import unittest
import zlib

from owner import Dead, Session, needs


def png(data):
    """Width and height of a PNG, checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:20]
    at, body = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IDAT":
            body += data[at + 8:at + 8 + size]
        at += 12 + size
    zlib.decompress(body)
    return struct.unpack_from(">II", data, 16)


class Case(unittest.TestCase):
    def setUp(self):
        self.session = Session()
        self.addCleanup(self.session.close)

    def run_ok(self, code, **options):
        cell = self.session.run(code, **options)
        self.assertEqual(cell.status, "ok", cell.error and cell.error[2])
        self.assertIsNone(cell.error)
        return cell


class Values(Case):
    def test_last_expression(self):
        self.assertEqual(self.run_ok("1+1").plain, "2")
        self.assertEqual(self.run_ok("x = 5\nx * 2").plain, "10")
        self.assertIsNone(self.run_ok("x = 5").result)
        self.assertIsNone(self.run_ok("None").result)
        self.assertIsNone(self.run_ok("for i in range(3):\n    i").result)
        self.assertEqual(self.run_ok("'a\\nb'").plain, r"'a\nb'")

    def test_kinds_and_only_one(self):
        cell = self.run_ok("1\n2\n3")
        self.assertEqual(cell.kinds, ["result"])
        self.assertEqual(cell.plain, "3")

    def test_semicolon_hides(self):
        self.assertIsNone(self.run_ok("5;").result)
        self.assertIsNone(self.run_ok("5; # said").result)
        self.assertEqual(self.run_ok("5 # ;").plain, "5")
        self.assertEqual(self.run_ok("'a;'").plain, "'a;'")

    def test_empty_cells(self):
        for code in ("", "   ", "\n\n", "# a comment", "pass"):
            self.assertEqual(self.run_ok(code).outputs, [])

    def test_history_names(self):
        self.run_ok("7*6")
        self.assertEqual(self.run_ok("_, _1, Out[1], In[1]").plain, "(42, 42, 42, '7*6')")
        self.assertEqual(self.run_ok("_i, _ii, _i1").plain, r"""('_, _1, Out[1], In[1]', '7*6', '7*6')""")
        self.run_ok("_ = 'mine'")
        self.run_ok("99")
        self.assertEqual(self.run_ok("_").plain, "'mine'")

    def test_outputs_do_not_pile_up(self):
        self.run_ok("import weakref\nclass Big: pass\nb = Big(); r = weakref.ref(b)")
        self.run_ok("b")
        self.run_ok("del b")
        for i in range(120):
            self.session.run(str(i + 1000))
        self.assertEqual(self.run_ok("r() is None, len(Out) <= 101").plain, "(True, True)")

    def test_state_classes_pickle(self):
        self.run_ok("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2")
        self.assertEqual(self.run_ok("P(1)").plain, "P(x=1, y=2)")
        self.assertEqual(self.run_ok("import pickle\npickle.loads(pickle.dumps(P(3))) == P(3)").plain, "True")
        self.assertEqual(self.run_ok("P.__module__, __name__").plain, "('__main__', '__main__')")
        self.run_ok("def gen():\n    yield 1\n    yield 2\ng = gen()\nnext(g)")
        self.assertEqual(self.run_ok("next(g)").plain, "2")
        self.assertEqual(self.run_ok("import inspect\ninspect.getsource(gen).splitlines()[0]").plain,
                         "'def gen():'")

    def test_future_imports_stay(self):
        self.run_ok("from __future__ import annotations\ndef f(a: nowhere): pass")
        self.assertEqual(self.run_ok("def g(a: nowhere): pass\ng.__annotations__").plain, "{'a': 'nowhere'}")

    def test_nothing_of_the_warm_up_is_left(self):
        names = self.run_ok("sorted(n for n in globals() if not n.startswith('_') and n != 'open')").plain
        self.assertEqual(names, "['In', 'Out', 'exit', 'get_ipython', 'quit']")
        self.assertEqual(self.run_ok("In[0], len(In), len(Out)").plain, "('', 3, 1)")
        self.assertEqual(self.run_ok("import sys; hasattr(sys, 'last_value'), sys.argv").plain, "(False, [''])")

    def test_ipython_without_its_terminal_until_asked(self):
        there = "import sys; [n for n in ('prompt_toolkit', 'jedi', 'IPython.terminal.embed') if n in sys.modules]"
        self.assertEqual(self.run_ok(there).plain, "[]")
        self.assertEqual(self.run_ok("import IPython, jedi\nhasattr(IPython, 'nothing')").plain, "False")
        self.assertEqual(self.run_ok("from IPython import embed\nembed.__module__").plain,
                         "'IPython.terminal.embed'")
        self.assertEqual(self.run_ok("get_ipython().complete('prin')").plain, "('prin', ['print'])")

    def test_modules_beside_the_cells(self):
        self.run_ok("open('beside.py', 'w').write('value = 17');")
        self.assertEqual(self.run_ok("import beside\nbeside.value").plain, "17")
        self.assertEqual(self.run_ok("import sys\nsys.path[0], any('zygote' in p for p in sys.path)").plain,
                         "('', False)")

    def test_user_formatters(self):
        self.run_ok("ip = get_ipython()\n"
                    "f = ip.display_formatter.formatters['text/plain']\n"
                    "f.for_type(int, lambda v, p, c: p.text('int!'))")
        self.assertEqual(self.run_ok("4").plain, "int!")
        self.run_ok("f.pop(int); ip.display_formatter.formatters['text/html'].for_type(int, str)")
        self.assertEqual(self.run_ok("4").result, {"text/plain": b"4", "text/html": b"4"})
        self.run_ok("%precision 2")
        self.assertEqual(self.run_ok("1/3").plain, "0.33")

    @needs("numpy")
    def test_numbers_of_numpy(self):
        """They take a short way, on which they look as on the long one."""
        self.run_ok("import numpy as np; ip = get_ipython()\n"
                    "def differs(value):\n    return ip.format(value)[0] != ip.format_by_all(value)[0]")
        for value in ("np.float64(1/3)", "np.float32(1/3)", "np.longdouble(1/3)", "np.int64(7)", "np.uint8(7)", "np.bool_(True)",
                      "np.complex64(1j)", "np.timedelta64(1, 'D')", "np.float64('nan')", "1/3"):
            self.assertEqual(self.run_ok(f"ip.is_simple(type({value})), differs({value})").plain, "(True, False)", value)
        self.assertEqual(self.run_ok("np.float64(0.5)").result, {"text/plain": b"0.5"})

    @needs("numpy")
    def test_formatters_for_numbers_of_numpy(self):
        """By a class, by one of its bases, or by its name."""
        self.run_ok("import numpy as np; forms = get_ipython().display_formatter.formatters")
        self.run_ok("%precision 2")
        self.assertEqual(self.run_ok("np.float64(1/3)").plain, "0.33")
        self.run_ok("%precision")
        self.assertEqual(self.run_ok("np.float64(0.25)").plain, "0.25")
        for register in ("for_type(np.float32, show)", "for_type_by_name('numpy', 'float16', show)"):
            self.run_ok(f"show = lambda v, p, c: p.text({register!r}); forms['text/plain'].{register}")
        self.assertEqual(self.run_ok("np.float32(1)").plain, "for_type(np.float32, show)")
        self.assertEqual(self.run_ok("np.float16(1)").plain, "for_type_by_name('numpy', 'float16', show)")
        self.run_ok("forms['text/markdown'].for_type_by_name('numpy', 'complexfloating', lambda v: '*')")
        self.assertEqual(self.run_ok("np.complex64(1)").result, {"text/plain": b"(1+0j)", "text/markdown": b"*"})
        self.run_ok("get_ipython().display_formatter.ipython_display_formatter.for_type(np.bool_, lambda v: print('b!'))")
        self.assertEqual(self.run_ok("np.bool_(True)").stdout, "b!\n")
        self.run_ok("forms['text/html'].for_type(np.integer, lambda v: '<b>')")
        self.assertEqual(self.run_ok("np.int64(7)").result, {"text/plain": b"7", "text/html": b"<b>"})

    def test_interactivity_all(self):
        self.run_ok("get_ipython().ast_node_interactivity = 'all'")
        cell = self.run_ok("1\nx = 2\n3")
        self.assertEqual([o[1]["text/plain"] for o in cell.outputs], [b"1", b"3"])

    def test_large_code(self):
        code = "s = '" + "x" * (3 << 20) + "'\nlen(s)"
        self.assertEqual(self.run_ok(code).plain, str(3 << 20))


class Text(Case):
    def test_streams(self):
        cell = self.run_ok("import sys\nprint('out'); print('err', file=sys.stderr)")
        self.assertEqual((cell.stdout, cell.stderr), ("out\n", "err\n"))

    def test_nothing_is_buffered(self):
        self.session.start("import os, signal, sys\nprint('a', end='')\nsys.stdout.write('b')\n"
                           "sys.stderr.write('c')\nsys.stdout.buffer.write(b'd')\n"
                           "os.kill(os.getpid(), signal.SIGKILL)")
        with self.assertRaises(Dead):
            self.session.finish()
        self.assertEqual((self.session.cell.stdout, self.session.cell.stderr), ("abd", "c"))

    def test_print_writes_once(self):
        cell = self.run_ok("import sys\ncalls = []\npipe = sys.stdout.buffer\nwrite = pipe.write\n"
                           "pipe.write = lambda d: (calls.append(bytes(d)), write(d))[1]\n"
                           "print(1, 'b', None, sep='-', end='!'); print(); print('x')\ndel pipe.write\ncalls")
        self.assertEqual(cell.plain, r"[b'1-b-None!', b'\n', b'x\n']")
        self.assertEqual(cell.stdout, "1-b-None!\nx\n")
        cell = self.run_ok("import io\nf = io.StringIO()\nprint(1, 2, file=f, end=None); print(3, file=f, sep=None)\nf.getvalue()")
        self.assertEqual(cell.plain, r"'1 2\n3\n'")
        self.assertEqual(self.session.run("print(1, sep=3)").error[0], "TypeError")
        self.assertEqual(self.session.run("print(1, foo=3)").error[0], "TypeError")
        self.assertEqual(self.run_ok("import pickle; pickle.loads(pickle.dumps(print)) is print").plain, "True")

    def test_odd_text(self):
        cell = self.run_ok("print('ü€😀'); print('\\ud83d'); print('\\udcff')")
        self.assertEqual(cell.stdout, "ü€😀\n\\ud83d\n\\udcff\n")

    def test_stream_objects(self):
        cell = self.run_ok("import sys\n[(s.isatty(), s.fileno(), s.encoding, s.name, s.writable(), s.closed)"
                           " for s in (sys.stdout, sys.stderr)]")
        self.assertEqual(cell.plain, "[(False, 1, 'utf-8', '<stdout>', True, False),\n"
                                     " (False, 2, 'utf-8', '<stderr>', True, False)]")
        self.assertEqual(self.run_ok("sys.stdout is sys.__stdout__").plain, "True")
        self.assertEqual(self.run_ok("import array\nn = sys.stdout.buffer.write(array.array('i', [65, 66]))\nn").plain, "8")
        self.assertEqual(self.run_ok("sys.stdin.read()").plain, "''")

    def test_wrapped_again(self):
        """The usual lines of programs that want UTF-8 close the old wrapper, and ours with it."""
        self.run_ok("import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('1')")
        cell = self.run_ok("sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('2')")
        self.assertEqual(cell.stdout, "2\n")
        self.run_ok("sys.stdout.close()")
        self.assertEqual(self.run_ok("sys.stdout = sys.__stdout__\nprint(3)").stdout, "3\n")

    def test_large_writes_are_whole(self):
        """Also when signals cut the system call short."""
        cell = self.run_ok(
            "import signal, sys\nsignal.signal(signal.SIGALRM, lambda *a: None)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\n"
            "for c in 'abcdefgh': sys.stdout.write(c * 1000000)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0)")
        self.assertEqual(cell.stdout, "".join(c * 1000000 for c in "abcdefgh"))

    def test_non_blocking_pipe(self):
        cell = self.run_ok("import os\nos.set_blocking(1, False)\nprint('x' * 1000000)\n"
                           "for i in range(100): print('y' * 60000)\nos.set_blocking(1, True)")
        self.assertEqual(len(cell.stdout), 1000001 + 6000100)

    def test_input_says_why_not(self):
        for call in ("input()", "input('name? ')", "import getpass; getpass.getpass()"):
            cell = self.session.run(call)
            self.assertEqual(cell.error[0], "EOFError")
            self.assertIn("nobody is at the keyboard", cell.error[1])
        cell = self.session.run("breakpoint()")
        self.assertIn(cell.status, ("ok", "error"))
        self.run_ok("1")


class Order(Case):
    def setUp(self):
        super().setUp()
        self.session.slow = True

    def test_streams_and_displays(self):
        cell = self.run_ok(
            "import sys\n"
            "for i in range(50):\n"
            "    print('o', i); print('e', i, file=sys.stderr); display(i); print('p', i)\n"
            "'end'")
        texts = [o[1] if isinstance(o[1], bytes) else o[1]["text/plain"] for o in cell.outputs]
        expected = []
        for i in range(50):
            expected += [f"o {i}\n", f"e {i}\n", f"{i}", f"p {i}\n"]
        joined = b"|".join(texts).decode().replace("\n|o", "\no")
        self.assertEqual(joined, "|".join(expected + ["'end'"]).replace("\n|o", "\no"))

    def test_text_after_display_waits(self):
        """A display travels in the channel, the text after it in a pipe: without a fence between
        them the owner may see the text first."""
        for _ in range(20):
            cell = self.run_ok("display('D')\nprint('T')")
            self.assertEqual(cell.kinds, ["display", "stdout"])
            self.assertEqual(cell.fences, 1)

    def test_one_stream_needs_no_fence(self):
        self.assertEqual(self.run_ok("for i in range(10): print(i)").fences, 0)
        self.assertEqual(self.run_ok("1+1").fences, 0)
        self.assertEqual(self.run_ok("display(1); display(2)").fences, 0)

    def test_commands(self):
        cell = self.run_ok("import sys\nprint('1', file=sys.stderr)\n!echo 2\nprint('3', file=sys.stderr)\n"
                           "!echo 4 >&2\nprint('5')")
        self.assertEqual([(k, d) for k, d, *_ in cell.outputs],
                         [("stderr", b"1\n"), ("stdout", b"2\n"), ("stderr", b"3\n4\n"), ("stdout", b"5\n")])

    def test_commands_are_fenced(self):
        """On both sides: nobody knows what a command writes, and where."""
        cell = self.run_ok("import sys\nprint(1, file=sys.stderr)\n!true\nprint(2, file=sys.stderr)")
        self.assertEqual(cell.fences, 2)
        cell = self.run_ok("%%bash\ntrue")
        self.assertEqual(cell.fences, 0)

    def test_threads(self):
        cell = self.run_ok(
            "import sys, threading\n"
            "def f(n):\n"
            "    for i in range(200):\n"
            "        print('o', n, i, flush=True); sys.stderr.write(f'e {n} {i}\\n')\n"
            "        if i % 20 == 0: display((n, i))\n"
            "ts = [threading.Thread(target=f, args=(n,)) for n in range(4)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]; None")
        for n in range(4):
            mine = [l for l in cell.stderr.splitlines() if l.startswith(f"e {n} ")]
            self.assertEqual(mine, [f"e {n} {i}" for i in range(200)])
        self.assertEqual(len(cell.displays), 40)
        self.run_ok("1")

    def test_thread_that_goes_on_between_cells(self):
        self.run_ok("import threading, time, sys\nstop = False\n"
                    "def f():\n"
                    "    while not stop:\n"
                    "        print('o'); print('e', file=sys.stderr); display('d'); time.sleep(0.001)\n"
                    "t = threading.Thread(target=f); t.start()")
        for i in range(30):
            self.assertEqual(self.run_ok(f"import time; time.sleep(0.005)\n{i}").plain, str(i))
        self.run_ok("stop = True; t.join()")


class Displays(Case):
    @needs("pandas")
    def test_dataframe(self):
        cell = self.run_ok("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
        self.assertIn("text/html", cell.result)
        self.assertIn(b"<table", cell.result["text/html"])
        self.assertIn("a", cell.plain)
        self.assertEqual(self.run_ok("display(pd.DataFrame({'a': [1]}))").kinds, ["display"])

    def test_display_objects(self):
        cell = self.run_ok("from IPython.display import *\n"
                           "display(HTML('<b>x</b>')); display(Markdown('# h')); display(Latex('$x$'))\n"
                           "display(JSON({'a': 1})); display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>'))")
        shown = cell.displays
        self.assertEqual(shown[0]["text/html"], b"<b>x</b>")
        self.assertEqual(shown[1]["text/markdown"], b"# h")
        self.assertEqual(json.loads(shown[3]["application/json"]), {"a": 1})
        self.assertIn(b"<svg", shown[4]["image/svg+xml"])

    def test_binary_is_raw(self):
        one = base64.b64encode(
            b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0) + b"\0" * 4).decode()
        cell = self.run_ok(f"import base64\nfrom IPython.display import Image\nImage(base64.b64decode('{one}'))")
        self.assertEqual(cell.result["image/png"], base64.b64decode(one))

    def test_metadata_and_updates(self):
        cell = self.run_ok("from IPython.display import *\n"
                           "display({'text/plain': 'x'}, raw=True, metadata={'k': {'v': 1}})\n"
                           "h = display('one', display_id='here'); h.update('two'); update_display(3, display_id='here')\n"
                           "clear_output(); clear_output(wait=True)")
        self.assertEqual(json.loads(cell.outputs[0][2]), {"k": {"v": 1}})
        self.assertEqual(json.loads(cell.outputs[2][2]), {"display_id": "here", "update": True})
        self.assertEqual([d["text/plain"] for d in cell.displays], [b"x", b"'one'", b"'two'", b"3"])
        self.assertEqual(cell.stdout, "")
        self.assertEqual(self.run_ok("1").outputs[0][2], b"")

    def test_too_large(self):
        cell = self.run_ok("class Big:\n    def __repr__(self): return 'small text'\n"
                           "    def _repr_html_(self): return 'h' * (40 << 20)\nBig()")
        self.assertNotIn("text/html", cell.result)
        self.assertIn("small text", cell.plain)
        self.assertIn("text/html (41943040 characters)", cell.plain)
        cell = self.run_ok("'x' * (33 << 20)")
        self.assertRegex(cell.plain, r"left out: text/plain")
        cell = self.run_ok("'x' * (30 << 20)")
        self.assertEqual(len(cell.plain), (30 << 20) + 2)

    def test_help_and_pager(self):
        self.assertIn("Return the number of items", self.run_ok("len?").stdout)
        self.assertIn("1+1", self.session.run("1+1") and self.run_ok("%history").stdout)


@needs("matplotlib")
class Figures(Case):
    def test_left_open(self):
        cell = self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
        self.assertEqual(cell.kinds, ["display"])
        self.assertGreater(png(cell.displays[0]["image/png"])[0], 300)
        self.assertIn(b"<Figure size", cell.displays[0]["text/plain"])
        self.assertEqual(self.run_ok("plt.get_fignums()").plain, "[]")
        self.assertEqual(self.run_ok("1").kinds, ["result"])

    def test_show_in_order(self):
        cell = self.run_ok("import matplotlib.pyplot as plt\n"
                           "for i in range(2):\n    print(i); plt.plot([i]); plt.show()\nprint('end')")
        self.assertEqual(cell.kinds, ["stdout", "display", "stdout", "display", "stdout"])

    def test_once_only(self):
        cell = self.run_ok("import matplotlib.pyplot as plt\nfig, ax = plt.subplots(); ax.plot([1])\nfig")
        self.assertEqual(cell.kinds, ["result"])
        self.assertIn("image/png", cell.result)
        cell = self.run_ok("fig, ax = plt.subplots(); ax.plot([1])\nfig.show()")
        self.assertEqual(cell.kinds, ["display"])
        self.assertEqual(self.run_ok("plt.figure();").kinds, [])
        self.assertEqual(self.run_ok("plt.plot([1]); plt.savefig('a.png'); plt.close()").kinds, [])

    def test_agg_asked_for(self):
        cell = self.run_ok("import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n"
                           "plt.plot([1]); plt.show()")
        self.assertEqual(len(cell.displays), 1)

    def test_magic_and_config(self):
        cell = self.run_ok("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1]);")
        self.assertEqual(cell.kinds, ["display"])
        self.run_ok("%config InlineBackend.figure_format = 'svg'")
        cell = self.run_ok("plt.plot([1]);")
        self.assertIn("image/svg+xml", cell.displays[0])
        self.run_ok("%config InlineBackend.figure_formats = ['png']")
        self.assertIn("image/png", self.run_ok("plt.plot([1]);").displays[0])
        self.run_ok("%matplotlib")
        self.run_ok("%pylab inline")

    def test_errors_are_reported(self):
        cell = self.session.run("import matplotlib.pyplot as plt\nplt.plot([1]); plt.title(r'$\\frac$');")
        self.assertEqual(cell.status, "error")
        self.assertIn("ValueError", cell.error[0])
        self.assertEqual(self.run_ok("1").kinds, ["result"])

    def test_after_an_error(self):
        cell = self.session.run("import matplotlib.pyplot as plt\nplt.plot([1])\n1/0")
        self.assertEqual((cell.kinds, cell.error[0]), (["display"], "ZeroDivisionError"))

    def test_children_are_told_agg(self):
        cell = self.run_ok("import subprocess, sys\nsubprocess.run([sys.executable, '-c', "
                           "'import matplotlib.pyplot as p; print(p.get_backend())'], check=True);")
        self.assertEqual(cell.stdout.lower(), "agg\n")


class IPythonThings(Case):
    def test_magics(self):
        self.assertEqual(self.run_ok("%pwd").plain, repr(self.session.directory))
        self.assertIn("Wall time", self.run_ok("%%time\nx = 3").stdout)
        self.assertEqual(self.run_ok("x").plain, "3")
        self.assertIn("per loop", self.run_ok("%timeit -n 1 -r 1 1+1").stdout)
        self.assertEqual(self.run_ok("%%capture c\nprint(5)\n6").outputs, [])
        self.assertEqual(self.run_ok("c.stdout").plain, r"'5\n'")
        self.run_ok("%%writefile s.py\nprint('ran', __name__)")
        self.assertEqual(self.run_ok("%run s.py").stdout, "ran __main__\n")
        self.assertEqual(self.run_ok("pwd").plain, repr(self.session.directory))
        self.assertEqual(self.run_ok("In [1]: 5").plain, "5")
        self.assertEqual(self.run_ok(">>> 6").plain, "6")
        self.assertEqual(self.run_ok("  7").plain, "7")

    def test_magic_errors(self):
        cell = self.session.run("%no_such_magic")
        self.assertEqual((cell.status, cell.error[0]), ("error", "UsageError"))
        self.assertIn("no_such_magic", cell.error[1])
        cell = self.session.run("%%time\n1/0")
        self.assertEqual((cell.status, cell.error[0]), ("error", "ZeroDivisionError"))
        self.run_ok("open('bad.py', 'w').write('x = 1\\n1/0');")
        cell = self.session.run("%run bad.py")
        self.assertEqual((cell.status, cell.error[0]), ("error", "ZeroDivisionError"))
        self.assertIn("bad.py:2", cell.traceback)
        self.assertIn("ZeroDivisionError", self.run_ok("%tb").stderr)

    def test_commands(self):
        self.assertEqual(self.run_ok("!echo hello").stdout, "hello\n")
        self.assertEqual(self.run_ok("w = 'world'\n!echo {w} $w").stdout, "world world\n")
        self.run_ok("!exit 3")
        self.assertEqual(self.run_ok("_exit_code").plain, "3")
        self.assertEqual(self.run_ok("l = !printf 'a\\nb'\nlist(l)").plain, "['a', 'b']")
        self.assertEqual(self.run_ok("!cat").stdout, "")
        self.assertEqual(self.run_ok("!mkdir d; touch f").stdout + self.run_ok("ls").stdout, "d/\nf\n")
        self.assertEqual(self.run_ok("!echo e >&2").stderr, "e\n")

    def test_command_streams(self):
        def go_on(cell):
            if cell.stdout == "early\n":
                open(os.path.join(self.session.directory, "go"), "w").close()

        self.session.start("!echo early; until test -e go; do sleep 0.02; done; echo late")
        self.assertEqual(self.session.finish(tick=go_on).stdout, "early\nlate\n")

    def test_bash_cell(self):
        self.assertEqual(self.run_ok("%%bash\nfor i in 1 2; do echo $i; done").stdout, "1\n2\n")
        self.assertEqual(self.run_ok("%%sh\ncat <<X\nhere\nX").stdout, "here\n")
        cell = self.session.run("%%bash\necho a; exit 2")
        self.assertEqual((cell.stdout, cell.error[0]), ("a\n", "CalledProcessError"))
        self.run_ok("%%bash --out o\necho kept")
        self.assertEqual(self.run_ok("o").plain, r"'kept\n'")
        self.assertIn("Couldn't find", self.run_ok("%%script /no/such/thing\nx").stdout)

    def test_await(self):
        self.assertEqual(self.run_ok("import asyncio\nawait asyncio.sleep(0, 'v')").plain, "'v'")
        self.assertEqual(self.run_ok("async def f():\n    return 4\nt = asyncio.create_task(f())\nawait t").plain, "4")
        self.assertEqual(self.run_ok("async with asyncio.Lock():\n    x = 8\nx").plain, "8")
        self.assertEqual(self.run_ok("asyncio.run(f())").plain, "4")
        cell = self.session.run("async def g():\n    1/0\nawait g()")
        self.assertEqual(cell.error[0], "ZeroDivisionError")
        self.assertNotIn("asyncio", cell.traceback)
        self.assertEqual(self.run_ok("await f()").plain, "4")

    def test_extensions(self):
        self.run_ok("open('m.py', 'w').write('v = 1')\nimport m")
        self.run_ok("%load_ext autoreload\n%autoreload 2")
        self.run_ok("import os, time\nopen('m.py', 'w').write('v = 22')\nos.utime('m.py', (9e9, 9e9))")
        self.assertEqual(self.run_ok("m.v").plain, "22")

    def test_events(self):
        self.run_ok("seen = []\nip = get_ipython()\n"
                    "ip.events.register('pre_run_cell', lambda info: seen.append(info.raw_cell))\n"
                    "ip.events.register('post_run_cell', lambda result: seen.append(result.success))")
        self.session.run("1/0")
        self.assertEqual(self.run_ok("seen").plain, "[True, '1/0', False, 'seen']")

    def test_input_transformers(self):
        self.run_ok("get_ipython().input_transformers_post.append("
                    "lambda lines: [l.replace('FOUR', '4') for l in lines])")
        self.assertEqual(self.run_ok("FOUR").plain, "4")

    def test_check(self):
        check = self.session.check
        self.assertEqual(check("1+1"), (0, ""))
        self.assertEqual(check("for i in x:"), (1, "    "))
        self.assertEqual(check("x = )"), (2, ""))
        self.assertEqual(check("%time"), (0, ""))
        self.assertEqual(self.run_ok("1+1").plain, "2")
