"""Interrupts at every moment, children of the kernel process, and randomness after the fork."""
import ctypes
import os
import random
import signal
import struct
import subprocess
import sys
import time
import unittest

import owner
from owner import Session, needs
from test_cells import Case
from test_errors import interrupt_at

FLOOD = """
import sys
for i in range(10**9):
    print('o', i)
    print('e', i, file=sys.stderr)
    if i % 7 == 0:
        display(i)
"""
ROOT = os.geteuid() == 0


class Interrupts(Case):
    def test_between_taking_a_cell_and_running_it(self):
        """Too short a moment to hit from outside."""
        from retort_kernel.kernel import Kernel
        kernel = Kernel.__new__(Kernel)
        kernel.closing = kernel.interrupted = False
        kernel.job = (owner.RUN, b"")
        kernel.note_interrupt(2, None)
        self.assertTrue(kernel.interrupted)

    def interrupted(self, code, **options):
        self.session.start(code)
        cell = self.session.finish(tick=interrupt_at(self.session, "in\n"), **options)
        self.assertEqual(cell.status, "interrupted", cell.error)
        self.assertEqual(cell.error[0], "KeyboardInterrupt")
        self.assertNotIn("retort_kernel", cell.traceback)
        return cell

    def test_places(self):
        for code in ("while 1: pass", "import time; time.sleep(30)", "import asyncio; await asyncio.sleep(30)",
                     "!sleep 30", "x = !sleep 30", "%%bash\necho in; sleep 30 # print", "%time __import__('time').sleep(30)",
                     "import subprocess; subprocess.run(['sleep', '30'])",
                     "import threading; threading.Event().wait(30)",
                     "import multiprocessing as m\np = m.Process(target=__import__('time').sleep, args=(30,)); p.start(); print('in'); p.join()",
                     "class R:\n    def __repr__(self):\n        while 1: pass\nR()",
                     "import asyncio\nasync def f():\n    while 1: await asyncio.sleep(0)\nawait f()"):
            # Within fork() Python ignores what a signal handler raises, so not before that.
            said = code if "print" in code else "print('in')\n" + code
            before = time.monotonic()
            self.interrupted(said)
            self.assertLess(time.monotonic() - before, 15, code)
            self.assertEqual(self.run_ok("40+2").plain, "42")

    def test_late_pass(self):
        """The PASS of a fence that was given up is not taken for the next one's."""
        from retort_kernel.channel import Channel
        answers = [struct.pack("<III", 4, owner.PASS, n) for n in (0, 7, 1)]
        channel = Channel()
        channel.connect(len, lambda size: answers.pop(0))
        channel.begin()
        channel.fence()
        self.assertEqual(answers, [])

    def test_variables_stay(self):
        self.interrupted("x = 11\nprint('in')\nwhile 1: pass")
        self.assertEqual(self.run_ok("x").plain, "11")

    def test_interrupted_task_is_cancelled(self):
        self.interrupted("import asyncio\nlog = []\nasync def f():\n    try:\n        print('in')\n        await asyncio.sleep(30)\n"
                         "    finally:\n        log.append('cleaned')\nawait f()")
        self.assertEqual(self.run_ok("await asyncio.sleep(0)\nlog").plain, "['cleaned']")

    def test_commands_die(self):
        sleep = f"sleep 60.{os.getpid()}"  # nobody else's
        cell = self.interrupted(f"!trap '' INT; echo in; {sleep} & wait; {sleep}")
        deadline = time.monotonic() + 30
        while subprocess.run(["pgrep", "-f", sleep], stdout=subprocess.DEVNULL).returncode == 0:
            self.assertLess(time.monotonic(), deadline, "the command's processes live on")
        self.assertEqual(cell.stdout, "in\n")

    def test_caught_is_ok(self):
        self.session.start("try:\n    print('in')\n    while 1: pass\nexcept KeyboardInterrupt: print('caught')")
        cell = self.session.finish(tick=interrupt_at(self.session, "in\n"))
        self.assertEqual((cell.status, cell.stdout), ("ok", "in\ncaught\n"))

    def test_idle_is_ignored(self):
        self.run_ok("1")
        for _ in range(8):
            self.session.interrupt()
            time.sleep(0.03)  # so that it has come before the cell is sent
            self.assertEqual(self.run_ok("1").plain, "1")

    def test_with_the_cell(self):
        """An interrupt that arrives when the cell has been sent means this cell, however early."""
        for i in range(60):
            self.session.start("while 1: pass")
            time.sleep(random.random() * 0.0005)
            self.session.interrupt()
            self.assertEqual(self.session.finish().status, "interrupted")

    def test_flood(self):
        """300 interrupts at random moments of a flood of text and displays: no frame is torn, no
        fence is lost, and the order holds."""
        pick = random.Random(7)
        for i in range(300):
            self.session.slow = i % 2 == 1
            self.session.start(FLOOD)
            end = time.monotonic() + pick.random() * 0.02
            while time.monotonic() < end:
                self.session.pump(end - time.monotonic())
            self.session.interrupt()
            self.session.finish()
            cell = self.session.cell
            self.assertEqual(cell.status, "interrupted")
            self.check_order(cell)
        self.assertEqual(self.run_ok("1+1").plain, "2")

    def check_order(self, cell):
        expected = iter(range(10**9))
        i = 0
        for output in cell.outputs[:-3]:  # the last ones may be cut
            if output[0] == "display":
                self.assertEqual(output[1]["text/plain"].decode(), str(i))
                continue
            lines = output[1].decode().splitlines()
            for line in lines:
                kind, number = line.split()
                if kind == "o":
                    i = next(expected)
                self.assertEqual(int(number), i)

    def test_timeouts_of_the_users(self):
        """Exceptions from the user's own handlers, in the middle of fences."""
        for self.session.slow in (False, True):
            cell = self.run_ok(
                "import signal, sys\nclass T(Exception): pass\ndef h(*a): raise T\n"
                "signal.signal(signal.SIGALRM, h)\ncount = n = 0\n"
                "for k in range(200):\n"
                "    try:\n"
                "        signal.setitimer(signal.ITIMER_REAL, 0.0002 + k % 10 * 0.0003)\n"
                "        while 1:\n"
                "            n += 1\n"
                "            print(n, 'a'); print(n, 'b', file=sys.stderr)\n"
                "            display({'text/plain': f'{n} c'}, raw=True)\n"
                "    except T: count += 1\n"
                "count")
            self.assertEqual(cell.plain, "200")
            lines = []
            for kind, data, *_ in cell.outputs[:-1]:
                lines += (data["text/plain"] if kind == "display" else data).decode().splitlines()
            keys = [(int(line.split()[0]), line.split()[1]) for line in lines]
            self.assertEqual(keys, sorted(keys))

    def test_handler_that_prints(self):
        cell = self.run_ok(
            "import signal, sys\n"
            "def again(): signal.setitimer(signal.ITIMER_REAL, 0.0005)\n"
            "def h(*a): print('H'); print('h', file=sys.stderr); display('handler'); again()\n"
            "signal.signal(signal.SIGALRM, h)\nagain()\n"
            "for i in range(3000):\n    print('o'); print('e', file=sys.stderr)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0)")
        self.assertEqual(cell.stdout.replace("H\n", "").count("o\n"), 3000)
        self.assertTrue(cell.displays)
        self.run_ok("1")

    def test_large_display_interrupted(self):
        """A frame that is half sent is finished, whatever was raised meanwhile."""
        self.session.start("big = 'x' * (8 << 20)\nfor i in range(1000): display({'text/plain': big}, raw=True)")
        time.sleep(0.15)  # nobody reads: the socket is full
        self.session.interrupt()
        time.sleep(0.05)
        cell = self.session.finish()
        self.assertEqual(cell.status, "interrupted")
        for shown in cell.displays:
            self.assertEqual(len(shown["text/plain"]), 8 << 20)
        self.run_ok("1")


