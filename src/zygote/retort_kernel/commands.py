"""!commands and %%script cells: children that write to the box's pipes themselves.

IPython copies their output through a pseudo-terminal or a thread. Here they inherit descriptors 1
and 2, so their text streams, and the order is the one in which they write. Each runs as a process
group of its own, because an interrupt reaches only the kernel process, which passes it on.
"""
import os
import signal
import subprocess
import tempfile

from IPython.core.magic import cell_magic, magics_class
from IPython.core.magics.script import ScriptMagics
from IPython.utils.process import arg_split

INTERRUPT_GRACE = 1.0


def spawn(command, **options):
    return subprocess.Popen(command, start_new_session=True, **options)


def wait(child, collect=None):
    """Wait for a child; an interrupt goes to its whole group, and then on to the user's code."""
    try:
        return collect() if collect else child.wait()
    except BaseException:
        _signal_group(child, signal.SIGINT)
        try:
            child.wait(INTERRUPT_GRACE)
        except BaseException:
            _signal_group(child, signal.SIGKILL)
            child.wait()
        raise


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
    child = spawn(command, shell=True, executable=os.environ.get("SHELL"))
    wait(child)
    return exit_code(child)


def read_shell(command):
    child = spawn(command, shell=True, executable=os.environ.get("SHELL"),
                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with child:
        output, _ = wait(child, child.communicate)
    return output.decode("utf-8", "replace")


@magics_class
class Scripts(ScriptMagics):
    """%%bash, %%sh, %%script …"""

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
                child = spawn(command, stdin=script)
            except FileNotFoundError:
                print(f"Couldn't find program: {command[0]!r}")
                return None
            wait(child)
        if options.raise_error and child.returncode != 0:
            raise subprocess.CalledProcessError(child.returncode, command)
        return None

    shebang.parser = ScriptMagics.shebang.parser
