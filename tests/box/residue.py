#!/usr/bin/python3
"""Makes and ends many sessions, kindly and by kill -9, and looks for anything that is left over.

    tests/box/residue.py [--sessions 30] [--kills 10] [--runs 10] [--boxes 500] [--churn 0] [--retort PATH] [--user]

Processes, mounts, cgroups, namespaces, files and shared memory are compared before and after each round, and the
descriptors and memory of a keeper over many boxes.
The last line is `N passed, N failed`. Other retorts may be at work meanwhile; see leftovers.py.
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

import argparse
import concurrent.futures
import contextlib
import random
import shlex
import signal
import subprocess
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../common")]
import drive
import host as hosts
import leftovers
import processes

# What a session does before it ends: nothing, something, and all that tends to be left behind.
CELLS = [
    "x = 1",
    "import numpy as np; np.linalg.inv(np.random.rand(100, 100)).shape",
    "open('/tmp/f', 'w').write('x'); open('/dev/shm/f', 'w').write('x'); open('f', 'w').write('x')",
    "import subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True)",
    "import os\nfor _ in range(5):\n    if os.fork() == 0:\n        os.setsid()\n        os.execvp('sleep', ['sleep', '1000'])",
    "import socket; s = socket.create_server(('127.0.0.1', 0)); s.getsockname()",
    "import ctypes; ctypes.CDLL(None).shmget(0x1234, 4096, 0o1666)",
    "import os; os._exit(1)",
    "import ctypes; ctypes.string_at(0)",
    "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "while True: pass",
    ["x = 1", "y = 2", "import os; os.abort()", "z = 3",  # with processes that wait
     "import os, subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True); os._exit(1)", "v = 4"],
]


class Residue:
    def __init__(self, options):
        self.options = options
        self.home = tempfile.mkdtemp(prefix="retort-test-")
        os.chmod(self.home, 0o777)
        self.prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"] if options.user else options.through
        self.environment = {**os.environ, "HOME": self.home} if options.user else dict(os.environ)
        self.count = {"passed": 0, "failed": 0}

    def repl(self):
        command = self.prefix + [self.options.retort, "repl", "--json", "--timeout", "1"]
        return drive.Repl(command, self.environment, self.home)

    def session(self, number):
        """A session of a few cells that ends by end of input."""
        repl = self.repl()
        complaints = []
        try:
            cells = CELLS[number % len(CELLS)]
            for cell in (*([cells] if isinstance(cells, str) else cells), "print('alive')"):
                repl.cell(cell, 30 * drive.slow)
        except TimeoutError as e:
            complaints.append(str(e))
        except EOFError:
            pass  # the cell took the session with it, and repl may end then
        if repl.end() is None:
            complaints.append(f"did not end: {CELLS[number % len(CELLS)]!r}")
        return complaints

    def killed(self, number):
        """A session whose retort is killed at a random moment: while starting, idle or busy."""
        repl = self.repl()
        wait = random.uniform(0, 2.5)
        try:
            if number % 3:
                repl.cell("x = 1", 30 * drive.slow)
                wait = random.uniform(0, 0.3)
            if number % 3 == 2:
                repl.process.stdin.write(b'{"code": "while True: pass"}\n')
                repl.process.stdin.flush()
        except (TimeoutError, EOFError, OSError) as e:
            return [f"before the kill: {e}"]
        time.sleep(wait)
        repl.process.send_signal(signal.SIGKILL)
        repl.process.wait()
        return []

    def unswept(self, number):
        """A session whose sweeper was killed: it goes on, and its owner clears up."""
        repl = self.repl()
        try:
            repl.cell("x = 1", 30 * drive.slow)
            sweepers = [pid for pid in processes.descendants(repl.process.pid) if processes.name(pid) == "retort-sweeper"]
            for pid in sweepers:
                os.kill(pid, signal.SIGKILL)
            repl.cell("x", 30 * drive.slow)
        except (TimeoutError, EOFError, OSError) as e:
            return [f"without a sweeper: {e}"]
        complaints = [] if len(sweepers) == 1 else [f"there were {len(sweepers)} sweepers"]
        return complaints if repl.end() is not None else [*complaints, "did not end"]

    def run_once(self, number):
        """`retort run`, ended by itself, by SIGTERM, SIGINT or SIGHUP."""
        code = CELLS[number % 3] if number % 2 else "import time; time.sleep(100)"
        process = subprocess.Popen(self.prefix + [self.options.retort, "run", "-c", code], env=self.environment,
                                   cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        if not number % 2:
            time.sleep(random.uniform(0.2, 2.5))
            process.send_signal((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[number // 2 % 3])
        try:
            process.wait(60 * drive.slow)
        except subprocess.TimeoutExpired:
            drive.kill(process)
            return [f"retort run did not end ({code!r})"]
        return []

    def own_size(self, pid):
        """Descriptors and resident bytes of retort's own processes below pid."""
        descriptors = size = 0
        for one in {pid} | processes.descendants(pid):
            try:
                if os.path.basename(os.readlink(f"/proc/{one}/exe")).startswith("retort"):
                    descriptors += len(os.listdir(f"/proc/{one}/fd"))
                    size += int(leftovers.read(f"/proc/{one}/statm").split()[1]) * 4096
            except (OSError, IndexError):
                pass
        return descriptors, size

    def one_keeper(self, number):
        """Box after box in one keeper: its interpreter dies between two cells, and repl asks for a new one."""
        repl = self.repl()
        try:
            for i in range(self.options.boxes):
                repl.cell("import signal; signal.setitimer(signal.ITIMER_REAL, 0.01)", 30 * drive.slow)
                time.sleep(0.03 * drive.slow)
                if i == min(50, self.options.boxes // 2):
                    first = self.own_size(repl.process.pid)
            last = self.own_size(repl.process.pid)
        except (TimeoutError, EOFError) as e:
            return [f"box {i}: {e}"]
        finally:
            repl.end()
        return self.growth(first, last, "boxes")

    def one_session(self, number):
        """One interpreter after the other in one session."""
        repl = self.repl()
        try:
            repl.cell("import os; kept = 5", 30 * drive.slow)
            for i in range(self.options.boxes):
                cell = repl.cell("os._exit(0)", 30 * drive.slow)
                if cell.get("restored_to") != 1:
                    return [f"death {i}: {cell}"]
                if i == min(50, self.options.boxes // 2):
                    first = self.own_size(repl.process.pid)
            last = self.own_size(repl.process.pid)
        except (TimeoutError, EOFError) as e:
            return [f"death {i}: {e}"]
        finally:
            repl.end()
        return self.growth(first, last, "deaths")

    def growth(self, first, last, of_what):
        complaints = []
        for what, before, after, slack in zip(("descriptors", "resident bytes"), first, last, (16, 24 << 20)):
            if after > before + slack:
                complaints.append(f"{what} grew from {before} to {after} over {self.options.boxes} {of_what}")
        return complaints

    def churn(self, number):
        """Thousands of sessions, several at once, by the benchmark's own owner of sessions."""
        done = subprocess.run([self.bench(), "churn", "--pool", "4", "--seconds", str(self.options.churn)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.environment,
                              cwd=self.home, timeout=self.options.churn * 4 + 60)
        print("# " + done.stdout.strip().replace("\n", " ")[-300:])
        return [] if done.returncode == 0 else [f"retort_bench: {done.returncode}: {done.stderr[-300:]}"]

    def bench(self):
        return os.path.join(os.path.dirname(self.options.retort), "bench/retort_bench")

    def sees_everything(self):
        """The counterpart: things left on purpose are all seen by the check."""
        before = leftovers.Snapshot(self.options.retort)
        mark = f"retort-left-{os.getpid()}"
        cgroups = [d for d in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup") if os.access(d, os.W_OK)][:1]
        for directory in cgroups:
            os.mkdir(f"{directory}/{mark}")
        with open(f"/tmp/{mark}", "w") as f:
            f.write("x")
        subprocess.run(["sh", "-c", f"setsid -f unshare --net sh -c 'printf {mark[:15]} >/proc/$$/comm; sleep 60 & wait'"])
        subprocess.run(["mount", "-t", "tmpfs", mark, self.home])
        segment = subprocess.run(["ipcmk", "-M", "4096"], capture_output=True, text=True).stdout.split()[-1]
        kinds, end = set(), time.monotonic() + 20
        while kinds != set(before.parts) and time.monotonic() < end:
            time.sleep(0.1)
            after = leftovers.Snapshot(self.options.retort)
            kinds = {line.split(" left over")[0] for line in after.left_since(before)}
        subprocess.run(["umount", self.home])
        subprocess.run(["ipcrm", "-m", segment])
        for pid in {pid for pid, what in after.parts["process"] if what.startswith(mark[:15] + ":")}:
            for one in {pid} | processes.descendants(pid):
                with contextlib.suppress(ProcessLookupError):  # a shell ends with what it waits for
                    os.kill(one, signal.SIGKILL)
        os.unlink(f"/tmp/{mark}")
        for directory in cgroups:
            os.rmdir(f"{directory}/{mark}")
        missed = set(before.parts) - kinds
        self.report("the check sees what is left on purpose", [f"not seen: {sorted(missed)}"] if missed else [], 0)

    def report(self, name, complaints, seconds):
        self.count["failed" if complaints else "passed"] += 1
        print(f"{'not ok' if complaints else 'ok'} - residue: {name} # {seconds:.1f} s", flush=True)
        for complaint in complaints[:20]:
            print("#   " + str(complaint)[:300], flush=True)

    def round(self, name, act, times):
        if times == 0:
            return
        before = leftovers.Snapshot(self.options.retort)
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            complaints = [c for cs in pool.map(act, range(times)) for c in cs]
        left = leftovers.settled(before)
        self.report(f"{times} × {name}", complaints + left, time.monotonic() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--boxes", type=int, default=500, help="boxes made one after the other by one keeper")
    parser.add_argument("--churn", type=int, default=0, metavar="SECONDS",
                        help="thousands of sessions by build/bench/retort_bench")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--slow", type=float, default=1.0, metavar="TIMES", help="multiply the deadlines")
    parser.add_argument("--through", type=shlex.split, default=[], metavar="COMMAND",
                        help="start every retort with this command")
    parser.add_argument("--retort", default=os.path.join(hosts.REPOSITORY, "build/retort"))
    options = parser.parse_args()
    options.retort = os.path.abspath(options.retort)
    drive.slow = options.slow
    leftovers.move_apart(options.retort)
    residue = Residue(options)
    try:
        if not options.user and os.geteuid() == 0:
            residue.sees_everything()
        residue.round("a session ended", residue.session, options.sessions)
        residue.round("retort killed with -9", residue.killed, options.kills)
        residue.round("a session without its sweeper", residue.unswept, options.kills // 3)
        residue.round("retort run, half of them stopped by a signal", residue.run_once, options.runs)
        residue.round(f"{options.boxes} boxes in one keeper", residue.one_keeper, min(1, options.boxes))
        residue.round(f"{options.boxes} deaths in one session", residue.one_session, min(1, options.boxes))
        if options.churn and not options.user:
            residue.round(f"{options.churn} s of sessions made and ended", residue.churn, 1)
    finally:
        hosts.remove(residue.home)
    print(f"{residue.count['passed']} passed, {residue.count['failed']} failed")
    return 1 if residue.count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
