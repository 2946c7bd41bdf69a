"""The loop: takes a frame, runs the cell, answers. It must outlive whatever the user's code does.

Between two cells, and in the middle of an answer, a signal handler of the user's may still raise
(an alarm set by a cell that is over). So the loop is written as steps that can be taken again: `job`
is the frame being worked on, `outcome` what has come of it, and an exception that escapes from a
step only leads back to it.

    wait ──job──▶ run ──outcome──▶ answer ──▶ wait

SIGINT means KeyboardInterrupt while a cell runs. At other times it is noted if the owner has sent a
cell by then (it meant that one), and else forgotten (it came too late for the last one).
"""
from .pristine import __builtins__

import sys
# Not from `signal`: its functions are Python around these, slower, and break with the builtins.
from _signal import SIG_UNBLOCK, SIGINT, default_int_handler, pthread_sigmask
from _signal import signal as set_handler
from os import _exit
from sys import getrecursionlimit, gettrace, setprofile, setrecursionlimit, settrace
from time import monotonic

from . import figures, frames, libraries, tracebacks, variables

RECURSION_MIN = 1000
PATIENCE = 0.5  # seconds that forking may take when somebody waits
REST = 10  # milliseconds without an order: nobody waits, and the session is not at its end


class Outcome:
    """How a cell ended; `entry` is the answer as it goes to the channel."""

    def __init__(self, n, same_as=frames.STATE_IS_NEW):
        self.n = n
        self.same_as = same_as  # the cell after which the state was what it is now
        self.status = None
        self.code = 0
        self.error = None  # name, value, traceback
        self.entry = None

    def fail(self, error):
        """Called while interrupts still work: asking an exception for its text runs user code."""
        interrupted = isinstance(error, KeyboardInterrupt)
        self.status = frames.INTERRUPTED if interrupted else frames.FAILED
        self.error = tracebacks.name_of(error), "", ""
        value, traceback, hint = tracebacks.value_of(error), tracebacks.render(error), libraries.hint(error)
        if hint:
            value, traceback = f"{value}\n{hint}", f"{traceback}{hint}\n"
        self.error = tracebacks.name_of(error), value, traceback

    def leave(self, error):
        """sys.exit(…): a number, nothing, or a message."""
        code = error.code
        if code is None or isinstance(code, int):
            self.code = int(code or 0) & 0xFF
        else:
            self.code = 1
            sys.stderr.write(tracebacks.value_of(error) + "\n")
        self.status = frames.EXIT

    def is_sent(self):
        return self.entry is not None and sum(self.entry[1]) == len(self.entry[0])

    def seal(self, channel):
        if self.status is None:
            self.status = frames.FAILED
        parts = [frames.done(self.n, self.status, self.code, self.same_as)]
        if self.error is not None:
            texts = (text.encode("utf-8", "backslashreplace") for text in self.error)
            parts.insert(0, frames.error(*texts))
        self.entry, channel.held = [memoryview(b"".join(channel.held + parts)), []], []


