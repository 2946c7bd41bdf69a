#!/usr/bin/python3
"""Runs the programs of hostile/, honest/ and limits/ against a built retort.

Each hostile program runs twice: in a box, where what it tries must be refused, and outside of one,
where it must succeed, so that a check that cannot fail is seen. See programs.py for the headers and
helper.py for the verdicts. The last line is `N passed, N failed`, and `, N skipped` when any were.

    tests/box/run.py                        everything, as root
    tests/box/run.py --only ptrace          what has "ptrace" in its name (a regular expression)
    tests/box/run.py --side outside         only the counterparts: needs no retort
    tests/box/run.py --user                 retort as an ordinary user
"""
import os
import sys

if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # not a pyenv's

import argparse
import concurrent.futures
import platform
import shlex
import signal
import subprocess
import tempfile
import threading
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../common")]
import checks
import drive
import host as hosts
import programs


def verdicts(cell):
    """The verdict lines of a cell, as (word, text)."""
    found = []
    for line in checks.text_of(cell).splitlines():
        word, colon, rest = line.partition(": ")
        if colon and word in ("REFUSED", "ESCAPED", "WRONG", "UNTRIED"):
            found.append((word, rest))
    return found


def judge_cell(cell, wanted):
    """Complaints about one cell that came back from a box."""
    complaints = []
    status = cell.get("status")
    if status not in wanted.statuses():
        error = cell.get("error") or {}
        detail = f" ({error.get('name')}: {error.get('value')})" if error else ""
        complaints.append(f"status is {status}{detail}, not {' or '.join(wanted.statuses())}"
                          + (f"; limit {cell['limit']}" if cell.get("limit") else ""))
    kind = (cell.get("limit") or {}).get("kind")
    if "limit" in wanted.keys and kind not in wanted.keys["limit"].replace(",", " ").split():
        complaints.append(f"limit.kind is {kind}, not {wanted.keys['limit']}")
    if "restored" in wanted.keys and str(cell.get("restored_to")) != wanted.keys["restored"]:
        complaints.append(f"restored_to is {cell.get('restored_to')}, not {wanted.keys['restored']}")
    text = checks.text_of(cell)
    error = cell.get("error") or {}
    everything = f"{text}{checks.text_of(cell, 'stderr')}{error.get('name')}: {error.get('value')}"
    for line in wanted.keys.get("prints", []):
        if line not in everything:
            complaints.append(f"{line!r} is not in the output: {everything[-300:]!r}")
    return complaints + [f"{word}: {rest}" for word, rest in verdicts(cell) if word in ("ESCAPED", "WRONG")]


# What `retort run` leaves with; 125 would say that retort itself failed, which is never the guest's to bring about.
CRASHED = set(range(1, 256)) - {2, 124, 125}
EXIT = {"ok": {0}, "error": {1}, "interrupted": {1, 130}, "crashed": CRASHED}
KINDS = {"wall": {124}, "cpu": {124}, "memory": {137}}


def judge_exit(program, outcome):
    """The exit status of `retort run` goes with the cell's."""
    if program.many or not outcome.cells:
        return []
    if outcome.exit is None:
        return []  # its retort goes on with other programs
    cell = outcome.cells[0]
    if "exit" in program.keys:
        wanted = {int(x) for x in program.keys["exit"].replace(",", " ").split()}
    elif cell.get("status") == "limit":
        wanted = KINDS.get((cell.get("limit") or {}).get("kind"))
    else:
        wanted = EXIT.get(cell.get("status"))
    if isinstance(outcome.exit, int) and outcome.exit < 0:
        return [f"retort died of signal {-outcome.exit}"]
    if outcome.exit == 125:
        return [f"retort itself failed: {outcome.stderr[-400:]}"]
    if wanted and outcome.exit not in wanted:
        return [f"exit status {outcome.exit} with a cell that is {cell.get('status')}"]
    return []


