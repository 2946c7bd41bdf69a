"""Runs programs: in a box through `retort run --json` and `retort repl --json`, and outside of one.

Outside, everything hostile is kept on a short lead: a cgroup of its own where one can be had,
address space and time limits, and by default throw-away namespaces.
"""
import glob
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time

import checks
import processes

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
CGROUP = "retort-test-"  # and our pid
slow = 1.0  # all deadlines times this: an emulated machine is slow
through = []  # a command that starts retort, where it needs a place of its own

# How a test may spoil what its program inherits: none of it may be seen in the box.
SETUP = {
    "leak": ["sh", "-c", 'exec 7</; test -r /etc/shadow && exec 8</etc/shadow; exec "$@"', "sh"],
    "umask": ["sh", "-c", 'umask 0; exec "$@"', "sh"],
    "signals": ["env", "--ignore-signal=HUP,USR1", "--block-signal=TERM,USR2,INT"],
}


class Outcome:
    def __init__(self):
        self.cells = []      # the cells that came back, as dictionaries
        self.exit = None     # exit status of the (first) process; -n for signal n
        self.stderr = ""
        self.trouble = []    # what kept it from running as it should
        self.seconds = 0.0
        self.out = None      # the directory of run -o
        self.peak = {}       # pid → largest resident size seen, for retort's own processes


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Meter(threading.Thread):
    """Samples the resident size of retort's own processes (not of the interpreters)."""

    def __init__(self, pid, outcome):
        super().__init__(daemon=True)
        self.pid, self.outcome, self.over = pid, outcome, threading.Event()

    def run(self):
        while True:
            for pid in {self.pid} | processes.descendants(self.pid):
                try:
                    own = os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("retort")
                    with open(f"/proc/{pid}/statm") as f:
                        size = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
                except OSError:
                    continue
                if own:
                    self.outcome.peak[pid] = max(size, self.outcome.peak.get(pid, 0))
            if self.over.wait(0.1 * slow):
                return


class Repl:
    """One session driven a cell at a time; JSON lines in and out."""

    def __init__(self, command, environment, cwd):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment, cwd=cwd, start_new_session=True)
        self.lines = queue.Queue()
        self.errors = []
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.read_errors, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.decode(errors="replace"))

    def cell(self, code, seconds, timeout=None):
        """The answer to one cell; raises TimeoutError or EOFError."""
        request = {"code": code, "timeout": timeout} if timeout else {"code": code}
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=max(0.1, seconds))
        except queue.Empty:
            raise TimeoutError("no answer to a cell in time") from None
        except BrokenPipeError:
            raise EOFError("the session is gone") from None
        if line is None:
            raise EOFError("the session ended without an answer: " + "".join(self.errors)[-500:])
        return json.loads(line)

    def end(self, seconds=30):
        """End of input; the exit status, or None when it had to be killed."""
        seconds *= slow
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            kill(self.process)
            return None


class Driver:
    """Starts processes for programs; subclasses say how."""

    def __init__(self, host, workdir):
        self.host, self.workdir = host, workdir

    def spoil(self, program):
        command = []
        for word in program.get("setup", "").replace(",", " ").split():
            command += SETUP.get(word, [])
        return command

    def run_all(self, program, facts):
        """Run the program, whatever its kind, and tell what came of it."""
        outcome = Outcome()
        begun = time.monotonic()
        deadline = begun + slow * float(program.get("within", "40"))
        try:
            if program.many:
                self.run_cells(program, facts, outcome, deadline)
            else:
                self.run_one(program, facts, outcome, deadline)
        except (TimeoutError, EOFError, ValueError) as e:
            outcome.trouble.append(str(e))
        outcome.seconds = time.monotonic() - begun
        return outcome

    def run_cells(self, program, facts, outcome, deadline):
        sessions = {}
        try:
            for i, cell in enumerate(program.cells):
                if cell.end:
                    sessions[cell.session].end()
                    outcome.cells.append(None)
                    continue
                if cell.session not in sessions:
                    sessions[cell.session] = self.session(program)
                    self.meter(program, sessions[cell.session].process, outcome)
                repl = sessions[cell.session]
                outcome.cells.append(repl.cell(program.code(i, facts, self.side), deadline - time.monotonic()))
            self.keep_sessions(sessions, outcome)
        finally:
            for repl in sessions.values():
                if repl.process.stdin.closed:
                    continue
                status = repl.end()
                outcome.exit = status if outcome.exit in (None, 0) else outcome.exit
                outcome.stderr += "".join(repl.errors)
                if status is None:
                    outcome.trouble.append("the session did not end at its end of input")

    def keep_sessions(self, sessions, outcome):
        pass

    def meter(self, program, process, outcome):
        meter = Meter(process.pid, outcome)
        if "at_ease" in program.get("check", ""):
            meter.start()
        return meter

    def run_process(self, command, program, outcome, deadline, environment, cwd):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment, cwd=cwd,
                                   start_new_session=True)
        self.meter(program, process, outcome)
        try:
            text, errors = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            kill(process)
            text, errors = process.communicate()
            outcome.exit = "timeout"
            outcome.stderr = errors.decode(errors="replace")
            return text
        outcome.exit = process.returncode
        outcome.stderr = errors.decode(errors="replace")
        return text


