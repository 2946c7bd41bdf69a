"""The zygote's heap, made so that a fork of it writes to few of its pages.

Importing leaves thousands of holes, scattered over the whole heap. A session that allocates would
fill them, a page copied for each; and glibc sorts its list of holes at the first chance, which
writes to every one of them: 3 MB of the 8 that a session's first cell made private. So the holes
are filled here, for good, and a session's memory comes fresh and in one piece.

A session also writes to every object that it uses, as it counts references. What it uses in every cell
is therefore made before the large libraries are loaded, and together: the names in our own code first,
as the first to mention a name decides where it lies; then, with the holes filled, the code itself.
"""
import ctypes
import gc
import importlib
import os

from . import lean

# Used in every cell, or after every fork.
STANDARD = ("ast", "base64", "functools", "inspect", "io", "itertools", "json", "logging", "random",
            "re", "signal", "struct", "threading", "types", "warnings", "weakref", "asyncio")
POOLED_MAX = 512  # bytes: up to this size CPython allocates from its own pools
POOL = 1 << 14  # bytes; CPython 3.10 and later
ROW = 64  # neighbours in a row that tell a fresh pool
ROUNDS_MAX = 200_000
# Up to 1032 bytes glibc keeps a list for each size.
SIZES = [1 << 16, 1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11] + list(range(1032, 15, -16))

_kept = []


def begin():
    """Before the rest of this package is imported. The zygote runs without garbage collection, but
    for the times it asks for it."""
    gc.disable()
    names = list(_own_code())
    for name in STANDARD:
        importlib.import_module(name)
    lean.import_ipython()
    gc.collect()
    fill()
    return names


def _own_code():
    directory = os.path.dirname(os.path.abspath(__file__))
    for name in sorted(os.listdir(directory)):
        if name.endswith(".py"):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                yield compile(file.read(), name, "exec", dont_inherit=True)


def fill():
    """Call it last, after the garbage is collected."""
    for size in range(POOLED_MAX, 32, -16):
        _fill_pools(size)
    try:
        _fill_malloc(ctypes.CDLL(None))
    except AttributeError:
        pass  # another C library: sessions are larger, and work


def _fill_pools(size):
    """Allocate objects of one size class until they come one after the other, and then to the
    beginning of a pool: there the next ones lie in one page with the pool's header, which every
    allocation writes to."""
    payload = bytes(size - bytes().__sizeof__())  # its copies are as large
    view = memoryview(payload)
    row, last, fresh = 0, 0, False
    for _ in range(ROUNDS_MAX):
        block = view.tobytes()
        _kept.append(block)
        row = row + 1 if 0 < id(block) - last <= size else 0
        last = id(block)
        fresh = fresh or row >= min(ROW, POOL // size - 4)
        if fresh and last % POOL < size + 64:
            return


class _Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


def _fill_malloc(libc):
    """Allocate from glibc, large pieces first, until it has to cut them off the heap's end."""
    malloc, free = libc.malloc, libc.free
    malloc.restype, malloc.argtypes = ctypes.c_size_t, (ctypes.c_size_t,)
    free.restype, free.argtypes = None, (ctypes.c_size_t,)
    libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_size_t, (ctypes.c_ssize_t,)
    libc.mallinfo2.restype = _Info
    libc.malloc_trim(0)
    for size in SIZES:
        end = libc.sbrk(0) - libc.mallinfo2().keepcost - 2 * size
        for _ in range(ROUNDS_MAX):
            block = malloc(size)
            if not block or block >= end:
                free(block)
                break