class Children(Case):
    def test_fork_falls_off_the_end(self):
        cell = self.run_ok("import os\npid = os.fork()\nif pid == 0:\n    print('child')\nelse:\n    os.waitpid(pid, 0)\n"
                           "    print('parent')\n'value' if pid else 'child value'")
        self.assertEqual(cell.stdout, "child\nchild value\nparent\n".replace("child value", "'child value'"))
        self.assertEqual(cell.plain, "'value'")
        self.assertEqual(self.run_ok("1").plain, "1")

    def test_exit_codes_and_errors(self):
        cell = self.run_ok("import os, sys\npid = os.fork()\nif pid == 0: sys.exit(5)\n"
                           "a = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
                           "pid = os.fork()\nif pid == 0: 1/0\n"
                           "b = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\na, b")
        self.assertEqual(cell.plain, "(5, 1)")
        self.assertIn("ZeroDivisionError", cell.stderr)

    def test_displays_become_text(self):
        cell = self.run_ok("import os, sys\npid = os.fork()\nif pid == 0:\n    print('a'); print('b', file=sys.stderr)\n"
                           "    display('c'); os._exit(0)\nos.waitpid(pid, 0);")
        self.assertEqual((cell.stdout, cell.stderr, cell.displays), ("a\n'c'\n", "b\n", []))

    def test_handlers_of_modules_run(self):
        """The zygote sets some aside for its own forks; a user's fork has them all."""
        cell = self.run_ok("import logging, os, random, threading\n"
                           "done = threading.Event(); thread = threading.Thread(target=done.wait); thread.start()\n"
                           "logging._lock.acquire(); r, w = os.pipe(); pid = os.fork()\n"
                           "if pid == 0:\n"
                           "    other = threading.Thread(target=logging.getLogger('x').setLevel, args=(10,), daemon=True)\n"
                           "    other.start(); other.join(5)\n"
                           "    os.write(w, repr((threading.active_count(), random.random())).encode()); os._exit(0)\n"
                           "logging._lock.release(); done.set(); os.waitpid(pid, 0)\n"
                           "threads, number = eval(os.read(r, 100)); threads, number != random.random()")
        self.assertEqual(cell.plain, "(1, True)")

    def test_a_fork_in_a_handler_of_the_first(self):
        """Of two forks that are under way, either may be the one that brings the modules' handlers back."""
        cell = self.run_ok("import logging, os\nforked = []\n"
                           "def fork():\n    pid = os.fork()\n    if pid == 0: os._exit(0)\n    os.waitpid(pid, 0)\n"
                           "os.register_at_fork(before=lambda: forked or forked.append(1) or fork())\n"
                           "fork(); fork(); logging._lock._is_owned()")
        self.assertEqual((cell.plain, cell.stderr), ("False", ""))

    def test_raw_fork(self):
        """Forked behind Python's back: it must not speak on the channel either."""
        cell = self.run_ok("import ctypes, os\nlibc = ctypes.PyDLL(None)\npid = libc.fork()\n"
                           "if pid == 0:\n    display('c')\nelse: os.waitpid(pid, 0)\npid != 0")
        self.assertEqual(cell.plain, "True")
        self.assertEqual(cell.displays, [])
        self.assertEqual(self.run_ok("1").plain, "1")

    def test_lingering_child_does_not_hold_the_channel(self):
        child = self.run_ok("import os, time\nchild = os.fork()\n"
                            "if child == 0:\n    os.close(1); os.close(2); time.sleep(60); os._exit(0)\nchild").plain
        self.addCleanup(os.kill, int(child), signal.SIGKILL)
        with self.assertRaises(owner.Dead):
            before = time.monotonic()
            self.session.run("import os; os._exit(0)")
        self.assertLess(time.monotonic() - before, 30)

    def test_multiprocessing(self):
        self.run_ok("import multiprocessing as mp\ndef square(x):\n    print('in', x)\n    return x * x")
        cell = self.run_ok("with mp.get_context('fork').Pool(2) as pool: r = pool.map(square, range(4))\nr")
        self.assertEqual(cell.plain, "[0, 1, 4, 9]")
        self.assertEqual(sorted(cell.stdout.split()), sorted("in 0 in 1 in 2 in 3".split()))
        cell = self.run_ok("with mp.get_context('spawn').Pool(1) as pool: r = pool.map(abs, [-3])\nr")
        self.assertEqual(cell.plain, "[3]")
        cell = self.run_ok("from concurrent.futures import ProcessPoolExecutor as E\n"
                           "with E(2, mp_context=mp.get_context('fork')) as e: r = list(e.map(square, [5]))\nr")
        self.assertEqual(cell.plain, "[25]")

    def test_lines_stay_whole(self):
        self.run_ok("import multiprocessing as mp\ndef say(who):\n    for i in range(500): print('line', who, 'of', i)")
        cell = self.run_ok("with mp.get_context('fork').Pool(4) as pool: pool.map(say, range(4))")
        expected = {f"line {who} of {i}" for who in range(4) for i in range(500)}
        self.assertEqual(set(cell.stdout.splitlines()), expected)

    @needs("numpy")
    def test_linear_algebra(self):
        code = ("import numpy as np, os\na = np.random.rand(200, 200) + np.eye(200) * 200\n"
                "ok = np.allclose(np.linalg.inv(a) @ a, np.eye(200))\n"
                "pid = os.fork()\n"
                "if pid == 0: os._exit(0 if np.allclose(np.linalg.inv(a) @ a, np.eye(200)) else 1)\n"
                "ok, os.waitpid(pid, 0)[1]")
        self.assertEqual(self.run_ok(code).plain, "(True, 0)")
        with Session(cpus=2.0) as session:
            self.assertEqual(session.run(code).plain, "(True, 0)")
            self.assertEqual(session.run("os.environ['OMP_NUM_THREADS']").plain, "'2'")