class Kernel:
    def __init__(self, channel, shell, streams):
        self.channel = channel
        self.shell = shell
        self.execute = shell.execute  # the user may replace the attribute
        self.check_complete = shell.check_complete
        self.forget_loop = shell.forget_loop
        self.streams = streams
        self.job = None
        self.outcome = None
        self.closing = False
        self.interrupted = False
        self.points = None  # where forks of this process can be kept
        self.signals = ()  # to be unblocked in cells: SIGINT, once there is an owner

    def loop(self):
        """Two deep, because stray() may be struck as well."""
        while True:
            try:
                while True:
                    try:
                        self.turn()
                    except BaseException as error:
                        self.stray(error)
            except BaseException:
                pass

    def stray(self, error):
        """An exception from the user's side came up in the loop itself."""
        try:
            if self.points is not None:
                self.points.due = None  # or it would come up again, and for ever
            self.repair()
            outcome = self.outcome
            if outcome is not None and outcome.status is None:
                outcome.fail(error)
        except BaseException:
            pass  # the next turn goes on with what there is

    def turn(self):
        """One frame, or what is left to do of one."""
        channel = self.channel
        points = self.points
        if self.job is None:
            if points is not None and points.due is not None and channel.rests(points.patience(REST)) and self.keep():
                return
            channel.wait()
            self.job, channel.received = channel.received[0], channel.received[1:]
        kind, body = self.job
        flags = frames.read_flags(body) if kind == frames.RUN and points is not None else 0
        if flags & frames.KEEP_NOTHING:
            points = self.points = None
        elif flags & frames.AT_ONCE:
            points.due = None
        if kind != frames.CHECK and self.outcome is None:
            # What comes now runs code of the user's, and the last cell must not be lost with it.
            if points is not None and points.due is not None and self.keep():
                return
            points = self.points
        if kind == frames.RUN:
            if self.outcome is None:
                n, code = frames.read_run(body)
                if points is not None and points.is_missing(n - 1, flags) and self.keep():
                    return
                points = self.points
                code = code.decode("utf-8", "replace")
                same_as = frames.STATE_IS_NEW if points is None else points.note(n, code)
                self.shell.pictures = frames.read_pictures(body)
                self.outcome = Outcome(n, same_as)
                self.run(self.outcome, code)
            self.answer(self.outcome)
        elif kind == frames.VARIABLES:
            if self.outcome is None:
                self.outcome = Outcome(0)
                self.run(self.outcome, None)
            self.answer(self.outcome)
        elif kind == frames.CHECK:
            self.check(frames.read_check(body).decode("utf-8", "replace"))
            self.interrupted = False
        self.job = self.outcome = None
        self.closing = False

    def keep(self):
        """Have a fork wait, with what has come of the last cell. True in the fork, once it was woken. This may
        run code of the user's (os.register_at_fork), which an interrupt breaks off: once, then nothing is
        kept any more, or every cell would wait for it."""
        began = monotonic()
        try:
            set_handler(SIGINT, self.break_off)
            return self.points.take()
        finally:
            set_handler(SIGINT, self.note_interrupt)
            if self.interrupted and monotonic() - began > PATIENCE:
                self.points = None

    def begin_again(self):
        """In a process that has waited, and is the session's from now on."""
        self.job = self.outcome = None
        self.closing = self.interrupted = False
        self.channel.open_again()

    # ---- a cell ----

    def run(self, outcome, source):
        """The part that an interrupt may break off anywhere. No source: it is the variables that are
        asked for. That may run code of the user's (a __repr__), but it is no cell and leaves no trace
        of one."""
        self.channel.begin()
        pthread_sigmask(SIG_UNBLOCK, self.signals)
        set_handler(SIGINT, default_int_handler)
        try:
            try:
                if self.interrupted:
                    self.interrupted = False
                    raise KeyboardInterrupt
                if self.points is not None and source is not None and self.points.has_news():
                    sys.stderr.write(self.points.warning())
                if source is None:
                    self.show_variables()
                else:
                    self.execute(outcome.n, source)
                outcome.status = frames.OK
            except SystemExit as error:
                outcome.leave(error)
            except BaseException as error:
                if source is not None:
                    sys.last_type, sys.last_value = type(error), error
                    sys.last_traceback = error.__traceback__
                outcome.fail(error)
            if not self.channel.is_mine():
                self.leave_child(outcome)
            self.flush()
            if source is not None:
                figures.show_open(self.shell)
        except BaseException as error:
            if outcome.status in (None, frames.OK):
                outcome.fail(error)
        self.closing = True

    def show_variables(self):
        shell = self.shell
        array = variables.as_json(shell.user_ns, shell.user_ns_hidden)
        frame = frames.display(frames.SHOWN, b"", [(variables.MIME, array)])
        self.channel.show(frame, hold=True)

    def flush(self):
        """Of the streams that the user has put in place of ours; dead ones are replaced."""
        for name, own in self.streams.items():
            stream = getattr(sys, name, None)
            if stream is not own:
                try:
                    stream.flush()
                except Exception:
                    setattr(sys, name, own)

    def leave_child(self, outcome):
        """A child that the cell forked has come to the end of the cell; it is not the session."""
        try:
            self.flush()
            if outcome.error is not None:
                sys.stderr.write(outcome.error[2])
                outcome.code = 1
        finally:
            _exit(outcome.code)

    def answer(self, outcome):
        set_handler(SIGINT, self.note_interrupt)
        if not self.channel.is_mine():
            _exit(1)
        self.repair()
        self.channel.end()
        if outcome.entry is None:
            outcome.seal(self.channel)
        self.channel.post(outcome.entry)

    def repair(self):
        """Undo what would hurt the loop: no room to call functions, a tracer that raises."""
        if getrecursionlimit() < RECURSION_MIN:
            setrecursionlimit(RECURSION_MIN)
        if gettrace() is not None:
            settrace(None)
        setprofile(None)

    def check(self, source):
        if self.outcome is None:
            try:
                state, indent = self.check_complete(source)
            except Exception:
                state, indent = "complete", ""  # running it will tell
            reply = frames.checked(state, indent.encode())
            self.outcome = [memoryview(reply), []]
        self.channel.post(self.outcome)

    # ---- interrupts ----

    def listen(self):
        """The zygote blocks SIGINT. One that has come meanwhile is delivered now."""
        self.signals = (SIGINT,)
        set_handler(SIGINT, self.note_interrupt)
        pthread_sigmask(SIG_UNBLOCK, self.signals)

    def note_interrupt(self, number, frame):
        """SIGINT while no cell runs. It means the next cell if that has been sent."""
        if self.job is None or (self.closing and self.outcome.is_sent()):
            self.interrupted = self.channel.is_addressed()
        elif not self.closing:
            self.interrupted = True

    def break_off(self, number, frame):
        self.note_interrupt(number, frame)
        if self.interrupted:
            raise KeyboardInterrupt
