#!/usr/bin/python3
"""Models, as a scripted server plays them. The last line is `N passed, N failed`.

    tests/agent/run.py [-v] [--only PATTERN] [--retort PATH]

What else the tests need of a build is beside the binary.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../common")]

import suites  # noqa: E402


def main():
    options = suites.parse(suites.arguments(__doc__, HERE, jobs=2))
    os.environ["RETORT_BUILD"] = os.path.dirname(options.retort)
    if options.group:
        return suites.run_group(options, dict)
    return suites.print_sum(options, suites.run_all(options, HERE, depth=1))


if __name__ == "__main__":
    sys.exit(main())
