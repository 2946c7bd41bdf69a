"""Checks that need the host's eyes: named in a program's header, run after it ran in the box.

Each takes (program, outcome, facts) and returns a list of complaints.
"""
import hashlib
import os
import stat
import time


def text_of(cell, kind="stdout"):
    return "".join(o.get("text", "") for o in cell.get("outputs") or [] if o["type"] == kind)


def at_ease(program, outcome, facts):
    """retort's own processes stayed small, whatever the box did."""
    big = {pid: size >> 20 for pid, size in outcome.peak.items() if size > 96 << 20}
    if not outcome.peak:
        return ["none of retort's own processes was seen"]
    return [f"retort's process {pid} grew to {size} MB" for pid, size in big.items()]


def out_is_plain(program, outcome, facts):
    """What run -o copied: regular files and directories only, none of them the host's."""
    complaints = []
    total = 0
    with open("/etc/passwd", "rb") as f:
        passwd = f.read(64)
    for directory, directories, files in os.walk(outcome.out):
        for name in directories + files:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                complaints.append(f"{name!r} was copied out as a special file or link")
                continue
            if status.st_mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(status.st_mode):
                complaints.append(f"{name!r} was copied out with its setuid bit")
            if not stat.S_ISREG(status.st_mode):
                continue
            total += status.st_blocks * 512
            if status.st_size < 1 << 20:
                with open(path, "rb") as f:
                    text = f.read()
                secret = hashlib.sha256(text).hexdigest() == facts["secret_sha256"]
                if secret or text.startswith(passwd):
                    complaints.append(f"{name!r} holds a file of the host")
    if total > 600 << 20:
        complaints.append(f"{total >> 20} MB were copied out")
    return complaints


def nothing_beside(program, outcome, facts):
    """run -o wrote nowhere but below its directory."""
    beside = set(os.listdir(os.path.dirname(outcome.out))) - {"out", "program.py"}
    return [f"{name!r} appeared beside the directory of run -o" for name in sorted(beside)]


def honest_file_is_out(program, outcome, facts):
    """The honest file next to the hostile ones did come out."""
    if os.path.isfile(os.path.join(outcome.out, "honest.txt")):
        return []
    return ["honest.txt was not copied out; there is " + repr(os.listdir(outcome.out))[:200]]


def honest_file_is_listed(program, outcome, facts):
    """Some cell's list of files names the honest file."""
    if any(f["path"] == "honest.txt" for cell in outcome.cells for f in cell.get("files") or []):
        return []
    return ["no cell's files name honest.txt: " + repr([c.get("files") for c in outcome.cells])[:300]]


def no_process_left(program, outcome, facts):
    """No process with the program's telling argument lives on."""
    mark = program.mark("inside").encode()  # what the program gave to sleep
    end = time.monotonic() + 30
    while (left := processes_with(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return [f"process {name} of the box lives on" for name in left]


def processes_with(argument):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    if argument in f.read().split(b"\0"):
                        found.append(name)
            except OSError:
                pass
    return found


def uids_differ(program, outcome, facts):
    """As root: the two boxes have no host uid in common, and none of them is root's."""
    a, b = outcome.uids.get("a", set()), outcome.uids.get("b", set())
    if not a or not b:
        return [f"the boxes' processes were not seen: {outcome.uids}"]
    if a & b:
        return [f"both boxes run as host uid {sorted(a & b)}"]
    return ["a process of the box is root on the host"] if "0" in a | b else []


def values_differ(program, outcome, facts):
    """Lines `VALUE name value`: no value may come twice under the same name."""
    seen, complaints = {}, []
    for cell in outcome.cells:
        for line in text_of(cell or {}).splitlines():
            if line.startswith("VALUE "):
                _, name, value = line.split(None, 2)
                if value in seen.setdefault(name, set()):
                    complaints.append(f"{name} gave the same value twice: {value[:60]}")
                seen[name].add(value)
    return complaints or ([] if any(len(v) > 1 for v in seen.values()) else ["nothing to compare"])


def kept_head_and_tail(program, outcome, facts):
    """Over the output limit: head and tail are there, and the rest is counted."""
    cell = outcome.cells[0]
    text = text_of(cell)
    complaints = []
    if "THE HEAD" not in text:
        complaints.append("the head of the output is missing")
    if "THE TAIL" not in text:
        complaints.append("the tail of the output is missing")
    if not (cell.get("truncated") or {}).get("stdout_bytes", 0) > 1 << 20:
        complaints.append(f"truncated says {cell.get('truncated')}")
    if len(text.encode()) > 3 << 20:
        complaints.append(f"{len(text)} characters were kept")
    return complaints


def ten_gigabytes_counted(program, outcome, facts):
    """Kept plus dropped is all that was written."""
    cell = outcome.cells[0]
    dropped = (cell.get("truncated") or {}).get("stdout_bytes", 0)
    if 10 * 2**30 - 4 * 2**20 <= dropped <= 10 * 2**30 + 2**20:
        return []
    return [f"10 GiB were written, {dropped} bytes are said to be dropped"]


def png_display(program, outcome, facts):
    """Some cell showed a PNG picture."""
    for cell in outcome.cells:
        for output in cell.get("outputs") or []:
            if output["type"] in ("display", "result") and \
                    output.get("data", {}).get("image/png", "").startswith("iVBORw0KGgo"):
                return []
    return ["no display with image/png"]


def rich_displays(program, outcome, facts):
    """The last cell showed one of each kind, and said nothing else than its progress."""
    types = [set(o["data"]) for o in outcome.cells[-1]["outputs"] if o["type"] == "display"]
    wanted = ["application/vnd.plotly.v1+json", "application/vnd.vegalite.v4+json", "image/png", "text/latex",
              "application/vnd.retort.table+json", "application/vnd.retort.chart+json"]
    said = text_of(outcome.cells[-1], "stderr")
    complaints = [f"no {kind} in display {i + 1}" for i, kind in enumerate(wanted)
                  if i >= len(types) or kind not in types[i]]
    if not said.endswith("s]\n") or "100000/100000" not in said or len(said) > 500:
        complaints.append(f"stderr is {said[-300:]!r}")
    return complaints


def png_file(program, outcome, facts):
    """The files of a cell name a PNG, with its hash."""
    for cell in outcome.cells:
        for f in cell.get("files") or []:
            if f["path"].endswith(".png") and f["change"] == "created" and f.get("sha256"):
                return []
    return ["no created .png among the cell's files"]


def short(program, outcome, facts):
    """The answer stayed small enough to hold."""
    import json
    size = len(json.dumps(outcome.cells))
    return [f"the cells are {size >> 20} MB of JSON"] if size > 48 << 20 else []
