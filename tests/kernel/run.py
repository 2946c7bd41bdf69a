"""Tests of retort_kernel without a box. The last line is `N passed, N failed`.

    /usr/bin/python3 tests/kernel/run.py [-v] [--only PATTERN]

One process is warmed as a zygote is; each test forks its sessions from it.
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../common")]

import owner  # noqa: E402
import suites  # noqa: E402


def main():
    options = suites.plain_arguments(__doc__).parse_args()
    owner.use_randomness()
    print("warm:", owner.retort_kernel.warm(["numpy", "pandas", "matplotlib.pyplot", "no_such_module"]),
          flush=True)
    counts = suites.run_here(options, unittest.defaultTestLoader.discover(HERE))
    return suites.print_sum(options, [counts])


if __name__ == "__main__":
    sys.exit(main())
