#!/usr/bin/python3
"""Fail closed: with a failure at every single set-up step, no user code runs and nothing is left behind.

`retort doctor --steps` names the steps; RETORT_FAULT=STEP makes one of them fail. Then `retort run` must leave with
125, name the step on stderr, have run nothing, and leave no process, cgroup, mount, namespace or file.

    tests/box/faults.py [--retort PATH] [--user] [--only PATTERN]

The last line is `N passed, N failed`.
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

import argparse
import json
import re
import shlex
import subprocess
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../common")]
import host as hosts
import leftovers


class Faults:
    def __init__(self, options):
        self.options = options
        self.home = tempfile.mkdtemp(prefix="retort-test-")
        os.chmod(self.home, 0o777)
        self.mark = os.path.join(self.home, "USER-CODE-RAN")
        self.count = {"passed": 0, "failed": 0}

    def run(self, *args, fault=None):
        environment = dict(os.environ)
        args = (*self.options.through, *args)
        if self.options.user:
            environment["HOME"] = self.home
            args = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--", *args)
        if fault:
            environment["RETORT_FAULT"] = fault
        return subprocess.run(args, env=environment, cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=60 * self.options.slow)

    def program(self, fault=None):
        return self.run(self.options.retort, "run", "--json", "-c", 'print("USER CODE " + "RAN")', fault=fault)

    def steps(self):
        done = self.run(self.options.retort, "doctor", "--steps")
        return [line.split()[0] for line in done.stdout.splitlines() if line.strip()]

    def complaints_about(self, step):
        before = leftovers.Snapshot(self.options.retort)
        try:
            done = self.program(step)
        except subprocess.TimeoutExpired:
            return ["retort run hung"]
        complaints = []
        if done.returncode != 125:
            complaints.append(f"exit status {done.returncode}, not 125")
        if "USER CODE RAN" in done.stdout + done.stderr:
            complaints.append("user code ran")
        if step not in done.stderr:
            complaints.append(f"stderr does not name the step: {done.stderr.strip()[-300:]!r}")
        return complaints + leftovers.settled(before)

    def report(self, name, complaints, seconds=0.0):
        self.count["failed" if complaints else "passed"] += 1
        print(f"{'not ok' if complaints else 'ok'} - fault: {name} # {seconds:.1f} s", flush=True)
        for complaint in complaints[:12]:
            print("#   " + str(complaint)[:400], flush=True)

    def all(self):
        # The counterpart: with no fault, the same program runs. And a step that does not exist is no fault.
        done = self.program()
        ran = done.returncode == 0 and "USER CODE RAN" in json.dumps(json.loads(done.stdout or "{}"))
        self.report("none: the program runs", [] if ran else [f"{done.returncode}: {done.stderr[-300:]}"])
        steps = self.steps()
        few = [] if len(steps) >= 15 and len(set(steps)) == len(steps) else [f"doctor --steps names {steps}"]
        self.report(f"doctor --steps names {len(steps)} steps", few)
        for step in steps:
            if re.search(self.options.only, step):
                begun = time.monotonic()
                complaints = self.complaints_about(step)
                self.report(step, complaints, time.monotonic() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--slow", type=float, default=1.0, metavar="TIMES", help="multiply the deadlines")
    parser.add_argument("--through", type=shlex.split, default=[], metavar="COMMAND",
                        help="start every retort with this command")
    parser.add_argument("--retort", default=os.path.join(hosts.REPOSITORY, "build/retort"))
    options = parser.parse_args()
    options.retort = os.path.abspath(options.retort)
    leftovers.move_apart(options.retort)
    faults = Faults(options)
    try:
        faults.all()
    finally:
        hosts.remove(faults.home)
    print(f"{faults.count['passed']} passed, {faults.count['failed']} failed")
    return 1 if faults.count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