def judge_inside(program, outcome, facts):
    complaints = list(outcome.trouble)
    for cell, wanted in zip(outcome.cells, program.cells):
        if cell is not None:
            complaints += judge_cell(cell, wanted)
    complaints += judge_exit(program, outcome)
    if program.many and isinstance(outcome.exit, int) and outcome.exit < 0:
        complaints.append(f"retort died of signal {-outcome.exit}")
    words = [word for cell in outcome.cells if cell for word, _ in verdicts(cell)]
    if program.expect() == "refused" and "REFUSED" not in words and not complaints:
        complaints.append("no verdict: " + repr([checks.text_of(c or {}) for c in outcome.cells])[-300:])
    if program.expect() == "honest" and not complaints:
        if "OK" not in checks.text_of(outcome.cells[-1]).splitlines():
            complaints.append("did not print OK: " + repr(outcome.cells[-1])[-400:])
    if not outcome.trouble:
        for name in program.get("check", "").replace(",", " ").split():
            complaints += getattr(checks, name)(program, outcome, facts)
    note = "; ".join(f"{rest}" for c in outcome.cells if c for w, rest in verdicts(c) if w == "REFUSED")
    return complaints, note


def ended_as(program, outcome):
    """Did the program end outside as its header says?"""
    wanted = program.keys["outside-ends"]
    if wanted == "session":  # the naive runner did not stand it
        return bool(outcome.trouble)
    number = getattr(signal, wanted, None)
    if number is not None:
        return outcome.exit in (-number, 128 + number)
    return str(outcome.exit) == wanted


def judge_outside(program, outcome):
    seen = [v for cell in outcome.cells if cell for v in verdicts(cell)]
    note = "; ".join(rest for word, rest in seen if word == "ESCAPED")
    if "outside-ends" in program.keys:
        if ended_as(program, outcome):
            return [], f"ended with {outcome.exit}"
        return [f"ended with {outcome.exit}, not {program.keys['outside-ends']}: {outcome.stderr[-300:]}"], ""
    complaints = list(outcome.trouble)
    complaints += [f"refused outside too: {rest}" for word, rest in seen if word == "REFUSED"]
    if not any(word == "ESCAPED" for word, _ in seen):
        text = "".join(checks.text_of(c) for c in outcome.cells if c)
        complaints.append(f"nothing escaped outside; exit {outcome.exit}: {text[-300:]} {outcome.stderr[-500:]}")
    return complaints, note


def own_cgroup_is_ours():
    """Has this user a cgroup, of version 2, to make others in?"""
    with open("/proc/self/cgroup") as f:
        own = [line.strip().split("::")[1] for line in f if line.startswith("0::")]
    return bool(own) and os.access("/sys/fs/cgroup" + own[0], os.W_OK)


