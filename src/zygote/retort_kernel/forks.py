"""What Python does around every fork, and need not do for a box.

Some of the handlers that modules have registered (os.register_at_fork) repair what other threads may have
left: here there is one thread, and it holds nothing. A box would copy 80 pages for them. So they are taken
out of Python's lists in the zygote, and put back in every fork of it, where the user's forks need them. When a
session that has one thread is forked to be kept they are left out once more: there it is 190 pages.
The lists have no name; the garbage collector knows them. Where it does not, boxes only cost more.
"""
from .pristine import __builtins__

import gc
import logging
import random
import threading
from collections import deque
from functools import partial
from itertools import repeat
from operator import setitem
from sys import _current_frames

NOTHING = partial(deque, (), 0)

# Of each of Python's lists: itself, all that is in it, what stays there in the zygote, and those handlers of libraries
# that a session of one thread can do without.
_lists = []


def prepare(*ours):
    """Before objects are frozen. `ours` are handlers of our own that the zygote can do without."""
    after = _list_with(threading._after_fork)
    if after is None:
        return
    needless = (threading._after_fork, random._inst.seed)  # reseed.py seeds it, and points.py
    # All three or none: one alone would leave a lock that is held for ever.
    lock, unlock = getattr(logging, "_acquireLock", None), getattr(logging, "_releaseLock", None)
    before, in_parent = _list_with(lock), _list_with(unlock)
    if before is not None and in_parent is not None:
        _note(before, (lock,))
        _note(in_parent, (unlock,))
        needless += (logging._after_at_fork_child_reinit_locks,)
    _note(after, needless, ours)


def _list_with(handler):
    found = [each for each in gc.get_referrers(handler) if type(each) is list]
    return found[0] if handler is not None and len(found) == 1 else None


def _note(handlers, needless, ours=()):
    spared = [each for each in handlers if _is_one_of(needless, each)]
    needed = [each for each in _without(spared, handlers) if not _is_one_of(ours, each)]
    _lists.append((handlers, handlers[:], needed, spared))


def _is_one_of(known, handler):
    return any(type(handler) is type(each) and handler == each for each in known)


def _without(spared, handlers):
    """By identity: what the user has registered is not asked."""
    return [handler for handler in handlers if not any(handler is each for each in spared)]


def set_aside():
    for handlers, _, needed, _ in _lists:
        handlers[:] = needed


def put_back():
    for handlers, whole, _, _ in _lists:
        handlers[:] = whole


def spare():
    """Before a session's own fork: two functions, which take those handlers out and put them back, in both
    processes. Each is one call of C's, so that no signal's handler, which may raise, comes in between: half of
    them would be a lock that is held for ever. What has been registered meanwhile stays, behind the others."""
    if len(_current_frames()) > 1:
        return NOTHING, NOTHING
    lists = [handlers for handlers, *_ in _lists]
    without = [_without(spared, handlers) for handlers, *_, spared in _lists]
    places = [(handlers, at, each) for handlers, *_, spared in _lists for at, each in enumerate(handlers)
              if any(each is one for one in spared)]
    return (partial(deque, map(setitem, lists, repeat(slice(None)), without), 0),
            partial(deque, map(list.insert, *zip(*places)) if places else (), 0))
