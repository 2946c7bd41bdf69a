"""Runs unittest's tests in several processes at a time. The last line is `N passed, N failed`, and
`, N skipped` when any were.

A group of tests (a module, or a class) is a process of its own, so that what it shares is its own.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time
import unittest


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


def plain_arguments(description):
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="a regular expression for their names")
    parser.add_argument("--no-skips", action="store_true", help="a skip is a failure (CI)")
    parser.add_argument("-v", "--verbose", action="store_true")
    return parser


def arguments(description, here, jobs):
    parser = plain_arguments(description)
    parser.add_argument("--retort", default=os.path.join(here, "../../build/retort"))
    parser.add_argument("--jobs", type=int, default=jobs, help="groups at a time")
    parser.add_argument("--group", help=argparse.SUPPRESS)
    return parser


def parse(parser):
    options = parser.parse_args()
    options.retort = os.path.realpath(options.retort)
    if not os.access(options.retort, os.X_OK):
        sys.exit(f"{options.retort} is not there: build it first, or name another with --retort")
    return options


def run_here(options, suite):
    """In this process. Its counts."""
    result = Result(options.verbose)
    unittest.TestSuite(t for t in flat(suite) if re.search(options.only, t.id())).run(result)
    return {"passed": result.passed, "failed": len(result.failed), "skipped": len(result.skipped)}


def run_group(options, end):
    """In a process of its own. `end` gives what else is to be told; the last line is for run_all."""
    counts = run_here(options, unittest.defaultTestLoader.loadTestsFromName(options.group))
    try:
        counts |= end()
    except Exception as e:
        print(f"FAILED {options.group}: {e}")
        counts["failed"] += 1
    print(json.dumps(counts))


def start_group(group):
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, *sys.argv, "--group", group],
                               stdout=subprocess.PIPE, text=True, errors="replace")
    last = ""
    for text in process.stdout:
        print(last, end="", flush=True)
        last = text
    process.wait()
    try:
        counts = json.loads(last)
    except ValueError:
        print(last)
        counts = {"passed": 0, "failed": 1, "skipped": 0}
    print(f"== {group}: {counts['passed']} passed, {counts['failed']} failed, {time.monotonic() - began:.0f} s",
          flush=True)
    return counts


def run_all(options, here, depth, files=("test_*.py",)):
    """Every group in these files below `here`; the first `depth` parts of a test's name are its group's. What each
    told."""
    loader = unittest.TestLoader()
    tests = [test for pattern in files for test in flat(loader.discover(here, pattern))]
    if loader.errors:  # tests that cannot be read are none that passed
        sys.exit("".join(loader.errors) + f"0 passed, {len(loader.errors)} failed")
    groups = dict.fromkeys(".".join(t.id().split(".")[:depth]) for t in tests if re.search(options.only, t.id()))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(start_group, groups))


def print_sum(options, counts):
    """The last line, and the status to leave with."""
    passed, failed, skipped = (sum(c[k] for c in counts) for k in ("passed", "failed", "skipped"))
    if options.no_skips:
        failed, skipped = failed + skipped, 0
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0
