#!/usr/bin/python3
"""The tasks that people bring, from their files to what they get. The last line is `N passed, N failed`.

    tests/tasks/run.py                     everything: needs the packages of all groups
    tests/tasks/run.py --groups core       what needs only these groups of tools/packages
    tests/tasks/run.py --only cities       what has "cities" in its name (a regular expression)
    tests/tasks/run.py -v                  with the time and the memory that each took
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../cli"), os.path.join(HERE, "../common")]
import cli
import suites
import tasks


def main():
    parser = suites.arguments(__doc__, HERE, jobs=2)
    parser.add_argument("--groups", default="core,documents,media,more", help="of tools/packages; test_GROUP… has its tests")
    options = suites.parse(parser)
    cli.RETORT, tasks.VERBOSE = options.retort, options.verbose
    if options.group:
        return suites.run_group(options, dict)
    # The others are not even read: they import what may not be there.
    files = [f"test_{group}*.py" for group in options.groups.split(",")]
    return suites.print_sum(options, suites.run_all(options, HERE, depth=1, files=files))


if __name__ == "__main__":
    sys.exit(main())
