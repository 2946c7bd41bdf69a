"""What a retort that has ended may leave on the host: nothing. A snapshot, and its difference to a later one.

Things of other programs come and go too; so only what can be retort's is looked at: processes by their executable or
name, cgroups and files by their name, and mounts, namespaces and the table of open files as a whole.
"""
import os
import subprocess
import time

TESTS = ("retort-test-", "retort-kernel-", "retort-vm")  # made by the tests themselves, perhaps at the same time
PLACES = ("/tmp", "/var/tmp", "/run", "/dev/shm", "/run/lock", "/run/user")


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def processes(retort):
    """Processes that are retort's: its binary, its zygotes, or something in a box."""
    seen = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        command = read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
        name = read(f"/proc/{pid}/comm").strip()
        if exe.split(" (deleted)")[0] == retort or "retort" in name or "zygote" in name or "retort_kernel" in command:
            if "tests/box" not in command:
                seen[int(pid)] = f"{name}: {command[:80]}"
    return seen


def cgroups():
    found = set()
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        found |= {os.path.join(directory, n) for n in names
                  if "retort" in n and not n.startswith("retort-test-")}
    return found


def mounts():
    return {line.split(" - ")[0].split(" ", 1)[1].rsplit(" ", 1)[0] + " " + line.split(" - ")[1]
            for line in read("/proc/self/mountinfo").splitlines()}


def namespaces():
    """All namespaces on the host that some process is in (lsns sees bound ones too)."""
    done = subprocess.run(["lsns", "--noheadings", "--raw", "--output", "NS,TYPE"], capture_output=True, text=True)
    return set(done.stdout.splitlines())


def files():
    found = set()
    for place in PLACES:
        try:
            found |= {os.path.join(place, n) for n in os.listdir(place) if not n.startswith(TESTS)}
        except OSError:
            pass
    for base in (os.path.expanduser("~/.retort"), os.path.expanduser("~/.cache/retort")):
        for directory, _, names in os.walk(base):
            found |= {os.path.join(directory, n) for n in names}
    return found


def shared_memory():
    """System V segments, queues and semaphores of the host's namespace."""
    return {line for name in ("shm", "msg", "sem") for line in read(f"/proc/sysvipc/{name}").splitlines()[1:]}


class Snapshot:
    def __init__(self, retort):
        self.retort = os.path.abspath(retort)
        self.parts = {"process": set(processes(self.retort).items()), "cgroup": cgroups(), "mount": mounts(),
                      "namespace": namespaces(), "file": files(), "shared memory": shared_memory()}
        self.open_files = int(read("/proc/sys/fs/file-nr").split()[0] or 0)

    def left_since(self, before):
        left = []
        for kind, things in self.parts.items():
            left += [f"{kind} left over: {thing}" for thing in sorted(things - before.parts[kind], key=str)]
        return left


def settled(before, seconds=5.0):
    """What is left once the dust has settled; [] as soon as nothing is."""
    end = time.monotonic() + seconds
    while True:
        left = Snapshot(before.retort).left_since(before)
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)
