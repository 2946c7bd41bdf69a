"""!commands and %%script cells: children that write to the box's pipes themselves.

IPython copies their output through a pseudo-terminal or a thread. Here they inherit descriptors 1
and 2, so their text streams, and the order is the one in which they write. Each runs as a process
group of its own, because an interrupt reaches only the kernel process, which passes it on.
"""
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading

from IPython.core.magic import cell_magic, line_magic, magics_class
from IPython.core.magics.script import ScriptMagics
from IPython.utils.process import arg_split

from . import libraries

INTERRUPT_GRACE = 1.0


def run(command, use=subprocess.Popen.wait, **options):
    """Start a child and wait for it (or `use` it). An interrupt ends its whole group, and then the
    user's code. Returns the child and what `use` returned."""
    child = None
    try:
        with _Held() as held:  # within Popen it would leave a child that nobody knows
            child = subprocess.Popen(command, start_new_session=True, **options)
        if held.came:
            raise KeyboardInterrupt
        return child, use(child)
    except BaseException:
        if child is not None:
            _end(child)
        raise


class _Held:
    """SIGINT waits meanwhile. Blocking it would not do: the child would inherit that."""

    came = False

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self.handler = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame):
        self.came = True

    def __exit__(self, *_):
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.handler)


def _end(child):
    _signal_group(child, signal.SIGINT)
    try:
        child.wait(INTERRUPT_GRACE)
    except BaseException:
        _signal_group(child, signal.SIGKILL)
        child.wait()


def _signal_group(child, number):
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        pass


def exit_code(child):
    """As IPython has it in _exit_code: negative for a signal, also when the shell reports it."""
    code = child.returncode
    return 128 - code if code > 128 else code


def run_shell(command):
    child, _ = run(command, shell=True, executable=os.environ.get("SHELL"))
    return exit_code(child)


def read_shell(command):
    _, (output, _) = run(command, subprocess.Popen.communicate, shell=True,
                         executable=os.environ.get("SHELL"),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return output.decode("utf-8", "replace")


@magics_class
class Scripts(ScriptMagics):
    """%%bash, %%sh, %%script …, and %pip"""

    @line_magic
    def pip(self, line):
        """The environment's own pip. What it installs can be imported at once: see installs.py."""
        self.shell.system(f"{shlex.quote(sys.executable)} -m pip {line}")

    @cell_magic("script")
    def shebang(self, line, cell):
        options, command = self.shebang.parser.parse_known_args(arg_split(line))
        if options.out or options.err or options.bg or options.proc:
            return super().shebang(line, cell)
        with tempfile.TemporaryFile() as script:
            script.write(cell.encode("utf-8", "replace"))
            script.seek(0)
            self.shell.channel.mix()
            try:
                child, _ = run(command, stdin=script)
            except FileNotFoundError:
                print(f"Couldn't find program: {command[0]!r}")
                return None
        libraries.explain_pip(cell, child.returncode)
        if options.raise_error and child.returncode != 0:
            raise subprocess.CalledProcessError(child.returncode, command)
        return None

    shebang.parser = ScriptMagics.shebang.parser