class Run:
    def __init__(self, options, host):
        self.options, self.host = options, host
        self.facts = host.facts()
        self.ordinary_user = options.user or os.geteuid() != 0
        self.has_cgroup = not options.user and own_cgroup_is_ours()
        self.lock = threading.Lock()
        self.count = {"passed": 0, "failed": 0, "skipped": 0}
        self.number = 0

    def skip(self, program, side):
        """Why this cannot be tried here, or None."""
        if program.get("arch") and program.get("arch") != platform.machine():
            return f"only for {program.get('arch')}"
        if side == "outside":
            if program.kind != "hostile" or program.get("outside") == "none":
                return "" if not self.options.all_outside else None
            if os.geteuid() != 0:
                return "the counterpart outside needs root"
            return None
        if self.ordinary_user and program.get("user", "").startswith("no"):
            reason = program.get("user")[2:].strip(" ()")
            if not (self.has_cgroup and reason.endswith("cgroup")):
                return "as an ordinary user: " + reason
        if not os.path.exists(self.options.retort):
            return f"{self.options.retort} is not built"
        return None

    def test(self, program, side):
        workdir = tempfile.mkdtemp(prefix="box-", dir=self.host.directory)
        os.chmod(workdir, 0o777)
        try:
            if side == "inside":
                shared = self.options.shared and drive.Shared.suits(program)
                driver = (drive.Shared if shared else drive.Inside)(self.host, workdir, self.options.retort,
                                                                    self.options.user)
                outcome = driver.run_all(program, self.facts)
                complaints, note = judge_inside(program, outcome, self.facts)
            else:
                driver = drive.Outside(self.host, workdir)
                outcome = driver.run_all(program, self.facts)
                if program.kind == "hostile":
                    complaints, note = judge_outside(program, outcome)
                else:
                    complaints, note = judge_inside(program, outcome, self.facts)
            return complaints, note, outcome.seconds
        except Exception:
            return ["the runner failed: " + traceback.format_exc()], "", 0
        finally:
            hosts.remove(workdir)

    def one(self, program, side):
        reason = self.skip(program, side)
        if reason == "":
            return  # not a test at all
        if reason:
            return self.report("skipped" if not self.options.no_skips else "failed", program, side,
                               [reason] if self.options.no_skips else [], f"SKIP {reason}")
        complaints, note, seconds = self.test(program, side)
        self.report("failed" if complaints else "passed", program, side, complaints,
                    f"{seconds:.1f} s" + (f"; {note}" if self.options.verbose and note else ""))

    def report(self, result, program, side, complaints, note):
        with self.lock:
            self.number += 1
            self.count[result] += 1
            word = "not ok" if result == "failed" else "ok"
            print(f"{word} {self.number} - {program.name} {side} # {note}", flush=True)
            for complaint in complaints:
                for line in str(complaint).splitlines():
                    print(f"#   {line}", flush=True)

    def all(self):
        sides = ["inside", "outside"] if self.options.side == "both" else [self.options.side]
        if self.options.user and "outside" in sides and len(sides) == 2:
            sides = ["inside"]  # the counterparts are the same, and need root
        todo = [(p, s) for p in programs.discover(self.options.only) for s in sides]
        if self.options.shared:
            todo.sort(key=lambda one: drive.Shared.flags(one[0])[0])  # those that can share a retort in a row
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for future in [pool.submit(self.one, p, s) for p, s in todo]:
                future.result()


def trouble(options, host):
    """Why no program can run in a box at all, or None: better said once than for each program."""
    if options.side == "outside" or not os.path.exists(options.retort):
        return None
    if options.shared:
        return None  # each program costs little there
    driver = drive.Inside(host, host.directory, options.retort, options.user)
    command = driver.prefix() + [driver.retort, "run", "-c", "print(6 * 7)"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=driver.environment(), cwd=host.directory, timeout=60 * drive.slow)
    return None if done.stdout == "42\n" else f"{done.returncode}: {done.stdout} {done.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-j", "--jobs", type=int, default=3)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--retort", default=os.path.join(hosts.REPOSITORY, "build/retort"))
    parser.add_argument("--side", choices=("both", "inside", "outside"), default="both")
    parser.add_argument("--shared", action="store_true",
                        help="one retort for many programs, each in a box of its own: for slow machines")
    parser.add_argument("--user", action="store_true", help="run retort as an ordinary user")
    parser.add_argument("--slow", type=float, default=1.0, metavar="TIMES",
                        help="multiply all deadlines of the tests (not retort's limits)")
    parser.add_argument("--through", type=shlex.split, default=[], metavar="COMMAND",
                        help="start every retort with this command")
    parser.add_argument("--no-skips", action="store_true", help="a skip is a failure (CI)")
    parser.add_argument("--all-outside", action="store_true",
                        help="run honest/ and limits/ outside too: tries the tests themselves")
    parser.add_argument("-v", "--verbose", action="store_true", help="say how each act went")
    options = parser.parse_args()
    drive.slow, drive.through = options.slow, options.through

    host = hosts.Host(options.retort)
    run = Run(options, host)
    try:
        reason = trouble(options, host)
        if reason:
            run.count["failed"] += 1
            print("not ok - a program in a box")
            print("".join(f"#   {line}\n" for line in reason.splitlines()), end="")
        else:
            run.all()
            drive.Shared.end_idle()
            for status in (s for s in drive.Shared.statuses if s != 0):
                run.count["failed"] += 1
                print(f"not ok - a shared retort ended with {status}")
    finally:
        host.close()
        drive.remove_cgroups()
    count = run.count
    print(f"{count['passed']} passed, {count['failed']} failed"
          + (f", {count['skipped']} skipped" if count["skipped"] else ""))
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
