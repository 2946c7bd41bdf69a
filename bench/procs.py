"""What the kernel says about processes and cgroups, seen from outside."""

import os
import re


def pids():
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""  # it ended meanwhile


def private_bytes(pid):
    """Memory that ends with this process; what it shares with a zygote is not in it."""
    text = read(f"/proc/{pid}/smaps_rollup")
    found = re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+)", text, re.M)
    return 1024 * sum(int(kb) for kb in found)


def available_bytes():
    return 1024 * int(re.search(r"MemAvailable:\s+(\d+)", read("/proc/meminfo")).group(1))


def depth(pid):
    """In how many pid namespaces a process is."""
    found = re.search(r"^NSpid:(.*)$", read(f"/proc/{pid}/status"), re.M)
    return len(found.group(1).split()) if found else 0


def descendants():
    """Every process below this one that has not ended."""
    children = {}
    for pid in pids():
        status = read(f"/proc/{pid}/status")
        found = re.search(r"^State:\s+(\w).*^PPid:\s+(\d+)", status, re.M | re.S)
        if found and found.group(1) != "Z":
            children.setdefault(int(found.group(2)), []).append(pid)
    found, todo = set(), [os.getpid()]
    while todo:
        for pid in children.get(todo.pop(), []):
            found.add(pid)
            todo.append(pid)
    return found


def in_boxes():
    """The processes of boxes. The keeper below us has a pid namespace, and each box another."""
    own = depth("self")
    return {pid for pid in descendants() if depth(pid) >= own + 2}


def boxes_bytes():
    """What all boxes together have for themselves, each with its init and its interpreter."""
    return sum(private_bytes(pid) for pid in in_boxes())


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def mounts(pid):
    return len(read(f"/proc/{pid}/mountinfo").splitlines())


def cgroups(owner):
    """The cgroups of one retort, by the pid that started it, in whichever hierarchy."""
    return {
        path
        for path, _, _ in os.walk("/sys/fs/cgroup")
        if any(part.startswith(f"{owner}-") for part in path.split("/"))
    }
