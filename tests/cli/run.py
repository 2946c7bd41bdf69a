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

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../common")]
import cli
import suites


def main():
    # Most of a test's time is spent waiting: for time limits, for terminals.
    options = suites.parse(suites.arguments(__doc__, HERE, jobs=4))
    cli.RETORT = options.retort
    if options.group:
        return suites.run_group(options, dict)
    return suites.print_sum(options, suites.run_all(options, HERE, depth=2))


if __name__ == "__main__":
    sys.exit(main())
