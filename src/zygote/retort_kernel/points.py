"""Keeping what a session is: after a cell that changed something, a fork of the interpreter waits, and takes
its place when it dies.

It is made while nobody waits for an answer: when the last one was sent a moment ago and no order has come;
or else before the next cell, which waits for it. What only looks at values leaves nothing to keep.
"""
from .pristine import __builtins__

from ast import BinOp, BoolOp, Compare, Constant, Expr, Name, UnaryOp, parse
from os import O_RDONLY, close, listdir, open, read, readlink
from random import getstate, setstate
from re import compile as compile_pattern
from threading import enumerate as threads
from threading import main_thread
from time import sleep

from .forks import NOTHING, spare
from .frames import NEW_FILES, STATE_IS_NEW, UNDOABLE
from .reseed import note_process, renew_openssl, reseed_branch

FIRST_REST = 30  # milliseconds that a new session may take to its first cell, and none waits yet
TOLD = object()
LOOKS, A_MOMENT = 3, 0.001  # seconds between two looks at a thread
TRIES = 3  # while other processes of the session fork as well
NAME = 40  # characters of a thread's
LINES = 20  # of what is lost
SHORT = 200  # characters of a cell that are worth a look
# A call, a subscript, an assignment: most cells have one, and need not be parsed to be told from arithmetic. In a branch
# that would copy fifty pages.
MORE = compile_pattern(r"[\w)\]}\"'][(\[]|[\w\s]=[\w\s]|import ")
# What arithmetic is made of, and what of it is to be looked at.
PLAIN = {
    Expr: lambda node: (node.value,),
    BinOp: lambda node: (node.left, node.right),
    UnaryOp: lambda node: (node.operand,),
    BoolOp: lambda node: node.values,
    Compare: lambda node: (node.left, *node.comparators),
}
VALUES = (int, float, complex, bool, str, bytes, type(None))


def leaves_no_trace(source, names):
    """Is this cell only arithmetic on numbers and texts? (Then what is lost with it is its line in Out.)"""
    if len(source) > SHORT:
        return False
    if MORE.search(source):
        return False
    try:
        left = parse(source).body
        for node in left:  # it grows meanwhile
            kind = type(node)
            if kind is Name:
                if type(names.get(node.id)) not in VALUES:
                    return False
            elif kind is not Constant:
                left.extend(PLAIN[kind](node))
    except Exception:  # it is more, or no Python, or the user has broken what this takes
        return False
    return True


def one_line(text):
    return " ".join(str(text).split())[:NAME]


def unless_broken(act, *args):
    """What it returns, or None where the user has broken what it takes."""
    try:
        return act(*args)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def lost_threads():
    main = main_thread()
    return [f"thread {one_line(thread.name)}" for thread in threads() if thread is not main]


def content(path):
    fd = open(path, O_RDONLY)
    try:
        return read(fd, 4096).decode("utf-8", "replace")
    finally:
        close(fd)


def lost_processes():
    """Those that this thread has started: Linux can tell them apart, and they are nearly all."""
    try:
        return [f"process {pid} ({one_line(content(f'/proc/{pid}/comm'))})"
                for pid in content("/proc/thread-self/children").split()]
    except OSError:
        return []  # it has just ended, or this kernel does not tell


def lost_locks():
    """Of files: those of processes (fcntl) are nobody else's, and those of open files (flock) are not in files that
    are opened anew."""
    return [f"lock on {one_line(readlink(f'/proc/self/fd/{fd}'))}" for fd in listdir("/proc/self/fdinfo")
            if "\nlock:" in (unless_broken(content, f"/proc/self/fdinfo/{fd}") or "")]


def lost_now():
    """What a fork of now would not have, a line each; init takes no more than it has room for."""
    lines = [line for find in (lost_threads, lost_processes, lost_locks) for line in unless_broken(find) or ()]
    more = len(lines) - LINES
    return "\n".join(lines[:LINES] + ([f"others ({more} threads, processes or locks)"] if more > 0 else []))


def runs_apart(tid):
    """Does this thread run, while this one has the interpreter? Then it is in native code."""
    return content(f"/proc/self/task/{tid}/stat").rpartition(")")[2].split()[0] in "RD"


