#!/usr/bin/python3
"""Drives retort's MCP server with the official clients, over both transports. The last line is `N passed, N failed`.

    tests/clients/run.py                       everything
    tests/clients/run.py --only conformance    what has "conformance" in its name (a regular expression)
    tests/clients/run.py --retort PATH         another binary than build/retort; what else the tests need of a build,
                                               which is tests/mcp/retort-fixtures, is beside it

The clients are programs for Node.js, which tools/npm installs here.
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../api"), os.path.join(HERE, "../common")]
import api
import suites


def main():
    options = suites.parse(suites.arguments(__doc__, HERE, jobs=2))
    api.RETORT = options.retort
    if not os.path.exists(os.path.join(HERE, "node_modules/.retort-lock")):
        sys.exit("these tests need what tools/npm tests/clients installs")
    if options.group:
        return suites.run_group(options, lambda: api.end_shared() or {})
    return suites.print_sum(options, suites.run_all(options, HERE, depth=2))


if __name__ == "__main__":
    sys.exit(main())
