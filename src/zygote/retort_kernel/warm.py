"""The entries: warm() once in the zygote, renew() and serve() in every fork of it.

Memory is shared with the zygote until someone writes to it, so what can be written before the fork
is: modules are imported, the shell exists, and cells of every kind have run, which leaves the
interpreter's inline caches filled and its free lists long. Nothing of it is visible to the user.
"""
import gc
import importlib
import io
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
import warnings

import IPython
from traitlets.config import Config

from . import blas, figures, forks, heap, installs, keyboard, printing, reseed, tracebacks
from .channel import Channel
from .forks import NOTHING
from .frames import HEADER, PASS, RUN, VARIABLES, frame
from .kernel import Kernel
from .points import Points
from .site import sitecustomize
from .shell import Shell
from .streams import Pipe, text_stream

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STDOUT, STDERR = 1, 2
OOM_SCORE = 200  # when memory is short, a session goes before what is like it on the host
ROUNDS = 24  # of the short warm-up cells: enough for CPython to specialise its bytecode

SHORT = (
    "1+1",
    "x = 1",
    "print('x')",
    "import sys; print('y', file=sys.stderr); print('z'); x",
    "def f(a):\n    return [a]\nf(2)",
    "{'a': [1, 2.5, 'b']}",
)
LONG = {
    None: ("1/0", "x =", "int('x')", "await __import__('asyncio').sleep(0)", "raise SystemExit",
           "import json\njson.loads('{')", "%time 1", "display(1)"),
    "numpy": ("import numpy as np; np.arange(6).reshape(2, 3) @ np.ones((3, 2))",
              "import numpy as np; np.linalg.inv(np.eye(4) * 2)"),
    "pandas": ("import pandas as pd, io\n"
               "d = pd.read_csv(io.StringIO('k,v\\na,1\\nb,2\\na,3'))\n"
               "display(d, d.describe())\n"
               "d.groupby('k').sum()",
               "import pandas as pd; pd.DataFrame({'a': [1]})['b']"),
    "matplotlib": ("import matplotlib.pyplot as plt\n"
                   "plt.plot([1, 2, 3], label='a'); plt.title('t'); plt.legend()\n"
                   "plt.show()",
                   "import matplotlib.pyplot as plt\n"
                   "fig, ax = plt.subplots(); ax.bar(['a', 'b'], [1, 2])"),
}

FIRST = ("1+1",)  # the first cell copies hundreds of pages from the zygote

_kernel = None
_memory = 0  # the limit that the environment tells of


