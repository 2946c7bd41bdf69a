"""The programs in hostile/, honest/ and limits/: their headers, and the text that is really run.

A program begins with comment lines `# key: value`. A file may have several cells, divided by lines
`# %%`; `# %% a` and `# %% b` are cells of two sessions that live at the same time, `# %% end a`
ends one. Expectations at the head of a cell hold for that cell, those of the file for its first.

    tries        what it does, in a line
    why          why that matters
    args         flags for retort (--timeout 2 --memory 128m)
    expect       refused (default in hostile/): at least one REFUSED, no ESCAPED
                 survives: the machine and retort stay whole; the program need not say anything
    status       the cell's status; several are divided by commas; default ok
    limit        the cell's limit.kind
    restored     the cell's restored_to: the interpreter died with it, and that state came back
    prints       text that must be in its output (several lines allowed)
    exit         the exit status of `retort run`, when it is not the obvious one
    within       seconds in which all of it must be over (default 40)
    check        functions of checks.py, run afterwards, inside
    setup        how retort is started: leak (an open directory is inherited), umask (of 0),
                 signals (some are ignored and blocked), out (with -o DIR)
    outside      apart (default): as root in throw-away namespaces; host: as root on the host;
                 none: honest and limits programs, which have nothing to escape from
    outside-ends how the program ends outside: a signal's name, an exit status, "timeout", or
                 "session" (the naive runner of plain_repl.py breaks)
    outside-within  seconds that it gets outside (default 20)
    arch         the only machine it is for (x86_64)
    mark         an argument by which the processes it leaves can be told
    user         no (why): not for an ordinary user
    shell        ipython: outside too it needs IPython's magics
"""
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
KEY = re.compile(r"# ([a-z-]+): ?(.*)$")
CELL = re.compile(r"^# %%[ ]*(.*)$", re.M)
REPEATED = {"prints"}

with open(os.path.join(HERE, "helper.py")) as f:
    HELPER = f.read()


def header(text):
    """The `# key: value` lines at the beginning of text."""
    keys = {}
    last = None
    for line in text.lstrip("\n").splitlines():
        match = KEY.match(line)
        if match and match[1] in REPEATED:
            keys.setdefault(match[1], []).append(match[2].strip())
        elif match:
            keys[match[1]] = match[2].strip()
        elif line.startswith("#  ") and last:
            keys[last] += " " + line[1:].strip()  # a continued line
        else:
            break
        last = match[1] if match and match[1] not in REPEATED else last
    return keys


class Cell:
    def __init__(self, session, code, keys, end=False):
        self.session = session
        self.code = code
        self.keys = keys
        self.end = end  # ends the session instead of running anything

    def statuses(self):
        return [s.strip() for s in self.keys.get("status", "ok").split(",")]


class Program:
    def __init__(self, kind, path):
        self.kind = kind
        self.path = path
        self.name = kind + "/" + os.path.basename(path)[:-3]
        with open(path) as f:
            self.text = f.read()
        parts = CELL.split(self.text)
        self.keys = header(parts[0])
        self.cells = self.split(parts)
        self.many = len(self.cells) > 1

    def split(self, parts):
        if len(parts) == 1:
            return [Cell("a", parts[0], self.keys)]
        cells = []
        for title, body in zip(parts[1::2], parts[2::2]):
            words = title.split() or ["a"]
            if words[0] == "end":
                cells.append(Cell(words[1], "", {}, end=True))
            else:
                cells.append(Cell(words[0], body, header(body)))
        return cells

    def get(self, key, default=None):
        return self.keys.get(key, default)

    def args(self):
        return self.get("args", "").split()

    def expect(self):
        return self.get("expect", {"hostile": "refused", "honest": "honest"}.get(self.kind, "survives"))

    def has_helper(self):
        return self.kind == "hostile"

    def prelude(self, facts):
        if not self.has_helper():
            return ""
        return "HOST = " + repr(json.loads(json.dumps(facts))) + "\n" + HELPER

    def first_cells(self):
        """Index of the first cell of each session: these get the prelude."""
        seen = {}
        for i, cell in enumerate(self.cells):
            if not cell.end:
                seen.setdefault(cell.session, i)
        return set(seen.values())

    def mark(self, side):
        """The mark as it is really used: no other run of these tests has the same."""
        return f"{self.keys['mark']}{os.getpid()}{'1' if side == 'inside' else '2'}"

    def code(self, i, facts, side):
        body = self.cells[i].code
        if "mark" in self.keys:
            body = body.replace(self.keys["mark"], self.mark(side))
        return self.prelude(facts) + body if i in self.first_cells() else body


def discover(pattern=""):
    """Every program whose name has the pattern in it."""
    found = []
    for kind in ("hostile", "honest", "limits"):
        directory = os.path.join(HERE, kind)
        for name in sorted(os.listdir(directory)):
            if name.endswith(".py"):
                found.append(Program(kind, os.path.join(directory, name)))
    return [p for p in found if re.search(pattern, p.name)]
