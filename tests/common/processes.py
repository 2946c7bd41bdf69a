"""What /proc says of processes."""
import contextlib
import os
import time


def stat(pid):
    """The fields of /proc/PID/stat from the state on; [] of one that is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()
    return []


def number_within(pid):
    """Its number in the innermost of its namespaces."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as f:
        return int(next(line for line in f if line.startswith("NSpid:")).split()[-1])
    return 0


def name(pid):
    """What it calls itself; "" when it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as f:
        return f.read().strip()
    return ""


def children(pid):
    found = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                found |= set(map(int, f.read().split()))
    return found


def descendants(pid):
    """All below pid, itself not included."""
    below, last = set(), {pid}
    while last:
        last = {p for parent in last for p in children(parent)} - below
        below |= last
    return below


def alive(pids):
    return {pid for pid in pids if stat(pid)[:1] not in ([], ["Z"])}


def wait_gone(pids, seconds=60):
    """Those of them that are still there after that time."""
    end = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.02)
    return alive(pids)
