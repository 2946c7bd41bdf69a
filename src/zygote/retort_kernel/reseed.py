"""After the fork: what would be equal, or predictable, in all sessions of one zygote.

Both the state and the process id are common to the forks (each box has its own pid namespace, so
libraries that look at getpid() see no fork). Every library that keeps a random state in the process
gets a new one here. Python's hash seed and the address layout stay common; nothing renews them.
"""
import ctypes
import os
import random
import sys

MT_WORDS = 624  # of a Mersenne Twister's key; its position follows, and at the end means "used up"

_sqlite_library = None
_numpy_key = _numpy_position = None


def prepare():
    """In the zygote: find what reseed() will write to."""
    global _sqlite_library, _numpy_key, _numpy_position
    if "_sqlite3" in sys.modules:
        _sqlite_library = ctypes.CDLL(sys.modules["_sqlite3"].__file__)
    random_ = sys.modules.get("numpy.random")
    if random_ is not None:
        random_.seed()  # also forgets a half-used pair of normal numbers
        generator = random_.mtrand._rand._bit_generator
        if type(generator).__name__ == "MT19937":
            address = generator.ctypes.state_address
            _numpy_key = _memory(address, MT_WORDS * 4)
            _numpy_position = _memory(address + MT_WORDS * 4, 4)


def _memory(address, size):
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


def reseed():
    random.seed()
    for name, renew in RENEWALS.items():
        module = sys.modules.get(name)
        if module is not None:
            renew(module)


def _numpy(random_):
    # numpy.random.seed() does the same by way of 300 KB of memory that no session has touched yet.
    if _numpy_key is None:
        random_.seed()
    else:
        _numpy_key[:] = os.urandom(MT_WORDS * 4)
        _numpy_position[:] = MT_WORDS.to_bytes(4, sys.byteorder)


def _openssl(ssl):
    # Full entropy claimed: OpenSSL then reseeds its generators from this and from the system.
    ssl.RAND_add(os.urandom(32), 32.0)


def _tempfile(tempfile):
    tempfile._name_sequence = None
    tempfile.tempdir = None


def _uuid(uuid):
    uuid._node = None
    uuid._last_timestamp = None


def _multiprocessing(process):
    process.current_process().authkey = os.urandom(32)


def _sqlite(_):
    # Zero bytes: forget the state; the next use seeds it from the system.
    _sqlite_library.sqlite3_randomness(0, None)


RENEWALS = {
    "numpy.random": _numpy,
    "ssl": _openssl,
    "tempfile": _tempfile,
    "uuid": _uuid,
    "multiprocessing.process": _multiprocessing,
    "_sqlite3": _sqlite,
    "torch": lambda module: module.seed(),
}