class Inside(Driver):
    """In a box."""

    side = "inside"

    def __init__(self, host, workdir, retort, user=False):
        super().__init__(host, workdir)
        self.retort, self.user = os.path.abspath(retort), user

    def prefix(self):
        if not self.user:
            return through
        return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]

    def environment(self):
        environment = self.host.environment()
        if self.user:
            environment.update(HOME=self.workdir, USER="nobody", LOGNAME="nobody")
            environment.pop("XDG_RUNTIME_DIR", None)
        return environment

    def session(self, program):
        command = self.spoil(program) + self.prefix()
        return Repl(command + [self.retort, "repl", "--json"] + program.args(),
                    self.environment(), self.workdir)

    def run_one(self, program, facts, outcome, deadline):
        source = os.path.join(self.workdir, "program.py")
        with open(source, "w") as f:
            f.write(program.code(0, facts, self.side))
        command = self.spoil(program) + self.prefix() + [self.retort, "run", "--json"]
        command += program.args()
        if "out" in program.get("setup", ""):
            outcome.out = os.path.join(self.workdir, "out")
            os.mkdir(outcome.out)
            os.chmod(outcome.out, 0o777)
            command += ["-o", outcome.out]
        text = self.run_process(command + [source], program, outcome, deadline,
                                self.environment(), self.workdir)
        if outcome.exit == "timeout":
            raise TimeoutError("retort run was not over in time and had to be killed")
        if not text.strip():
            raise ValueError(f"no cell on stdout; exit {outcome.exit}; {outcome.stderr[-600:]}")
        outcome.cells.append(json.loads(text))

    def keep_sessions(self, sessions, outcome):
        """What can only be seen while the boxes live: the host's view of who they are."""
        outcome.uids = {}
        for name, repl in sessions.items():
            for pid in {repl.process.pid} | processes.descendants(repl.process.pid):
                try:
                    with open(f"/proc/{pid}/status") as f:
                        status = dict(line.split(":", 1) for line in f if ":" in line)
                except OSError:
                    continue
                if len(status.get("NSpid", "").split()) > 1:  # in a pid namespace of its own
                    outcome.uids.setdefault(name, set()).update(status["Uid"].split())


class Shared(Inside):
    """In a box of its own, but of a retort that runs other programs too: for a machine where starting one
    takes long. What is to be seen of retort's own start and end is not seen so."""

    # The interpreter says nonsense while no cell runs: from everything else a session recovers.
    END = """import _signal, posix
_signal.signal(_signal.SIGALRM, lambda *_: posix.write(3, bytes(64)))
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGALRM])
_signal.setitimer(_signal.ITIMER_REAL, {moment})
print("interpreter", posix.getpid())"""
    idle = []  # (flags, retort) that wait for their next program, which gets a fresh box; the newest last
    IDLE_MAX = 4
    statuses = []  # of those that were not needed any more
    lock = threading.Lock()

    @staticmethod
    def suits(program):
        """Not a program whose test is about how retort is started or ends, or what is left when it has ended."""
        return not (program.get("setup") or program.get("exit")) and program.get("check", "at_ease") == "at_ease"

    @staticmethod
    def flags(program):
        """The flags that make a retort of its own, and the time for a cell, which can be told with the cell."""
        words = program.args()
        at = words.index("--timeout") if "--timeout" in words else len(words)
        return tuple(words[:at] + words[at + 2:]), (words[at + 1:] or [None])[0]

    def take(self, flags):
        with self.lock:
            for i, (its_flags, repl) in enumerate(self.idle):
                if its_flags == flags:
                    del self.idle[i]
                    return repl
        return Repl(self.prefix() + [self.retort, "repl", "--json", *flags], self.environment(), self.host.directory)

    def end_session(self, repl):
        """False: it cannot be had."""
        moment = 0.1 if slow < 10 else 1
        try:
            cell = repl.cell(self.END.format(moment=moment), 20 * slow, "5")
        except (TimeoutError, EOFError):
            return False
        if cell.get("status") != "ok":
            return cell.get("session_ended", False)
        said = re.search(r"interpreter (\d+)$", checks.text_of(cell), re.M)
        if not said:
            return False
        interpreters = {pid for pid in processes.descendants(repl.process.pid)
                        if processes.number_within(pid) == int(said[1])}
        time.sleep(moment + 0.05)  # and for retort to hear of it
        return not processes.wait_gone(interpreters, 10 * slow)

    def give_back(self, flags, repl, ended, outcome):
        """For the next program, once its session has ended. A program may have left it so that this cannot be had:
        then it is its last."""
        if ended or self.end_session(repl):
            with self.lock:
                self.idle.append((flags, repl))
            self.end_idle(self.IDLE_MAX)
        elif repl.end() is None:
            outcome.trouble.append("the session did not end at its end of input")

    def run_one(self, program, facts, outcome, deadline):
        self.run_cells(program, facts, outcome, deadline)

    def run_cells(self, program, facts, outcome, deadline):
        flags, timeout = self.flags(program)
        sessions, ended, meters = {}, {}, []
        try:
            for i, cell in enumerate(program.cells):
                if cell.end:
                    self.give_back(flags, sessions.pop(cell.session), ended[cell.session], outcome)
                    outcome.cells.append(None)
                    continue
                if cell.session not in sessions:
                    sessions[cell.session] = self.take(flags)
                    meters.append(self.meter(program, sessions[cell.session].process, outcome))
                answer = sessions[cell.session].cell(program.code(i, facts, self.side),
                                                     deadline - time.monotonic(), timeout)
                if cell.session not in ended and answer.get("n") != 1:
                    outcome.trouble.append("the session of another program goes on")
                ended[cell.session] = answer.get("session_ended", False)
                outcome.cells.append(answer)
        except (TimeoutError, EOFError):
            for repl in sessions.values():  # whose fault it was is not known
                kill(repl.process)
                outcome.stderr += "".join(repl.errors)
            sessions = {}
            raise
        finally:
            for meter in meters:
                meter.over.set()
            for name, repl in sessions.items():
                self.give_back(flags, repl, ended.get(name, False), outcome)

    @classmethod
    def end_idle(cls, but=0):
        while True:
            with cls.lock:
                if len(cls.idle) <= but:
                    return
                _, repl = cls.idle.pop(0)
            cls.statuses.append(repl.end())


