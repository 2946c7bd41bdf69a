"""sys.stdout and sys.stderr: text on the box's two pipes, written at once.

Nothing stays in a buffer of Python's: when the process is killed, what was printed is in the pipe.
"""
from .pristine import __builtins__

import io
import select
from fcntl import ioctl
from os import write as os_write
from termios import FIONREAD

from .channel import MIXED, NOTHING


class Pipe(io.RawIOBase):
    """The bytes of a stream. It is also the stream's `.buffer`, so write() takes all or raises."""

    def __init__(self, fd, other, name, channel):
        self.fd = fd
        self.other = other  # the descriptor of the other stream
        self.name = name
        self.mode = "wb"
        self.channel = channel

    def write(self, data):
        if self._other_unread():
            self.channel.last = MIXED
        if self.channel.last is not self:
            self.channel.turn_to(self)
        try:
            done = os_write(self.fd, data)
        except BlockingIOError:
            done = 0
        if done != len(data):
            return self._write_rest(data, done)
        return done

    def _other_unread(self):
        """A program, or os.write, has put something into the other pipe behind our back, and the
        owner has not read it: it comes first."""
        try:
            return ioctl(self.other, FIONREAD, NOTHING) != NOTHING
        except OSError:
            return False  # closed, or something else by now

    def _write_rest(self, data, done):
        """A signal cut the write short, or the user made the pipe non-blocking."""
        view = memoryview(data).cast("B")
        while done < view.nbytes:
            try:
                done += os_write(self.fd, view[done:])
            except BlockingIOError:
                waiting = select.poll()
                waiting.register(self.fd, select.POLLOUT)
                waiting.poll()
        return done

    def fileno(self):
        return self.fd

    def writable(self):
        return True

    def close(self):
        """Stay open: `sys.stdout = TextIOWrapper(sys.stdout.buffer)` closes this when it is
        dropped, and a session without output is of no use to anybody."""


def text_stream(pipe):
    # backslashreplace: print() must not fail on a lone surrogate.
    stream = io.TextIOWrapper(pipe, "utf-8", "backslashreplace", newline="", write_through=True)
    stream.mode = "w"
    return stream
