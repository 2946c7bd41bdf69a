"""What /proc says of processes."""
import contextlib
import os
import time


def stat(pid):
    """The fields of /proc/PID/stat from the state on; [] of one that is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()
    return []


def parents():
    """pid → the pid of its parent, of all there are."""
    found = ((int(name), stat(name)) for name in os.listdir("/proc") if name.isdigit())
    return {pid: int(fields[1]) for pid, fields in found if fields}


def children(pid):
    return {p for p, parent in parents().items() if parent == pid}


def descendants(pid):
    """All below pid, itself not included."""
    parent_of = parents()
    below, grown = {pid}, True
    while grown:
        more = {p for p, parent in parent_of.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return below - {pid}


def alive(pids):
    return {pid for pid in pids if stat(pid)[:1] not in ([], ["Z"])}


def wait_gone(pids, seconds=60):
    """Those of them that are still there after that time."""
    end = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.05)
    return alive(pids)