class Outside(Driver):
    """With no box, as root, on a short lead."""

    side = "outside"

    APART = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child",
             "--mount-proc", "--propagation", "private", "sh", "-c", '"$@"; exit $?', "sh"]

    def command(self, program, *end):
        lead = ["sh", "-c", 'for c in $CGROUPS; do echo 0 >$c/cgroup.procs; done; unset CGROUPS; exec "$@"', "sh",
                "prlimit", "--as=6442450944", "--nproc=4000"]
        if program.get("outside", "apart") == "apart":
            lead += self.APART
        return lead + self.spoil(program) + [PYTHON, *end]

    def environment(self):
        return {**self.host.environment(), "RETORT_OUTSIDE": "1", "CGROUPS": " ".join(cgroups()),
                "HOME": self.workdir, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}

    def session(self, program):
        words = [os.path.join(HERE, "plain_repl.py")]
        if program.get("shell") == "ipython" or program.kind != "hostile":
            words.append("--ipython")
        return Repl(self.command(program, *words), self.environment(), self.workdir)

    def run_one(self, program, facts, outcome, deadline):
        source = os.path.join(self.workdir, "program.py")
        with open(source, "w") as f:
            f.write(program.code(0, facts, self.side))
        text = self.run_process(self.command(program, source), program, outcome,
                                min(deadline, time.monotonic() + slow * float(program.get("outside-within", "20"))),
                                self.environment(), self.workdir)
        outcome.cells.append({"status": "ok", "outputs": [
            {"type": "stdout", "text": text.decode(errors="replace")}]})


_cgroups = None


def cgroups():
    """Directories of a cgroup for what runs outside, made once; none where that is not possible."""
    global _cgroups
    if _cgroups is None:
        _cgroups = []
        for path in glob.glob(f"/sys/fs/cgroup/{CGROUP}*") + glob.glob(f"/sys/fs/cgroup/*/{CGROUP}*"):
            if not os.path.exists("/proc/" + path.rsplit("-", 1)[1]):  # of one that was killed
                remove_cgroup(path)
        for base, limits in (("/sys/fs/cgroup/memory", {"memory.limit_in_bytes": "3g"}),
                             ("/sys/fs/cgroup/pids", {"pids.max": "3000"}),
                             ("/sys/fs/cgroup", {"memory.max": "3g", "pids.max": "3000"})):
            path = os.path.join(base, CGROUP + str(os.getpid()))
            try:
                if base == "/sys/fs/cgroup" and not os.path.exists(base + "/cgroup.procs"):
                    continue
                os.mkdir(path)
                _cgroups.append(path)
                for name, value in limits.items():
                    with open(os.path.join(path, name), "w") as f:
                        f.write(value)
            except OSError:
                pass
    return _cgroups


def remove_cgroup(path):
    try:
        with open(path + "/cgroup.procs") as f:
            for pid in f.read().split():
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.05)
        os.rmdir(path)
    except OSError:
        pass


def remove_cgroups():
    for path in _cgroups or []:
        remove_cgroup(path)