def warm(preload, channel=None, keep=None, few=False):
    """Import and prepare everything; returns what there is, as text. `channel` is what serve() will
    be called with, where that is known; `keep` is the extension's. For a few boxes only what
    must be: they take longer to their first result, but the first of them is there sooner."""
    global _kernel, _memory
    blas.limit_environment(1)
    _memory = int(os.environ.get(sitecustomize.LIMIT, 0))
    installs.prepare()
    # For what sessions start, beside what pip needs there.
    paths = [os.path.dirname(sitecustomize.__file__), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # First what every cell needs, then what only some do: see heap.
    _kernel = _make_kernel()
    printing.install(_kernel.streams.values())
    if not few:
        _warm_up(_kernel, SHORT * ROUNDS + LONG[None] * 2)
    versions = _import_all(preload)
    keyboard.remove()
    if not few:
        for module, cells in LONG.items():
            if module in sys.modules:
                _warm_up(_kernel, cells * 2)
        gc.collect()
        heap.fill()
        sys._clear_type_cache()  # else what cells look up takes the places of what imports did, and copies both
        _warm_up(_kernel, SHORT)
    blas.prepare()
    reseed.prepare()
    forks.prepare(_kernel.channel.detach)
    for _ in range(1 if few else ROUNDS):
        renew()
    _check_threads("the warm-up")
    figures.prepare()
    _dress(_kernel)
    if not few:
        _practise(_kernel)
    if channel:
        _kernel.channel.prepare(*channel)
    if keep:
        _kernel.points = Points(_kernel, keep)
    forks.set_aside()
    gc.collect()
    heap.fill()
    gc.freeze()
    gc.enable()  # for the forks: here nothing more is made
    _raise_oom_score()
    # A session may be interrupted before it can take it: see Kernel.listen.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    return versions


def _import_all(preload):
    versions = [f"python {platform.python_version()}", f"ipython {IPython.__version__}"]
    for name in preload:
        try:
            importlib.import_module(name)
        except ImportError as error:
            versions.append(f"{name} missing ({error})")
            continue
        _check_threads(f"importing {name}")
        package = name.partition(".")[0]
        version = getattr(sys.modules[package], "__version__", None)
        if isinstance(version, str):
            versions.append(f"{package} {version}")
    return ", ".join(versions)


def _check_threads(what):
    """A fork copies one thread: what the others held stays held for ever in every session."""
    count = len(os.listdir("/proc/self/task"))
    if count > 1:
        names = ", ".join(thread.name for thread in threading.enumerate()[1:])
        raise RuntimeError(f"{what} started {count - 1} thread(s) ({names or 'outside Python'}): "
                           "such a module cannot be imported before the fork")


def _make_kernel():
    tracebacks.hide(os.path.dirname(os.path.abspath(__file__)))
    tracebacks.hide(os.path.dirname(IPython.__file__))
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "NoColor"
    channel = Channel()
    # IPython makes its directory when it starts, and for us it holds nothing.
    directory = tempfile.mkdtemp()
    try:
        shell = Shell.instance(channel=channel, config=config, ipython_dir=directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    streams = {"stdout": text_stream(Pipe(STDOUT, STDERR, "<stdout>", channel)),
               "stderr": text_stream(Pipe(STDERR, STDOUT, "<stderr>", channel))}
    return Kernel(channel, shell, streams)


# ---- warming up ----

def _warm_up(kernel, cells):
    """Run cells, and put back what they have changed."""
    state = {name: getattr(sys, name) for name in ("stdout", "stderr", "displayhook")}
    handler = signal.getsignal(signal.SIGINT)
    with warnings.catch_warnings():
        _rehearse(kernel, cells, ROUNDS)
    signal.signal(signal.SIGINT, handler)
    for name, value in state.items():
        setattr(sys, name, value)
    for name in ("last_type", "last_value", "last_traceback"):
        sys.__dict__.pop(name, None)


def _rehearse(kernel, cells, listings=0):
    """Run cells as a session would, with an owner made of functions and output to nowhere, ask for
    the variables so many times, and leave no trace of it."""
    channel, streams = kernel.channel, kernel.streams
    points, kernel.points = kernel.points, Points(kernel, None)
    names = dict(kernel.shell.user_ns)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for name, stream in streams.items():
        stream.buffer.fd = nowhere
        setattr(sys, name, stream)
    channel.connect(len, lambda size: frame(PASS, channel.fences.to_bytes(4, "little")))
    orders = [(RUN, HEADER.pack(n, len(code)) + code.encode()) for n, code in enumerate(cells, 1)]
    for order in orders + [(VARIABLES, b"")] * listings:
        channel.received = [order]
        kernel.turn()
        kernel.points.due = None  # nothing of it is kept
    kernel.points = points
    channel.pid = None
    os.close(nowhere)
    for fd, stream in zip((STDOUT, STDERR), streams.values()):
        stream.buffer.fd = fd
    kernel.shell.forget(names, len(cells))


def _practise(kernel):
    """What comes before a session's first cell, or a branch's, as often as CPython takes to specialise it."""
    handler, names = signal.getsignal(signal.SIGINT), dict(kernel.shell.user_ns)
    (answers, out), (in_, orders) = os.pipe(), os.pipe()
    for _ in range(ROUNDS):
        Points(kernel, None).go_on("", True, 1, os.urandom(reseed.BRANCH_SEED), True)
    for _ in range(ROUNDS):
        kernel.points = Points(kernel, None)
        _order_first(orders)
        _begin(kernel, (out, in_))
        kernel.turn()
        os.read(answers, 4096)
    kernel.points, kernel.signals = None, ()
    kernel.channel.connect(None, None)
    kernel.channel.pid = None
    signal.signal(signal.SIGINT, handler)
    for fd in (answers, out, in_, orders):
        os.close(fd)
    kernel.shell.forget(names, len(FIRST))


def _order_first(fd):
    (code,) = FIRST
    os.write(fd, frame(RUN, HEADER.pack(1, len(code)) + code.encode()))


def _dress(kernel):
    """The interpreter as a session is to find it. The descriptors are the same there and here."""
    sys.path[:] = [""] + [path for path in sys.path if path not in ("", HOME)]
    sys.argv = [""]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "replace")
    for name, stream in kernel.streams.items():
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _raise_oom_score():
    """For all forks. The zygote itself can be replaced."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(OOM_SCORE))
    except OSError:
        pass  # it is higher already


# ---- a session ----

def renew():
    """What no two sessions may share. It starts no threads: the process may have still to enter its
    box."""
    forks.stand_in()
    reseed.reseed()


def rehearse():
    """What a session does, up to the end of its first cell, for who wants to see which memory that takes. The
    process ends afterwards."""
    kernel = _kernel
    renew()
    for fd, end in zip(kernel.channel.fds, (1, 0)):
        pipe = os.pipe()
        os.dup2(pipe[end], fd)
    _order_first(pipe[1])
    _begin(kernel, kernel.channel.fds)
    kernel.turn()


def rehearse_more():
    """The same of a session that works with the libraries that are here."""
    renew()
    _rehearse(_kernel, [cells[0] for module, cells in LONG.items() if module in sys.modules])


def serve(channel, cpus, ready=NOTHING, rehearse=True, memory=0):
    """The rest of a forked process's life: cells from the channel (two descriptors, out and in),
    once `ready` has been called. No limit is 0. Never returns."""
    kernel = _kernel
    if cpus != 1:  # as in the zygote
        blas.use(cpus)
    if memory != _memory:
        os.environ[sitecustomize.LIMIT] = str(memory)
    # A box that waits for its first cell has the time for that now.
    if rehearse:
        _rehearse(kernel, FIRST)
    _begin(kernel, channel, ready)
    kernel.loop()


def _begin(kernel, channel, ready=NOTHING):
    """Up to the first cell."""
    kernel.channel.open(*channel)
    if kernel.points is not None:
        ready()
        # Copied once more, from the one that waits then.
        if kernel.points.take_first():
            _rehearse(kernel, FIRST)
            kernel.channel.open(*channel)
        kernel.listen()  # an interrupt that comes with the first cell is none of the rehearsal's
    else:
        kernel.listen()
        ready()
