#!/usr/bin/python3
"""Drives a server from outside, as its users do. The last line is `N passed, N failed`.

    tests/api/run.py                       everything
    tests/api/run.py --only stream         what has "stream" in its name (a regular expression)
    tests/api/run.py --retort PATH         another binary than build/retort
    tests/api/run.py --user                as an ordinary user, who has one uid and no cgroups
    tests/api/run.py --coverage            also which described answers were never seen

A module is a process with a server of its own; --jobs of them run at the same time.
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

import argparse
import concurrent.futures
import json
import re
import subprocess
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
try:
    import jsonschema  # noqa: F401
except ImportError:
    sys.exit("these tests need python3-jsonschema: tools/install test")
import api
import spec


class Result(unittest.TestResult):
    """A line for each test, as it ends."""

    def __init__(self, verbose):
        super().__init__()
        self.verbose = verbose
        self.passed = 0
        self.failed = []

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.complaints = len(self.failed)

    def say(self, word, test, text=""):
        took = time.monotonic() - getattr(self, "began", time.monotonic())
        print(f"{word:6} {test.id()} ({took:.1f} s){text}", flush=True)

    def addSuccess(self, test):
        if len(self.failed) == self.complaints:
            self.passed += 1
            if self.verbose:
                self.say("ok", test)

    def addFailure(self, test, err):
        self.failed.append(test.id())
        self.say("FAILED", test, "\n" + self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say("skip", test, f": {reason}")


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def load(module, only):
    return [t for t in flat(unittest.defaultTestLoader.loadTestsFromName(module)) if re.search(only, t.id())]


def run_module(options):
    """In a process of its own; the last line is for run_all."""
    result = Result(options.verbose)
    unittest.TestSuite(load(options.module, options.only)).run(result)
    failed = len(result.failed)
    try:
        api.end_shared()
    except Exception as e:
        print(f"FAILED {options.module}: the server does not end: {e}")
        failed += 1
    print(json.dumps({"passed": result.passed, "failed": failed, "skipped": len(result.skipped),
                      "seen": sorted(spec.seen)}))


def start_module(module, options):
    line = ["/usr/bin/python3", os.path.abspath(__file__), "--module", module, "--only", options.only,
            "--retort", options.retort]
    line += ["--user"] if options.user else []
    line += ["--verbose"] if options.verbose else []
    began = time.monotonic()
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, errors="replace")
    last = ""
    for text in process.stdout:
        if last:
            print(last, end="", flush=True)
        last = text
    process.wait()
    try:
        counts = json.loads(last)
    except ValueError:
        print(last)
        counts = {"passed": 0, "failed": 1, "skipped": 0, "seen": []}
    print(f"== {module}: {counts['passed']} passed, {counts['failed']} failed, {time.monotonic() - began:.0f} s",
          flush=True)
    return counts


def print_coverage(seen):
    """What is described and was never answered; 500 is nothing to be wished for."""
    for method, path, operation in spec.operations():
        missing = [s for s in operation["responses"] if (method, path, int(s)) not in seen and s != "500"]
        if missing:
            print(f"never seen: {method} {path}: {' '.join(missing)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--retort", default=os.path.join(HERE, "../../build/retort"))
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--user", action="store_true", help="as an ordinary user (uid 65534)")
    parser.add_argument("--no-skips", action="store_true", help="a skip is a failure (CI)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--module", help=argparse.SUPPRESS)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()

    api.RETORT = os.path.realpath(options.retort)
    api.USER = api.NOBODY if options.user and os.getuid() == 0 else None
    if not os.access(api.RETORT, os.X_OK):
        sys.exit(f"{options.retort} is not there: build it first, or name another with --retort")
    with open(api.RETORT, "rb") as f:
        api.SANITIZED = b"__asan_init" in f.read()
    if options.module:
        return run_module(options)

    modules = sorted(n[:-3] for n in os.listdir(HERE) if n.startswith("test_") and n.endswith(".py"))
    modules = [m for m in modules if load(m, options.only)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        counts = list(pool.map(lambda m: start_module(m, options), modules))
    passed, failed, skipped = (sum(c[k] for c in counts) for k in ("passed", "failed", "skipped"))
    if options.coverage:
        print_coverage({tuple(s) for c in counts for s in c["seen"]})
    if options.no_skips:
        failed += skipped
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped and not options.no_skips else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
