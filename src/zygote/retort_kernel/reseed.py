"""After the fork: what would be equal, or predictable, in all sessions of one zygote.

Both the state and the process id are common to the forks (each box has its own pid namespace, so
libraries that look at getpid() see no fork). Every library that keeps a random state in the process
gets a new one here. Python's hash seed and the address layout stay common; nothing renews them.
"""
import ctypes
import os
import random
import sys

_library = None


def prepare():
    """In the zygote: open what reseed() will call."""
    global _library
    if "_sqlite3" in sys.modules:
        _library = ctypes.CDLL(sys.modules["_sqlite3"].__file__)


def reseed():
    random.seed()
    for name, renew in RENEWALS.items():
        module = sys.modules.get(name)
        if module is not None:
            renew(module)


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
    _library.sqlite3_randomness(0, None)


RENEWALS = {
    "numpy.random": lambda module: module.seed(),
    "ssl": _openssl,
    "tempfile": _tempfile,
    "uuid": _uuid,
    "multiprocessing.process": _multiprocessing,
    "_sqlite3": _sqlite,
    "torch": lambda module: module.seed(),
}