@needs("numpy")
class Randomness(Case):
    """Everything has been used in the zygote, so that its state is there to be inherited."""

    CODE = owner.RANDOMNESS

    def test_node_is_forgotten(self):
        self.assertEqual(self.run_ok(f"import uuid; uuid.getnode() == {owner.NODE}").plain, "False")

    def test_differs_between_sessions(self):
        with Session() as other:
            self.compare(self.session.run(self.CODE), other.run(self.CODE), same_pid=False)

    @unittest.skipUnless(ROOT, "needs root: sessions with the process id of their zygote")
    def test_differs_under_the_same_pid(self):
        """Libraries that notice a fork by getpid() do not notice this one."""
        with in_pid_namespace() as one, in_pid_namespace() as other:
            self.assertEqual(one.run("import os; os.getpid()").plain, str(os.getpid()))
            self.compare(one.run(self.CODE), other.run(self.CODE), same_pid=True)

    def compare(self, a, b, same_pid):
        self.assertEqual((a.status, b.status), ("ok", "ok"), a.error or b.error)
        a, b = eval(a.plain), eval(b.plain)
        self.assertEqual(a.pop("pid") == b.pop("pid"), same_pid)
        for name in a:
            self.assertNotEqual(a[name], b[name], name)

    def test_states_are_found(self):
        """Else forks seed them by their own functions, which takes longer."""
        found = "import retort_kernel.reseed as r; sorted(r._places)"
        self.assertEqual(self.run_ok(found).plain, "['numpy.random', 'random']")

    def test_a_branch_draws_what_its_first_state_draws(self):
        draw = "(random.random(), random.gauss(0, 1), numpy.random.rand(), numpy.random.randn(), process.authkey)"
        code = ("import os, random, numpy, multiprocessing.process, retort_kernel.reseed as r\n"
                "process = multiprocessing.process.current_process()\n"
                "def draw():\n"
                "    numpy.random.seed(1); numpy.random.randn(); random.seed(1); random.gauss(0, 1)\n"
                f"    r.reseed_branch(seed); return {draw}\n"
                "seed, other = os.urandom(5032), os.urandom(5032)\n"
                "once, again = draw(), draw()\nseed = other\n"
                "once == again, any(a == b for a, b in zip(once, draw()))")
        self.assertEqual(self.run_ok(code).plain, "(True, False)")

    def test_a_branch_seeds_what_the_session_has_put_there(self):
        code = ("import os, sys, types, retort_kernel.reseed as r\nseeds = []\n"
                "ours = sys.modules['random']\n"
                "sys.modules['random'] = types.SimpleNamespace(seed=seeds.append)\n"
                "state = ours.getstate()\nr.reseed_branch(os.urandom(5032))\n"
                "sys.modules['random'] = ours\nlen(seeds), state == ours.getstate()")
        self.assertEqual(self.run_ok(code).plain, "(1, True)")

    def test_a_state_that_comes_back_under_its_number(self):
        """OpenSSL would not notice that it was forked."""
        code = ("import os, ssl, retort_kernel.reseed as r\nadded = []\n"
                "ssl.RAND_add = lambda *entropy: added.append(entropy)\n"
                "r.renew_openssl(); before = len(added)\n"
                "r.note_process(); r.renew_openssl()\nbefore, len(added)")
        self.assertEqual(self.run_ok(code).plain, "(0, 1)")

    def test_python_is_sound(self):
        cell = self.run_ok("import random\nv = [random.random() for _ in range(100000)]\n"
                           "abs(sum(v) / len(v) - .5) < .01 and len(set(v)) > 99000")
        self.assertEqual(cell.plain, "True")
        cell = self.run_ok("random.seed(3); a = random.random(); random.seed(3); a == random.random()")
        self.assertEqual(cell.plain, "True")

    def test_numpy_is_sound(self):
        """The state is written directly: its numbers must still look random."""
        cell = self.run_ok("import numpy as np\nv = np.random.rand(100000)\n"
                           "abs(v.mean() - .5) < .01 and abs(v.var() - 1/12) < .01 and len(set(v)) > 99000")
        self.assertEqual(cell.plain, "True")
        cell = self.run_ok("np.random.seed(3); a = np.random.rand(); np.random.seed(3); bool(a == np.random.rand())")
        self.assertEqual(cell.plain, "True")


