"""The channel to the session's owner: frames on two pipes, and the fences that keep streams in order.

An exception can come out of nearly every call made here: SIGINT raises KeyboardInterrupt, the
user's own signal handlers raise what they like (the usual way to write a time-out), and print() deep
in a recursion raises RecursionError. A frame that is half sent, or a PASS that is taken for another,
would be the end of the session. So nothing here relies on running to its end:

 1. What is under way is always in the object, never only in a local variable: a frame is in
    `outbox` with the sizes that went out until it has been sent whole, and whoever comes next
    continues it.
 2. CPython looks for signals only after calls, at loop ends and at function entry. Two assignments
    in one statement are therefore one step, and a system call and the note of its result are made
    one by doing both inside C: `sent.extend(map(send, …))`.
 3. A fence has a number. One that was given up is not waited for again, and its late PASS means
    nothing to the next.

Threads are kept apart by `lock`. A signal handler of the user that prints while this very thread is
in here finds `inside` taken: it leaves its frame in the outbox and does not wait.
"""
from .pristine import __builtins__

import errno
# Not from `threading`, whose RLock is a function of its own, and which the user may break.
from _thread import RLock
from _thread import allocate_lock as Lock
from fcntl import ioctl
from functools import partial
from select import POLLIN
from select import poll as new_poll
from os import _exit, close, fstat, getpid, read, register_at_fork, write
from stat import S_ISFIFO
from sys import maxsize
from termios import FIONREAD

from . import frames

READ_SIZE = 1 << 16
MIXED = object()  # stands in `last` for streams that others have written to
END = maxsize  # as a slice: append, without a call
NOTHING = bytes(4)  # no bytes, in FIONREAD's words


# What the system says of a channel that is of no use any more. Any other OSError out of a call on
# it was raised by a signal handler of the user's: TimeoutError is one.
DEAD = {errno.EBADF, errno.ENOTSOCK, errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EINVAL}


def _give_up_if_dead(error):
    if error.errno in DEAD:
        _exit(70)


