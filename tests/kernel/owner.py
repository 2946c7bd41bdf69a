"""A session without a box: a fork of this warm process, and the owner's side of its channel.

The owner is as simple as one can be: it reads the pipes and the channel as they become readable, and
answers a fence when both pipes are empty. Text is decoded at the end.
"""
import fcntl
import importlib.util
import itertools
import os
import select
import shutil
import signal
import struct
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "src", "zygote"))

import retort_kernel  # noqa: E402

PATIENCE = 120.0  # seconds: more than anything here takes on a slow machine
RUN, PASS, CHECK, VARIABLES = 1, 2, 3, 4
FENCE, DISPLAY, ERROR, DONE, CHECKED = 16, 17, 18, 19, 20
STATUS = {0: "ok", 1: "error", 2: "interrupted", 3: "exit"}
KIND = {0: "display", 1: "result"}


# A dict of numbers from everything that makes random ones.
RANDOMNESS = """
import random, ssl, os, uuid, tempfile, sqlite3, secrets, multiprocessing
import numpy as np
db = sqlite3.connect(':memory:')
{"pid": os.getpid(), "random": random.random(), "gauss": random.gauss(0, 1), "numpy": float(np.random.rand()), "normal": float(np.random.randn()),
 "default_rng": float(np.random.default_rng().random()), "ssl": ssl.RAND_bytes(16).hex(),
 "ssl2": ssl.RAND_bytes(16).hex(), "uuid4": str(uuid.uuid4()), "uuid1": str(uuid.uuid1()),
 "tempfile": os.path.basename(tempfile.mktemp()), "sqlite": db.execute("select random()").fetchone()[0],
 "secrets": secrets.token_hex(), "authkey": bytes(multiprocessing.current_process().authkey).hex(),
 "shuffle": str(np.random.permutation(50))}
"""
NODE = 12345
_numbers = itertools.count()


def use_randomness():
    """Before warm(), as a preloaded module may do: then there is a state to be inherited."""
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    if importlib.util.find_spec("numpy") is not None:
        exec(RANDOMNESS, {})
    import uuid
    uuid._node = NODE