def in_pid_namespace():
    """A session in a pid namespace of its own, with the process id of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    wanted = os.getpid()

    def become():
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(wanted - 1))
        child = os.fork()
        if child:  # number 1 of the namespace
            os.closerange(3, 200)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    here = os.open("/proc/self/ns/pid", os.O_RDONLY)
    if libc.unshare(0x20000000) != 0:  # CLONE_NEWPID
        raise OSError(ctypes.get_errno(), "unshare")
    try:
        return Session(prepare=become)
    finally:
        libc.setns(here, 0x20000000)
        os.close(here)


SCRIPT = """
import sys
sys.path[:0] = [{here!r}]
import owner
print(owner.retort_kernel.warm({preload!r}))
assert 'matplotlib' not in sys.modules and 'pandas' not in sys.modules
with owner.Session() as s:
    c = s.run('1+1'); assert c.plain == '2', c.error
    c = s.run('import matplotlib.pyplot as plt\\nplt.plot([1,2]); plt.show()\\nplt.plot([1]);')
    assert c.kinds == ['display', 'display'], (c.kinds, c.error and c.error[2])
    assert all('image/png' in d for d in c.displays)
    c = s.run('import matplotlib; matplotlib.get_backend(), __import__("os").environ["MPLBACKEND"]')
    assert 'retort' in c.plain and 'Agg' in c.plain, c.plain