class Channel:
    def __init__(self):
        self.lock = RLock()
        self.inside = Lock()
        self.fds = ()  # out, in
        self.orders = None  # to poll for what comes in
        self.pid = None  # the process that may speak; a forked child may not
        self.busy = False  # a cell runs: the owner answers fences and takes displays
        self.last = None  # who wrote last: a stream, the channel itself, or None
        self.outbox = []  # [memoryview of a frame, [sizes of the pieces sent]]
        self.held = []  # frames that can wait for DONE and leave with it
        self.inbox = []  # pieces received, not yet whole frames
        self.received = []  # (kind, body) of frames nobody has looked at
        self.fences = 0
        self.passed = 0
        register_at_fork(after_in_child=self.detach)

    def prepare(self, out, in_):
        """In the zygote: these will be the two pipes."""
        self.fds = (out, in_)
        self.send, self.recv = partial(write, out), partial(read, in_)
        self.orders = new_poll()
        self.orders.register(in_, POLLIN)

    def open(self, out, in_):
        """Speak on these two pipes, for the session that this process is."""
        if self.fds != (out, in_):
            self.prepare(out, in_)
        self.pid = getpid()

    def open_again(self):
        """In a process that has waited: on new pipes, and with nothing that was under way."""
        self.lock, self.inside = RLock(), Lock()  # a thread may have had them that is not here
        self.busy, self.last, self.outbox, self.held, self.inbox, self.received = False, None, [], [], [], []
        self.fences = self.passed = 0
        self.pid = getpid()

    def connect(self, send, recv):
        self.fds = ()
        self.send, self.recv = send, recv
        self.pid = getpid()

    def begin(self):
        """A cell begins: the owner has read all that was written before."""
        self.last = None
        self.busy = True

    def end(self):
        """From here on the owner takes nothing but DONE. Waits for a thread's fence."""
        with self.lock:
            self.busy = False

    def detach(self):
        """In a forked child: it must not speak for the session, nor keep its channel open."""
        if self.pid is not None:
            self.pid = None
            for fd in self.fds:
                try:
                    close(fd)
                except OSError:
                    pass

    def is_mine(self):
        """False in every child, also in one that was forked behind Python's back."""
        return self.pid is not None and self.pid == getpid()

    # ---- order ----

    def turn_to(self, stream):
        """Before a stream writes that did not write last."""
        if self.last is not None and self.busy:
            self.fence()
        self.last = stream

    def mix(self):
        """Before a child process that writes to both pipes by itself."""
        self.turn_to(MIXED)

    def fence(self):
        """Wait until the owner has read all that was written so far."""
        with self.lock:
            # Looked at with the lock: the main thread may have ended the cell meanwhile.
            if not self.busy or not self.is_mine() or self.inside.locked():
                return
            with self.inside:
                self.fences = number = (self.fences + 1) & 0xFFFFFFFF
                self._release()
                self.outbox.append([memoryview(frames.fence(number)), []])
                self._push()
                while self.passed != number:
                    self._fill()
                    self._take_passes()

    # ---- out ----

    def show(self, frame, hold=False):
        """Send a display; with `hold` it may leave together with DONE. False: nobody takes it, as
        no cell runs any more or this is a child of the session's process."""
        if not self.is_mine():
            return False
        with self.lock:
            if not self.busy:
                return False
            if self.last is not None and self.last is not self:
                self.fence()
            self.last = self
            if hold:
                self.held.append(frame)
            else:
                self.post([memoryview(frame), []])
        return True

    def post(self, entry):
        """Send a frame ([memoryview, []]). Whatever interrupts this, posting the same entry again
        finishes the job and never sends it twice."""
        frame, sent = entry
        with self.lock:
            if sum(sent) < len(frame) and not self._is_posted(entry):
                self._release()
                self.outbox.append(entry)
            if not self.inside.locked():
                with self.inside:
                    self._push()

    def _is_posted(self, entry):
        for other in self.outbox:
            if other is entry:
                return True
        return False

    def _release(self):
        if self.held:
            joined = [memoryview(b"".join(self.held)), []]
            self.outbox[END:], self.held = [joined], []

    def _push(self):
        outbox = self.outbox
        try:
            while outbox:
                frame, sent = outbox[0]
                left = frame[sum(sent):]
                if left:
                    sent.extend(map(self.send, (left,)))
                else:
                    del outbox[0]
        except OSError as error:
            _give_up_if_dead(error)
            raise

    # ---- in ----

    def _fill(self):
        """Have more frames in `received`, or at least more of the next one."""
        if self._sort():  # left by someone who was interrupted
            return
        try:
            self.inbox.extend(map(self.recv, (READ_SIZE,)))
        except OSError as error:
            _give_up_if_dead(error)
            raise
        if not self.inbox[-1]:
            _exit(0 if self._is_pipe() else 70)
        self._sort()

    def _is_pipe(self):
        """At its end: did the owner close it, or has the user put something else in its place?"""
        try:
            return S_ISFIFO(fstat(self.fds[1]).st_mode)
        except (IndexError, OSError):
            return False

    def _sort(self):
        """Move what is whole from the inbox to `received`. True if there was any."""
        inbox = self.inbox
        have = sum(map(len, inbox))
        if have < 8:
            return False
        if len(inbox[0]) >= 8:
            size, _ = frames.HEADER.unpack_from(inbox[0])
            if have < 8 + size and size <= frames.PAYLOAD_MAX:
                return False  # a long frame is joined once, when it is whole
        data = b"".join(inbox)
        at, found = 0, []
        while len(data) - at >= 8:
            size, kind = frames.HEADER.unpack_from(data, at)
            if size > frames.PAYLOAD_MAX:
                _exit(70)
            end = at + 8 + size
            if len(data) < end:
                break
            found.append((kind, data[at + 8:end]))
            at = end
        rest = [data[at:]] if at < len(data) else []
        self.inbox, self.received = rest, self.received + found
        return bool(found)

    def _take_passes(self):
        kept = []
        for kind, body in self.received:
            if kind == frames.PASS:
                self.passed = frames.read_pass(body)
            else:
                kept.append((kind, body))
        self.received = kept

    def wait(self):
        """Until there is a frame that is not a late PASS: received[0]. A child that has come here, by a handler of forks, may
        not take it from the session."""
        if not self.is_mine():
            _exit(70)
        self._take_passes()
        while not self.received:
            self._fill()
            self._take_passes()

    def rests(self, milliseconds):
        """Does the owner send nothing for so long?"""
        if self.inbox or self.received:
            return False
        return not self.orders.poll(milliseconds)

    def is_addressed(self):
        """Has the owner sent something that has not been taken out yet?"""
        if self.inbox or self.received:
            return True
        try:
            return ioctl(self.fds[1], FIONREAD, NOTHING) != NOTHING
        except (IndexError, OSError):
            return False
