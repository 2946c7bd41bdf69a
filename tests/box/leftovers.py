"""What a retort that has ended may leave on the host: nothing. A snapshot, and its difference to a later one.

Other retorts may be at work on the same machine, so whoever looks moves apart first, to where only processes, mounts,
files and shared memory of its own are to be seen. Where that cannot be had, and of cgroups, what is somebody's is not
taken for left over: a process that has a living parent other than init, a cgroup that a living retort has locked, a
namespace with such a process in it. And whatever is counted must stay for as long as the check waits.
"""
import fcntl
import os
import re
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Made by the tests themselves, perhaps by others at the same time.
TESTS = ("retort-test-", "retort-kernel-", "retort-vm", "retort-cli-")
PLACES = ("/tmp", "/var/tmp", "/run", "/dev/shm", "/run/lock", "/run/user")


def move_apart(retort):
    """Start this program again in namespaces of its own, with /tmp and its like empty but for what is needed of them.
    Stays where it is when that cannot be had."""
    if os.environ.get("RETORT_TEST_APART"):
        return
    places = [p for p in PLACES[:4] if os.path.isdir(p)]
    script = ["set -e"]
    needed = [d for d in (os.path.dirname(os.path.dirname(HERE)), os.path.dirname(retort))
              if any(d.startswith(place + "/") for place in places)]
    script += [f"exec {fd}<{shlex.quote(d)}" for fd, d in enumerate(needed, 8)]
    script += [f"mount -t tmpfs -o mode=1777 retort-test {place}" for place in places]
    for fd, d in enumerate(needed, 8):
        script += [f"mkdir -p {shlex.quote(d)}", f"mount --no-canonicalize --bind /proc/self/fd/{fd} {shlex.quote(d)}", f"exec {fd}<&-"]
    script += ["set +e", '"$@"', "exit $?"]  # the shell stays: a first process has orphans to wait for
    lead = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    if subprocess.run([*lead, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        os.environ["RETORT_TEST_APART"] = "1"
        os.execvp(lead[0], [*lead, "sh", "-c", "\n".join(script), "sh", "/usr/bin/python3", *sys.argv])


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def is_retorts(pid, retort):
    """Is it retort's: its binary, a zygote, or something in a box (which is in a pid namespace of its own)?"""
    try:
        exe = os.readlink(f"/proc/{pid}/exe").split(" (deleted)")[0]
    except OSError:
        return False
    command = read(f"/proc/{pid}/cmdline")
    name = read(f"/proc/{pid}/comm").strip()
    if "tests/box" in command:
        return False
    boxed = re.search(r"^NSpid:\t\d+\t\d+", read(f"/proc/{pid}/status"), re.M)
    return exe == retort or "retort" in name or "retort_kernel" in command or "/opt/retort" in command or bool(boxed)


def parent(pid):
    stat = read(f"/proc/{pid}/stat")
    return int(stat.rsplit(")", 1)[1].split()[1]) if stat else 0


def processes(retort):
    """Processes of retorts that nobody waits for: {pid: what}."""
    seen = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if is_retorts(pid, retort):
            top = parent(pid)
            while top > 1 and is_retorts(top, retort):
                top = parent(top)
            if top in (0, 1, os.getpid()):
                command = read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
                seen[pid] = f"{read(f'/proc/{pid}/comm').strip()}: {command[:80]}"
    return seen


def is_locked(directory):
    """By a living retort, whose cgroup it is; or gone by now."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def cgroups():
    """Cgroups of retorts that live no more."""
    found = set()
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            path = os.path.join(directory, name)
            ground = re.match(r".*/\d+-[0-9a-f]{8}(?=/|$)", path)  # in …/retort, or in what was delegated to a user
            if ground:
                if not is_locked(ground[0]):
                    found.add(path)
            elif "retort" in name and not name.startswith(TESTS) and "populated 1" not in read(path + "/cgroup.events"):
                if not any(d.is_dir() for d in os.scandir(path)):
                    found.add(path)
    return found


def mounts():
    return {line.split(" - ")[0].split(" ", 1)[1].rsplit(" ", 1)[0] + " " + line.split(" - ")[1]
            for line in read("/proc/self/mountinfo").splitlines()}


def namespaces(orphans):
    """Namespaces that no process is in (something holds them), or only processes that are left over."""
    done = subprocess.run(["lsns", "--noheadings", "--raw", "--output", "NS,TYPE,PID"], capture_output=True, text=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {" ".join(row[:2]) for row in rows if len(row) < 3 or row[2] == "0" or int(row[2]) in orphans}


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
    return {" ".join(line.split()[:2]) for name in ("shm", "msg", "sem")
            for line in read(f"/proc/sysvipc/{name}").splitlines()[1:]}


class Snapshot:
    def __init__(self, retort):
        self.retort = os.path.abspath(retort)
        orphans = processes(self.retort)
        self.parts = {"process": set(orphans.items()), "cgroup": cgroups(), "mount": mounts(),
                      "namespace": namespaces(orphans), "file": files(), "shared memory": shared_memory()}

    def left_since(self, before):
        return {f"{kind} left over: {thing}" for kind, things in self.parts.items()
                for thing in things - before.parts[kind]}


def settled(before, seconds=30.0):
    """What is left and stays left; [] as soon as nothing is."""
    end = time.monotonic() + seconds
    left = Snapshot(before.retort).left_since(before)
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left &= Snapshot(before.retort).left_since(before)
    return sorted(left)
