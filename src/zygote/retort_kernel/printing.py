"""print() with one write.

Python's own writes each value, each blank and the newline by themselves: harmless into a buffer,
but our streams have none, and lines of several processes and threads would mix. Only what goes to
our streams is done here; any other file is served by Python's own print.
"""
from .pristine import __builtins__

import builtins
import sys

_builtin_print = print


def install(streams):
    own = frozenset(map(id, streams))

    def print(*values, sep=" ", end="\n", file=None, flush=False):
        """Prints the values to a stream, or to sys.stdout by default.

        sep
          string inserted between values, default a space.
        end
          string appended after the last value, default a newline.
        file
          a file-like object (stream); defaults to the current sys.stdout.
        flush
          whether to forcibly flush the stream.
        """
        stream = sys.stdout if file is None else file
        if id(stream) not in own or type(sep) is not str or type(end) is not str:
            _builtin_print(*values, sep=sep, end=end, file=file, flush=flush)
        elif len(values) == 1:
            stream.write(str(values[0]) + end)
        else:
            stream.write(sep.join(map(str, values)) + end)

    print.__module__, print.__qualname__ = "builtins", "print"
    builtins.print = print
