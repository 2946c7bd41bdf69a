"""Tests of retort_kernel without a box: /usr/bin/python3 tests/kernel/run.py [-v] [test …]

One process is warmed as a zygote is; each test forks its sessions from it.
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import owner  # noqa: E402


def load_tests(loader, tests, pattern):
    return loader.discover(HERE)


if __name__ == "__main__":
    arguments = sys.argv
    owner.use_randomness()
    print("warm:", owner.retort_kernel.warm(["numpy", "pandas", "matplotlib.pyplot", "no_such_module"]),
          flush=True)
    some = len(arguments) > 1 and not arguments[-1].startswith("-")
    unittest.main(module=None if some else "run", argv=arguments)
