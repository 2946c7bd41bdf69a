#!/usr/bin/python3
"""Drives a built retort from outside, as its users do. The last line is `N passed, N failed`.

    tests/cli/run.py                       everything
    tests/cli/run.py --only terminal       what has "terminal" in its name (a regular expression)
    tests/cli/run.py --retort PATH         another binary than build/retort
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

import argparse
import re
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import cli


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

    def say(self, word, test, text=""):
        took = time.monotonic() - self.began
        print(f"{word:6} {test.id()} ({took:.1f} s){text}", flush=True)

    def addSuccess(self, test):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--retort", default=os.path.join(HERE, "../../build/retort"))
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--no-skips", action="store_true", help="a skip is a failure (CI)")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()

    cli.RETORT = os.path.realpath(options.retort)
    if not os.access(cli.RETORT, os.X_OK):
        sys.exit(f"{options.retort} is not there: build it first, or name another with --retort")
    tests = [t for t in flat(unittest.defaultTestLoader.discover(HERE, "test_*.py"))
             if re.search(options.only, t.id())]
    result = Result(options.verbose)
    unittest.TestSuite(tests).run(result)
    skipped = len(result.skipped)
    failed = len(result.failed) + (skipped if options.no_skips else 0)
    print(f"{result.passed} passed, {failed} failed"
          + (f", {skipped} skipped" if skipped and not options.no_skips else ""))
    return 1 if failed or not result.passed else 0


if __name__ == "__main__":
    sys.exit(main())
