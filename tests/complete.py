#!/usr/bin/python3
"""Is everything in a box that the table of libraries names? The last line is `N passed, N failed`.

    tests/complete.py [--retort PATH]      after "make environment"

Each library is imported, in the order of the table and in one box, and each command tells its version.
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "../src/zygote/retort_kernel/libraries.txt")
IMPORTS = """
import importlib, json, traceback
found = {}
for name in %r:
    try:
        importlib.import_module(name)
        found[name] = ""
    except BaseException as error:
        found[name] = traceback.format_exc()[-1000:]
print(json.dumps(found))
"""


def table(kind):
    with open(TABLE, encoding="utf-8") as file:
        return [line.split() for line in file if line.startswith(kind + " ")]


def retort(binary, *args):
    done = subprocess.run([binary, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"retort {args[0]} ended with {done.returncode}: {done.stderr}\n0 passed, 1 failed")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--retort", default=os.path.join(HERE, "../build/retort"))
    binary = parser.parse_args().retort
    modules = [words[2] for words in table("library")]
    problems = retort(binary, "run", "--memory", "3g", "--timeout", "300", "-c", IMPORTS % modules)
    told = {each["name"]: each["version"] for part in ("libraries", "commands") for each in retort(binary, "env", "--json")[part]}
    for words in table("library") + table("command"):
        if words[1] not in told:
            problems[words[1]] = "retort env does not list it"
        elif not told[words[1]]:
            problems[words[1]] = "it does not tell its version"
        else:
            problems.setdefault(words[1], "")
    failed = {name: text for name, text in problems.items() if text}
    for name, text in failed.items():
        print(f"FAILED {name}: {text}")
    print(f"{len(problems) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
