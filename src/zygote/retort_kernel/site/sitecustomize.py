"""For every Python in a box, the session's and those that it starts: psutil, where /proc shows processes only.

psutil reads files of /proc that tell of the whole machine, and without them it cannot even say what it
knows of a process; joblib's workers, which ask it for their memory, die of that. Such files are made up
here, of what a box is: its own memory limit and use, its own processor time. What would be other people's
is zero. The session's Python imports this, the others find it by PYTHONPATH.
"""
import os
import sys
import time

NAME = "psutil._common"
LIMIT = "RETORT_MEMORY"  # bytes; 0 where there is none
FILES = ("/mnt/data", "/tmp", "/dev/shm")  # which are memory as well


class Watch:
    """A finder that sees the module being imported, once, and mends it before others take its functions."""

    def find_spec(self, name, path=None, target=None):
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                for name in ("open_binary", "open_text"):
                    setattr(module, name, _opener(getattr(module, name), name == "open_binary"))

            spec.loader.exec_module = exec_module
        return spec


def _opener(opened, binary):
    def open_or_make_up(name, *args, **options):
        try:
            return opened(name, *args, **options)
        except FileNotFoundError:
            if name not in MADE_UP:
                raise
        import io
        text = MADE_UP[name]()
        return io.BytesIO(text.encode()) if binary else io.StringIO(text)

    return open_or_make_up


def _stat():
    ticks, cores = os.sysconf("SC_CLK_TCK"), os.cpu_count() or 1
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    times = os.times()
    user, system = times.user + times.children_user, times.system + times.children_system
    used = [user / cores, 0, system / cores, up - (user + system) / cores] + [0] * 6

    def line(name, share):
        return name + " " + " ".join(str(int(seconds * share * ticks)) for seconds in used) + "\n"

    return (line("cpu ", cores) + "".join(line(f"cpu{n}", 1) for n in range(cores)) +
            f"intr 0\nctxt 0\nbtime {int(time.time() - up)}\nprocesses 0\nsoftirq 0\n")


def _private_memory(pid):
    """Bytes that are this process's alone; none of one that may not be looked at."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
    except OSError:
        return 0


def _files_size(directory):
    try:
        found = os.statvfs(directory)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _meminfo():
    total = int(os.environ.get(LIMIT, 0)) or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    used = sum(map(_files_size, FILES)) + sum(_private_memory(pid) for pid in os.listdir("/proc") if pid.isdigit())
    free = max(total - used, 0)
    sizes = {"MemTotal": total, "MemFree": free, "MemAvailable": free}
    rest = ("Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree", "Shmem", "Slab",
            "SReclaimable")
    return "".join(f"{name}: {sizes.get(name, 0) >> 10} kB\n" for name in (*sizes, *rest))


def _cpuinfo():
    return "".join(f"processor\t: {n}\nphysical id\t: 0\ncore id\t\t: {n}\ncpu cores\t: {os.cpu_count()}\n\n"
                   for n in range(os.cpu_count() or 1))


MADE_UP = {
    "/proc/stat": _stat,
    "/proc/meminfo": _meminfo,
    "/proc/cpuinfo": _cpuinfo,
    "/proc/vmstat": lambda: "pswpin 0\npswpout 0\n",
    "/proc/net/dev": lambda: "Inter-|\n face |\n    lo:" + " 0" * 16 + "\n",
    "/proc/filesystems": lambda: "nodev\ttmpfs\nnodev\toverlay\n",
    "/proc/partitions": lambda: "major minor  #blocks  name\n\n",
    "/proc/diskstats": str,
}


def _load_next():
    """Another of this name, which Python would have found without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    for directory in sys.path:
        path = os.path.join(directory, "sitecustomize.py")
        if os.path.abspath(directory) != here and os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                exec(compile(file.read(), path, "exec"), {"__name__": "sitecustomize", "__file__": path})
            return


if NAME not in sys.modules:
    sys.meta_path.insert(0, Watch())
if __name__ == "sitecustomize":
    _load_next()
