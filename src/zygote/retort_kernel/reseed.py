"""After the fork: what would be equal, or predictable, in all sessions of one zygote.

The state is common to all forks. A library that keeps a random state in the process gets a new one
here, unless it sees by itself that it was forked. Python's hash seed and the address layout stay
common; nothing renews them.
"""
import ctypes
import os
import random
import sys

MT_WORDS = 624  # of a Mersenne Twister's key; its position follows, and at the end means "used up"

_numpy_generator = _numpy_key = _numpy_position = None
_seed_random = None
_sqlite_randomness = None
_renewals = []
_zygote = None  # its process id


def prepare():
    """In the zygote, when nothing more will run there: what comes new at its first use is
    forgotten once for all forks, and the rest is found that reseed() will write to."""
    global _numpy_generator, _numpy_key, _numpy_position, _seed_random, _zygote
    for name, forget in FORGOTTEN.items():
        if name in sys.modules:
            forget(sys.modules[name])
    random_ = sys.modules.get("numpy.random")
    if random_ is not None:
        random_.seed()  # also forgets a half-used pair of normal numbers
        generator = random_.mtrand._rand._bit_generator
        if type(generator).__name__ == "MT19937":
            _numpy_generator = generator  # held, because its memory is written to
            address = generator.ctypes.state_address
            _numpy_key = _memory(address, MT_WORDS * 4)
            _numpy_position = _memory(address + MT_WORDS * 4, 4)
    _seed_random = super(random.Random, random._inst).seed
    # Looking for a module writes to the names of others: not in every fork.
    _renewals[:] = [(renew, sys.modules[name]) for name, renew in RENEWALS.items()
                    if name in sys.modules]
    _zygote = os.getpid()


def reseed_branch(seed):
    """In a fork of a session that is another from now on, and in the one that waits with its first state: what can be
    the same in both comes of the seed (bytes), and the rest of the system."""
    for name, forget in FORGOTTEN.items():
        _unless_broken(forget, name)
    for name, (size, seed_with) in SEEDED.items():
        part, seed = seed[:size], seed[size:]
        _unless_broken(seed_with, name, part)
    _unless_broken(_add_entropy, "ssl")


def _unless_broken(act, name, *args):
    """To a module, if it is there. The user may have put something else in its place, and the others are still to
    differ."""
    try:
        module = sys.modules.get(name)
        if module is not None:
            act(module, *args)
    except Exception:
        pass


def _add_entropy(ssl):
    # Full entropy claimed: OpenSSL then reseeds its generators from this and from the system.
    ssl.RAND_add(os.urandom(32), 32.0)


def _memory(address, size):
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


def reseed():
    for renew, module in _renewals:
        renew(module)


def _numpy(random_):
    # numpy.random.seed() does the same by way of 300 KB of memory that no session has touched yet.
    if _numpy_key is None:
        random_.seed()
    else:
        _set_numpy(os.urandom(MT_WORDS * 4))


def _set_numpy(key):
    _numpy_key[:] = key
    _numpy_position[:] = MT_WORDS.to_bytes(4, sys.byteorder)


def _random(_):
    _seed_random()  # random.seed() does no more, but for what was forgotten before


def _openssl(ssl):
    # It seeds itself anew, at its next use, when it sees another process id, as in every box: the
    # keeper takes care of that. This is for a fork that came by the zygote's own id.
    if os.getpid() == _zygote:
        _add_entropy(ssl)


def _multiprocessing(process):
    process.current_process().authkey = os.urandom(32)


RENEWALS = {
    "random": _random,
    "numpy.random": _numpy,
    "ssl": _openssl,
    "multiprocessing.process": _multiprocessing,
    "torch": lambda module: module.seed(),
}


def _number(part):
    return int.from_bytes(part, sys.byteorder)


def _seed_numpy(random_, part):
    if _numpy_generator is not None and random_.mtrand._rand._bit_generator is _numpy_generator:
        random_.seed(0)  # forgets a half-used pair of normal numbers
        _set_numpy(part)
    else:  # the user's own, or imported by the session
        random_.seed([_number(part[at:at + 4]) for at in range(0, 32, 4)])


def _seed_authkey(process, part):
    process.current_process().authkey = part


# How many bytes of a branch's seed, which has BRANCH_SEED of them (zygote/keep.c), and what is done with them.
SEEDED = {
    "random": (32, lambda module, part: module.seed(_number(part))),
    "numpy.random": (MT_WORDS * 4, _seed_numpy),
    "multiprocessing.process": (32, _seed_authkey),
    "torch": (8, lambda module, part: module.manual_seed(_number(part) >> 1)),
}


def _tempfile(tempfile):
    tempfile._name_sequence = None
    tempfile.tempdir = None


def _uuid(uuid):
    uuid._node = None
    uuid._last_timestamp = None


def _sqlite(module):
    # Zero bytes: forget the state; the next use seeds it from the system.
    global _sqlite_randomness
    if _sqlite_randomness is None:  # else a branch would look for it anew
        _sqlite_randomness = ctypes.CDLL(module.__file__).sqlite3_randomness
    _sqlite_randomness(0, None)


def _gauss(random_):
    random_._inst.gauss_next = None  # the second of a pair


FORGOTTEN = {"random": _gauss, "tempfile": _tempfile, "uuid": _uuid, "_sqlite3": _sqlite}