with owner.Session() as s:
    c = s.run('%matplotlib inline\\nimport matplotlib.pyplot as plt\\nplt.plot([1]);')
    assert c.kinds == ['display'], c.error
    c = s.run('import pandas as pd\\npd.DataFrame({{1: [2]}})')
    assert 'text/html' in c.result, c.error
print('fine')
"""

THREADED = """
import sys
sys.path[:0] = [{here!r}, {directory!r}]
import owner
try:
    owner.retort_kernel.warm(['threaded_module'])
except RuntimeError as error:
    print(error)
"""


class Warming(unittest.TestCase):
    def python(self, script):
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=owner.PATIENCE)

    @needs("matplotlib", "pandas")
    def test_nothing_preloaded(self):
        here = os.path.dirname(os.path.abspath(__file__))
        done = self.python(SCRIPT.format(here=here, preload=["no_such_module"]))
        self.assertIn("fine", done.stdout, done.stderr)
        self.assertIn("no_such_module missing", done.stdout)
        self.assertIn("python 3.", done.stdout)

    def test_thread_is_named(self):
        import tempfile
        here = os.path.dirname(os.path.abspath(__file__))
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "threaded_module.py"), "w") as file:
                file.write("import threading, time\nthreading.Thread(target=time.sleep, args=(5,), daemon=True).start()")
            done = self.python(THREADED.format(here=here, directory=directory))
        self.assertIn("threaded_module", done.stdout, done.stderr)