def needs(*modules):
    """Skip a test where the environment lacks these; on the one that we ship none is skipped."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"this Python has no {', '.join(missing)}")


class Dead(Exception):
    """The kernel process is gone; args[0] is its wait status."""


class Fields:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def u8(self):
        self.at += 1
        return self.data[self.at - 1]

    def u32(self):
        self.at += 4
        return struct.unpack_from("<I", self.data, self.at - 4)[0]

    def bytes(self):
        size = self.u32()
        self.at += size
        assert self.at <= len(self.data), "a field goes over the frame's end"
        return self.data[self.at - size:self.at]

    def end(self):
        assert self.at == len(self.data), "bytes are left over in a frame"


class Cell:
    """What came out of one cell."""

    def __init__(self):
        self.outputs = []  # ("stdout"|"stderr", bytes) or ("display"|"result", {mime: bytes}, metadata)
        self.error = None
        self.status = None
        self.code = None
        self.fences = 0

    def add_text(self, name, data):
        if self.outputs and self.outputs[-1][0] == name:
            self.outputs[-1] = (name, self.outputs[-1][1] + data)
        else:
            self.outputs.append((name, data))

    def _text(self, name):
        return b"".join(o[1] for o in self.outputs if o[0] == name).decode()

    @property
    def stdout(self):
        return self._text("stdout")

    @property
    def stderr(self):
        return self._text("stderr")

    @property
    def displays(self):
        return [o[1] for o in self.outputs if o[0] == "display"]

    @property
    def result(self):
        results = [o[1] for o in self.outputs if o[0] == "result"]
        return results[0] if results else None

    @property
    def plain(self):
        return self.result["text/plain"].decode() if self.result else None

    @property
    def kinds(self):
        return [o[0] for o in self.outputs]

    @property
    def traceback(self):
        return self.error[2] if self.error else ""


class Session:
    def __init__(self, cpus=1.0, prepare=None):
        # Not by tempfile: its state here is what the sessions must not share.
        self.directory = f"/tmp/retort-kernel-{os.getpid()}-{next(_numbers)}"
        os.mkdir(self.directory)
        channel, channel_end = os.pipe()
        orders_end, orders = os.pipe()
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as the zygote has it
        self.pid = os.fork()
        if self.pid == 0:
            try:
                null = os.open(os.devnull, os.O_RDONLY)
                os.dup2(null, 0)
                os.dup2(out_end, 1)
                os.dup2(err_end, 2)
                fds = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100) for end in (channel_end, orders_end)]
                os.closerange(3, min(fds))
                os.closerange(max(fds) + 1, 4096)
                os.chdir(self.directory)
                sys.path.remove(os.path.join(ROOT, "tests", "kernel"))  # unittest's doing
                if prepare:
                    prepare()
                retort_kernel.renew()
                retort_kernel.serve(fds, cpus)
            finally:
                os._exit(99)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for end in (channel_end, orders_end, out_end, err_end):
            os.close(end)
        for fd in (channel, out, err):
            os.set_blocking(fd, False)
        self.channel, self.orders, self.out, self.err = channel, orders, out, err
        self.pipes = {out: "stdout", err: "stderr"}
        self.poll = select.poll()
        for fd in (channel, out, err):
            self.poll.register(fd, select.POLLIN)
        self.received = bytearray()
        self.n = 0
        self.awaited = 0  # the number that DONE is to bear
        self.stray = Cell()  # text that came between cells
        self.gone = False
        self.slow = False  # see pump()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self, patience=5):
        if self.gone:
            return None
        self.gone = True
        self.close_ends()
        deadline = time.monotonic() + patience
        status = None
        while status is None and time.monotonic() < deadline:
            pid, wait_status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                status = wait_status
            else:
                time.sleep(0.001)
        if status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        shutil.rmtree(self.directory, ignore_errors=True)
        return status

    def close_ends(self):
        for fd in (self.channel, self.orders, self.out, self.err):
            os.close(fd)

    def interrupt(self):
        os.kill(self.pid, signal.SIGINT)

    def send(self, kind, body):
        data = struct.pack("<II", len(body), kind) + body
        while data:
            data = data[os.write(self.orders, data):]

    def drain(self, cell):
        for fd, name in self.pipes.items():
            while True:
                try:
                    data = os.read(fd, 1 << 16)
                except BlockingIOError:
                    break
                if not data:
                    break
                cell.add_text(name, data)

    def start(self, code, pictures=0):
        self.n += 1
        self.awaited = self.n
        self.cell = Cell()
        code = code.encode("utf-8", "surrogatepass")
        self.send(RUN, struct.pack("<II", self.n, len(code)) + code + struct.pack("<BI", 0, pictures))

    def run(self, code, timeout=PATIENCE, tick=None, pictures=0):
        """Run a cell to its end. `tick` is called with the cell after every event."""
        self.start(code, pictures)
        return self.finish(timeout, tick)

    def ask_variables(self):
        self.awaited = 0
        self.cell = Cell()
        self.send(VARIABLES, b"")

    def finish(self, timeout=PATIENCE, tick=None):
        deadline = time.monotonic() + timeout
        while self.cell.status is None:
            self.step(deadline)
            if tick:
                tick(self.cell)
        return self.cell

    def step(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no answer; outputs so far: {self.cell.outputs[-5:]}")
        self.pump(left)

    def pump(self, seconds):
        """Take what comes, once, within this time. A slow owner lets much come together, and looks
        at it in the worst order: order that holds by luck is lost."""
        events = self.poll.poll(max(0, seconds) * 1000)
        if self.slow and events:
            time.sleep(0.002)
            events = sorted(self.poll.poll(0), key=lambda e: (e[0] == self.channel, -e[0]))
        for fd, _ in events:
            if fd == self.channel:
                self.take_frames()
            else:
                try:
                    data = os.read(fd, 1 << 16)
                except BlockingIOError:
                    continue
                if data:
                    self.cell.add_text(self.pipes[fd], data)
                else:
                    self.poll.unregister(fd)

    def take_frames(self):
        try:
            data = os.read(self.channel, 1 << 20)
        except BlockingIOError:
            return
        if not data:
            self.gone = True
            _, status = os.waitpid(self.pid, 0)
            self.drain(self.cell)
            self.close_ends()
            shutil.rmtree(self.directory, ignore_errors=True)
            raise Dead(status)
        self.received += data
        while len(self.received) >= 8:
            size, kind = struct.unpack_from("<II", self.received)
            assert size <= 32 << 20, f"a frame of {size} bytes"
            if len(self.received) < 8 + size:
                break
            body = bytes(self.received[8:8 + size])
            del self.received[:8 + size]
            self.take(kind, Fields(body))

    def take(self, kind, fields):
        cell = self.cell
        assert cell.status is None or kind == CHECKED, f"frame {kind} after DONE"
        if kind == FENCE:
            number = fields.u32()
            self.drain(cell)
            cell.fences += 1
            self.send(PASS, struct.pack("<I", number))
        elif kind == DISPLAY:
            shown, metadata = KIND[fields.u8()], fields.bytes()
            parts = {}
            for _ in range(fields.u32()):
                mime = fields.bytes().decode()
                parts[mime] = fields.bytes()
            cell.outputs.append((shown, parts, metadata))
        elif kind == ERROR:
            assert cell.error is None, "two errors in one cell"
            cell.error = tuple(fields.bytes().decode() for _ in range(3))
        elif kind == DONE:
            assert fields.u32() == self.awaited, "DONE of another cell"
            status, cell.code, cell.same_as = STATUS[fields.u8()], fields.u32(), fields.u32()
            self.drain(cell)
            cell.status = status
        elif kind == CHECKED:
            self.checked = fields.u8(), fields.bytes().decode()
        else:
            raise AssertionError(f"unknown frame {kind}")
        fields.end()

    def check(self, code):
        self.checked = None
        self.cell = Cell()
        self.cell.status = "ok"
        data = code.encode()
        self.send(CHECK, struct.pack("<I", len(data)) + data)
        deadline = time.monotonic() + PATIENCE
        while self.checked is None:
            self.step(deadline)
        return self.checked
