"""The limit: a plain fork of the same warm interpreter, to its first result. Nothing is sealed.

It warms with the zygote's own code, from the directory that is its argument, then answers requests,
a JSON object a line: {"n": 30, "how": "kernel", "gap_ms": 0} forks 30 times, each after so much
idleness, and answers the times; with {"seconds": 10} it forks for so long, and answers how often.
`how` is what the child does before it writes its result into a pipe:

    kernel    runs the cell as a box does, with the same shell and the same frames: the limit
    ipython   runs the cell with IPython's own run_cell
    bare      evaluates the expression and nothing else
"""

import functools
import json
import os
import struct
import sys
import time

sys.path.insert(0, sys.argv[1])
os.environ["MPLBACKEND"] = "Agg"

import _retort
import retort_kernel
from retort_kernel import frames

PRELOAD = ["numpy", "pandas", "matplotlib.pyplot"]
CODE = "1+1"


def run_kernel(kernel, fd):
    body = struct.pack("<II", 1, len(CODE)) + CODE.encode()
    kernel.channel.connect(functools.partial(os.write, fd), None)
    kernel.channel.received = [(frames.RUN, body)]
    kernel.turn()


def run_ipython(kernel, fd):
    kernel.shell.show = lambda *args: None
    value = kernel.shell.run_cell(CODE, store_history=False).result
    os.write(fd, repr(value).encode())


def run_bare(kernel, fd):
    os.write(fd, repr(eval(CODE)).encode())


WAYS = {"kernel": run_kernel, "ipython": run_ipython, "bare": run_bare}


def is_right(how, answer):
    if how != "kernel":
        return answer == b"2"
    return b"text/plain\x01\x00\x00\x002" in answer and struct.pack("<I", frames.DONE) in answer


def sample(kernel, how):
    """Nanoseconds from before the fork until the result is here."""
    r, w = os.pipe()
    begun = time.monotonic_ns()
    pid = os.fork()
    if pid == 0:
        WAYS[how](kernel, w)
        os._exit(0)
    os.close(w)
    answer = os.read(r, 4096)
    ns = time.monotonic_ns() - begun
    os.close(r)
    os.waitpid(pid, 0)
    if not is_right(how, answer):
        sys.exit(f"plain_fork: the child answered {answer!r}")
    return ns


def samples(kernel, request):
    times = []
    for _ in range(request["n"]):
        time.sleep(request["gap_ms"] / 1000)
        times.append(sample(kernel, request["how"]))
    return {"ns": times}


def last(kernel, request):
    begun, forks = time.monotonic(), 0
    while time.monotonic() - begun < request["seconds"]:
        sample(kernel, "kernel")
        forks += 1
    return {"per_second": forks / (time.monotonic() - begun)}


def main():
    retort_kernel.warm(PRELOAD)
    _retort.settle()
    kernel = sys.modules["retort_kernel.warm"]._kernel
    print(json.dumps({"warm": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = last(kernel, request) if "seconds" in request else samples(kernel, request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
