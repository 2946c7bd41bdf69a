"""Rivals that are commands: a sandbox around a new interpreter, timed to its first output."""

import os
import subprocess
import time

PROGRAM = "import pandas, numpy, matplotlib.pyplot; print(1+1)"
PYTHON = ["/usr/bin/python3", "-c", PROGRAM]
TIMEOUT_S = 60


def bubblewrap(fonts):
    """The system read-only, everything else new and empty; fonts is matplotlib's warm cache."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        command += ["--symlink", f"usr/{name}", f"/{name}"]
    for path in ("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/matplotlibrc"):
        command += ["--ro-bind-try", path, path]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    command += ["--bind", fonts, "/fonts", "--setenv", "MPLCONFIGDIR", "/fonts"]
    return command + PYTHON


def gvisor(fonts):
    """ptrace is the only platform of Debian's runsc that needs no virtualisation."""
    return ["runsc", "--network=none", "--ignore-cgroups", "--platform=ptrace", "do"] + PYTHON


def first_output_ns(command, env):
    """Nanoseconds from before the start until the result is in the pipe."""
    begun = time.monotonic_ns()
    p = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    answer = os.read(p.stdout.fileno(), 16)
    ns = time.monotonic_ns() - begun
    _, errors = p.communicate(timeout=TIMEOUT_S)
    if answer.strip() != b"2" or p.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines() or ["no output"]
        raise RuntimeError(f"exit status {p.returncode}: {lines[-1]}")
    return ns


class Command:
    """Once it has failed it is not tried again, and `reason` says why."""

    def __init__(self, command, env):
        self.command, self.env = command, env
        self.ns, self.reason = [], None

    def sample(self, n):
        for _ in range(n):
            if self.reason is not None:
                return
            try:
                self.ns.append(first_output_ns(self.command, self.env))
            except FileNotFoundError:
                self.reason = f"{self.command[0]} is not installed"
            except (RuntimeError, subprocess.SubprocessError) as e:
                self.reason = f"{self.command[0]} cannot run here: {e}"
