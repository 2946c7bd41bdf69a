#!/usr/bin/python3
"""Models as a scripted server plays them, and retort ask and chat with them. The last line is `N passed, N failed`.

    tests/agent/run.py [-v] [--only PATTERN] [--retort PATH]

What else the tests need of a build is beside the binary.
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../cli"), os.path.join(HERE, "../common")]
import cli  # noqa: E402
import suites  # noqa: E402


def main():
    options = suites.parse(suites.arguments(__doc__, HERE, jobs=4))
    cli.RETORT = options.retort
    os.environ["RETORT_BUILD"] = os.path.dirname(options.retort)
    if options.group:
        return suites.run_group(options, dict)
    return suites.print_sum(options, suites.run_all(options, HERE, depth=2))


if __name__ == "__main__":
    sys.exit(main())