def in_native_code():
    """Is a thread of Python's, now and a moment later? (Those of libraries for numbers know of forks.) What it is in the middle of, and which locks it has, nobody can tell, and
    in a fork it stays so for ever. (One that has just asked for the interpreter runs too, but not for long.)"""
    main = main_thread()
    tids = [thread.native_id for thread in threads() if thread is not main and thread.native_id]
    for _ in range(LOOKS):
        tids = [tid for tid in tids if unless_broken(runs_apart, tid)]
        if not tids:
            return False
        sleep(A_MOMENT)
    return True


def is_lost(line, ours):
    """Of what could not be kept, as the extension has it; `ours` are descriptors that nobody will miss."""
    return line.startswith(("thread ", "process ", "lock ", "others ", "shared ")) or int(line.split(" ")[1]) not in ours


class Points:
    def __init__(self, kernel, keep):
        self.kernel = kernel
        self.keep = keep  # of the extension: True, False, or in the one that was woken what it lost, whether it
        # is a branch, which cell it comes after, a branch's seed, and whether its state is kept
        self.due = None  # the cell whose state nobody keeps yet
        self.kept = None  # the cell whose state is the present one, and somebody keeps it
        self.lost = []  # to be told with the next cell
        self.is_new = False  # a branch that has done nothing yet
        self.unsafe = None  # the first cell whose state could not be kept; then TOLD

    def note(self, n, source):
        """Cell n is about to run. Where it will change nothing, and somebody keeps the state: the cell after which
        that was kept. What waits is good for this one too, which the owner is told with its end."""
        if (self.due is None and self.kept is not None
                and leaves_no_trace(source, self.kernel.shell.user_ns)):
            same_as, self.kept = self.kept, n
            return same_as
        self.due, self.kept = n, None
        return STATE_IS_NEW

    def is_missing(self, n, flags):
        """Is the state, which is that after cell n, to be kept before another cell runs? Of one that is kept, the
        files may not be what they were: then it is kept once more, in place of it."""
        if flags & UNDOABLE and (self.kept != n or flags & NEW_FILES):
            self.due = n
        return self.due is not None

    def patience(self, milliseconds):
        """How long nobody may ask for anything before the last state is kept: nobody yet of a new branch."""
        return 0 if self.is_new else milliseconds

    def take(self):
        """True in the one that was woken."""
        due, self.due, self.is_new = self.due or 0, None, False
        if unless_broken(in_native_code):
            if self.unsafe is None:
                self.unsafe = due
            return False
        lost = lost_now()
        unless_broken(note_process)
        take_out, put_back = unless_broken(spare) or (NOTHING, NOTHING)
        # Else Python seeds `random` anew after a fork.
        state = unless_broken(getstate) if take_out is NOTHING else None
        try:
            take_out()
            for _ in range(TRIES):
                woken = self.keep(due, lost)
                if woken is not False:
                    break
        finally:
            put_back()
        if woken is not False:
            self.kept = due
        if woken is True or woken is False:
            return False
        self.go_on(*woken)
        if state is not None and not woken[3]:
            unless_broken(setstate, state)
        return True

    def go_on(self, lost, branch, due, seed, waits):
        """In the one that was woken."""
        self.how = "forked" if branch else "restored"
        self.kernel.begin_again()
        if seed:  # it is another session, with random numbers of its own: a branch, or what waited for one
            unless_broken(reseed_branch, seed)
        unless_broken(renew_openssl)
        if waits:
            self.kept = due
        else:
            self.due, self.kept, self.is_new = due, None, True
        ours = unless_broken(self.kernel.forget_loop) or ()
        self.lost = [line for line in lost.splitlines() if is_lost(line, ours)] if lost else []

    def take_first(self):
        """Of a session that has not begun. True: the live one shares its pages with one that waits."""
        return self.kernel.channel.rests(FIRST_REST) and not self.take()

    def has_news(self):
        return bool(self.lost) or self.unsafe not in (None, TOLD)

    def warning(self):
        """What is to be said once of a session that was restored, or is a branch, or is not kept."""
        if self.unsafe not in (None, TOLD):
            n, self.unsafe = self.unsafe, TOLD
            return f"retort: the state after cell {n} is not kept: a thread was in native code; nor are others then\n"
        lost, self.lost = self.lost, []
        return f"retort: lost when the session was {self.how}: {', '.join(lost)}\n" if lost else ""
