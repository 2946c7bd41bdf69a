"""What the kernel says about processes and cgroups, seen from outside."""

import array
import mmap
import os
import re

PAGE_PRESENT, PAGE_OF_FILE = 1 << 63, 1 << 61
PAGE_FRAME = (1 << 55) - 1


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


def frames(pid):
    """The numbers of the page frames that hold its anonymous memory. Only root sees them."""
    found = set()
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb", 0) as pagemap:
            for line in maps:
                begin, end = (int(text, 16) // mmap.PAGESIZE for text in line.split()[0].split("-"))
                if "[vsyscall]" in line:
                    continue
                entries = array.array("Q", os.pread(pagemap.fileno(), 8 * (end - begin), 8 * begin))
                found.update(
                    entry & PAGE_FRAME
                    for entry in entries
                    if entry & PAGE_PRESENT and not entry & PAGE_OF_FILE
                )
    except OSError:
        pass  # it ended meanwhile
    return found


def boxes_bytes():
    """What ends with all boxes together: pages that one of their processes has and neither the keeper
    nor a zygote. smaps does not tell: to it a page is no more private when two processes of one box
    share it (the interpreter and the forks of it that wait), and is private when of all processes
    only one has a page of the zygote's file in its tables.

    The keeper below us has a pid namespace, and each box another."""
    own, below = depth("self"), descendants()
    boxes = {pid for pid in below if depth(pid) >= own + 2}
    if os.geteuid() != 0:
        return sum(private_bytes(pid) for pid in boxes)
    inside = set().union(*map(frames, boxes))
    outside = set().union(*map(frames, below - boxes))
    return len(inside - outside) * mmap.PAGESIZE


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
