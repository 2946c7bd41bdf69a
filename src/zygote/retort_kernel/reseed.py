"""After the fork: what would be equal, or predictable, in all sessions of one zygote, and in branches of a session.

The state is common to all forks. A library that keeps a random state in the process gets a new one
here, unless it sees by itself that it was forked. Python's hash seed and the address layout stay
common; nothing renews them.

Most of it is done in place: the memory of a generator's state is found in the zygote, and gets other bytes. To call its
own function for that would copy as many as fifty pages, in every fork.
"""
import ctypes
import struct
import sys
from os import getpid, urandom

MT_WORDS = 624  # of a Mersenne Twister's key; its position beyond the end means "used up"
MT_BYTES = MT_WORDS * 4
USED_UP = MT_WORDS.to_bytes(4, sys.byteorder)
NONE_LEFT = bytes(4)
AUTHKEY = 32  # bytes


class Place:
    """Where a module's random state is in memory, for as long as that is the one in use."""

    def __init__(self, module, state, before=b"", after=b"", half=None, same=b"", at=b"", held=None):
        self.module = module
        self.state = state  # memory that gets random bytes
        self.before, self.after = before, after  # and these before and behind them
        self.half = half  # memory that says whether half a pair is left
        self.same, self.at = same, at  # memory, and what is in it as long as nobody has changed what is in use
        self.held = held  # whose memory it is

    def fill(self, part):
        self.state[:] = self.before + part + self.after
        if self.half is not None:
            self.half[:] = NONE_LEFT

    def is_in_use(self, module):
        return module is self.module and self.same == self.at


_places = {}  # by the names of modules
_renewals = []
_sqlite_randomness = None
_pids = set()  # of the processes whose state this one may have


def prepare():
    """In the zygote, when nothing more will run there: what comes new at its first use is
    forgotten once for all forks, and the rest is found that forks will write to."""
    for name, forget in FORGOTTEN.items():
        if name in sys.modules:
            forget(sys.modules[name])
    for name, find in FOUND.items():
        place = _unless_broken(find, name)
        if place is not None:
            _places[name] = place
    # Looking for a module writes to the names of others: not in every fork.
    _renewals[:] = [(renew, sys.modules[name]) for name, renew in RENEWALS.items()
                    if name in sys.modules and name not in _places]
    note_process()


def reseed():
    """In a fork of the zygote."""
    for place in _places.values():
        place.fill(urandom(MT_BYTES))
    for renew, module in _renewals:
        renew(module)
    renew_openssl()


def reseed_branch(seed):
    """In a fork of a session that is another from now on, and in the one that waits with its first state: what can be
    the same in both comes of the seed (bytes), and the rest of the system."""
    for name, forget in FORGOTTEN.items():
        _unless_broken(forget, name)
    for name, (size, seed_with) in SEEDED.items():
        part, seed = seed[:size], seed[size:]
        _unless_broken(_seed, name, _places.get(name), part, seed_with)


def _seed(module, place, part, seed_with):
    if place is not None and place.is_in_use(module):
        place.fill(part)
    else:  # the user's own, or imported by the session
        seed_with(module, part)


def _unless_broken(act, name, *args):
    """To a module, if it is there. The user may have put something else in its place, and the others are still to
    differ."""
    try:
        module = sys.modules.get(name)
        if module is not None:
            return act(module, *args)
    except Exception:
        pass
    return None


# ---- OpenSSL ----

def note_process():
    """Before a fork."""
    _pids.add(getpid())


def renew_openssl():
    """It seeds itself anew, at its next use, when it sees another process id: but that may be one that this
    state has been under before."""
    ssl = sys.modules.get("ssl") if getpid() in _pids else None
    if ssl is not None:
        # Full entropy claimed: OpenSSL then reseeds its generators from this and from the system.
        ssl.RAND_add(urandom(32), 32.0)


# ---- in place ----

def _memory(address, size):
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


def _native(number):
    return number.to_bytes(4, sys.byteorder)


def _find_random(module):
    instance = module._inst
    *key, position = instance.getstate()[1]
    whole = _memory(id(instance), type(instance).__basicsize__)
    at = bytes(whole).find(struct.pack(f"={MT_WORDS}I", *key))
    if at < 4 or whole[at - 4:at] != _native(position):
        return None
    return Place(module, whole[at - 4:at + MT_BYTES], before=USED_UP, held=instance)


def _find_numpy(module):
    module.seed()
    instance = module.mtrand._rand
    generator = instance._bit_generator
    whole = _memory(id(instance), type(instance).__basicsize__)
    pointer = struct.pack("P", id(generator))
    at, half = bytes(whole).find(pointer), _find_half(instance, whole)
    if type(generator).__name__ != "MT19937" or at < 0 or half is None:
        return None
    state = _memory(generator.ctypes.state_address, MT_BYTES + 4)
    return Place(module, state, after=USED_UP, half=half, same=whole[at:at + len(pointer)], at=pointer,
                 held=(instance, generator))


def _find_half(instance, whole):
    """Whether the second of a pair of normal numbers is left: a word before that number."""
    before = bytes(whole)
    instance.standard_normal()
    after = bytes(whole)
    at = after.find(struct.pack("d", instance.get_state(legacy=False)["gauss"])) - 8
    if at < 0 or before[at:at + 4] != bytes(4) or after[at:at + 4] != _native(1):
        return None
    whole[at:at + 4] = bytes(4)
    return None if instance.get_state(legacy=False)["has_gauss"] else whole[at:at + 4]


FOUND = {"random": _find_random, "numpy.random": _find_numpy}


# ---- by their own functions ----

def _number(part):
    return int.from_bytes(part, sys.byteorder)


def _seed_numpy(module, part):
    module.seed([_number(part[at:at + 4]) for at in range(0, 32, 4)])


def _seed_authkey(module, part):
    module.current_process().authkey = part


RENEWALS = {
    "random": lambda module: module.seed(),
    "numpy.random": lambda module: module.seed(),
    "multiprocessing.process": lambda module: _seed_authkey(module, urandom(AUTHKEY)),
    "torch": lambda module: module.seed(),
}

# How many bytes of a branch's seed, and what is done with them where they are not put in place.
SEEDED = {
    "random": (MT_BYTES, lambda module, part: module.seed(_number(part[:32]))),
    "numpy.random": (MT_BYTES, _seed_numpy),
    "multiprocessing.process": (AUTHKEY, _seed_authkey),
    "torch": (8, lambda module, part: module.manual_seed(_number(part) >> 1)),
}
BRANCH_SEED = sum(size for size, _ in SEEDED.values())  # as zygote/keep.h has it


# ---- what comes new at its first use ----

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


def _gauss(module):
    module._inst.gauss_next = None  # the second of a pair


FORGOTTEN = {"random": _gauss, "tempfile": _tempfile, "uuid": _uuid, "_sqlite3": _sqlite}
