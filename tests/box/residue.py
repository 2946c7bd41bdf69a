#!/usr/bin/python3
"""Makes and ends many sessions, kindly and by kill -9, and looks for anything that is left over.

    tests/box/residue.py [--sessions 30] [--kills 10] [--runs 10] [--retort PATH] [--user]

Processes, mounts, cgroups, namespaces, descriptors, files and shared memory are compared before and after each round.
The last line is `N passed, N failed`. Run it alone: what others start meanwhile would be seen too.
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

import argparse
import concurrent.futures
import random
import signal
import subprocess
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import drive
import host as hosts
import leftovers

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
]


class Residue:
    def __init__(self, options):
        self.options = options
        self.home = tempfile.mkdtemp(prefix="retort-test-")
        os.chmod(self.home, 0o777)
        self.prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"] if options.user else []
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
            for cell in (CELLS[number % len(CELLS)], "print('alive')"):
                repl.cell(cell, 30)
        except TimeoutError as e:
            complaints.append(str(e))
        except EOFError:
            pass  # the cell took the session with it, and repl may end then
        if repl.end(15) is None:
            complaints.append(f"did not end: {CELLS[number % len(CELLS)]!r}")
        return complaints

    def killed(self, number):
        """A session whose retort is killed at a random moment: while starting, idle or busy."""
        repl = self.repl()
        wait = random.uniform(0, 2.5)
        try:
            if number % 3:
                repl.cell("x = 1", 30)
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
            process.wait(20)
        except subprocess.TimeoutExpired:
            drive.kill(process)
            return [f"retort run did not end ({code!r})"]
        return []

    def round(self, name, act, times):
        before = leftovers.Snapshot(self.options.retort)
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            complaints = [c for cs in pool.map(act, range(times)) for c in cs]
        left = leftovers.settled(before)
        after = leftovers.Snapshot(self.options.retort)
        if after.open_files - before.open_files > 600:  # the kernel counts these in batches per core
            left.append(f"open files of the machine: {before.open_files} before, {after.open_files} after")
        complaints += left
        self.count["failed" if complaints else "passed"] += 1
        print(f"{'not ok' if complaints else 'ok'} - residue: {times} × {name} # {time.monotonic() - begun:.1f} s", flush=True)
        for complaint in complaints[:20]:
            print("#   " + str(complaint)[:300], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--retort", default=os.path.join(hosts.REPOSITORY, "build/retort"))
    options = parser.parse_args()
    options.retort = os.path.abspath(options.retort)
    residue = Residue(options)
    try:
        residue.round("a session ended", residue.session, options.sessions)
        residue.round("retort killed with -9", residue.killed, options.kills)
        residue.round("retort run, half of them stopped by a signal", residue.run_once, options.runs)
    finally:
        hosts.remove(residue.home)
    print(f"{residue.count['passed']} passed, {residue.count['failed']} failed")
    return 1 if residue.count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
