#!/usr/bin/python3
"""Drives a server from outside, as its users do. The last line is `N passed, N failed`.

    tests/api/run.py                       everything
    tests/api/run.py --only stream         what has "stream" in its name (a regular expression)
    tests/api/run.py --retort PATH         another binary than build/retort
    tests/api/run.py --user                as an ordinary user, who has one uid and no cgroups
    tests/api/run.py --coverage [FILE]     also which described answers were never seen, in this run and in
                                           those that used the same FILE

A module is a process with a server of its own; --jobs of them run at the same time.
"""
import json
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../common")]
try:
    import jsonschema  # noqa: F401
except ImportError:
    sys.exit("these tests need python3-jsonschema: tools/install test")
import api
import spec
import suites


def end_group():
    api.end_shared()
    return {"seen": sorted(spec.seen)}


# Answered before it matters which call it is: one of each will do.
ANYWHERE = {"401", "403", "413", "415", "421", "501", "503"}


def remember(path, seen):
    """What was seen now, and by those who wrote to this file before."""
    with open(path, "a+") as f:
        f.seek(0)
        before = {tuple(json.loads(line)) for line in f}
        f.writelines(json.dumps(s) + "\n" for s in seen - before)
    return seen | before


def print_coverage(seen):
    """What is described and was never answered."""
    good = ANYWHERE & {str(status) for _, _, status in seen}
    for method, path, operation in spec.operations():
        missing = [s for s in operation["responses"] if (method, path, int(s)) not in seen and s not in good]
        if missing:
            print(f"never seen: {method} {path}: {' '.join(missing)}")


def main():
    parser = suites.arguments(__doc__, HERE, jobs=3)
    parser.add_argument("--user", action="store_true", help="as an ordinary user (uid 65534)")
    parser.add_argument("--coverage", nargs="?", const=os.devnull, metavar="FILE")
    options = suites.parse(parser)
    api.RETORT = options.retort
    api.USER = api.NOBODY if options.user and os.getuid() == 0 else None
    with open(api.RETORT, "rb") as f:
        api.SANITIZED = b"__asan_init" in f.read()
    if options.group:
        return suites.run_group(options, end_group)
    counts = suites.run_all(options, HERE, depth=1)
    if options.coverage:
        print_coverage(remember(options.coverage, {tuple(s) for c in counts for s in c.get("seen", [])}))
    return suites.print_sum(options, counts)


if __name__ == "__main__":
    sys.exit(main())
