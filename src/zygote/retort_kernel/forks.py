"""What Python does around every fork, and need not do for a box.

Some of the handlers that modules have registered (os.register_at_fork) repair what other threads may have
left: here there is one thread, and it holds nothing. A box would copy 80 pages for them. So they are taken
out of Python's lists in the zygote. In a box one handler stands in for those that follow a fork: before the first of the
user's it brings them back. When a session that has one thread is forked to be kept none of them is called: it would be 190 pages.
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
from operator import methodcaller, setitem
from os import register_at_fork
from sys import _current_frames

NOTHING = partial(deque, (), 0)

# Of each of Python's lists: itself, what stays there in the zygote, and what a session of one thread can do without
# when it is kept.
_lists = []
_before = None  # the one of what Python calls before a fork,
_in_box = []  # and what is in it in a box

# Calls that bring back what was taken out. They are made once: after that the iterator has come to its end. All of them are
# one call of C's, so that no signal's handler, which may raise, comes in between.
_steps = []
restore = partial(deque, map(methodcaller("__call__"), _steps), 0)


def prepare(*ours):
    """Before objects are frozen. `ours` are handlers of our own that only a user's forks need."""
    global _before, _in_box
    after = _list_with(threading._after_fork)
    if after is None:
        return
    needless = (threading._after_fork, random._inst.seed)  # reseed.py seeds it, and points.py
    register_at_fork(before=restore)  # there is such a list from now on
    _before = _list_with(restore)
    if _before is None:
        return
    # All three or none: one alone would leave a lock that is held for ever.
    lock, unlock = getattr(logging, "_acquireLock", None), getattr(logging, "_releaseLock", None)
    in_parent = _list_with(unlock)
    locks = ()
    if in_parent is not None and _list_with(lock) is _before:
        locks, needless = (lock,), needless + (logging._after_at_fork_child_reinit_locks,)
        _bring_back(in_parent, _take_out(in_parent, (unlock,)))
    _in_box = _before[:]  # not brought back later: Python goes over a copy of this list, which is made before
    _take_out(_before, (*locks, restore))
    _bring_back(after, _take_out(after, needless + ours))


def _list_with(handler):
    found = [each for each in gc.get_referrers(handler) if type(each) is list]
    return found[0] if handler is not None and len(found) == 1 else None


def _take_out(handlers, needless):
    spared = [each for each in handlers if _is_one_of(needless, each)]
    _lists.append((handlers, _without(spared, handlers), spared))
    return spared


def _bring_back(handlers, spared):
    """Each to where it was."""
    _steps.extend(partial(list.insert, handlers, at, each) for at, each in enumerate(handlers) if _is_in(spared, each))


def _is_one_of(known, handler):
    return any(type(handler) is type(each) and handler == each for each in known)


def _is_in(known, handler):
    """By identity: what the user has registered is not asked."""
    return any(handler is each for each in known)


def _without(spared, handlers):
    return [handler for handler in handlers if not _is_in(spared, handler)]


def set_aside():
    """In the zygote."""
    for handlers, needed, _ in _lists:
        handlers[:] = needed


def stand_in():
    """In a box."""
    if _before is not None:
        _before[:] = _in_box


def spare():
    """Before a session's own fork: two functions, which take those handlers out and put them back, in both
    processes, each in one call of C's as well. What has been registered meanwhile stays, behind the others."""
    if len(_current_frames()) > 1 or not _lists:
        return NOTHING, NOTHING
    lists = [handlers for handlers, *_ in _lists]
    without = [_without(spared, handlers) for handlers, _, spared in _lists]
    places = [(handlers, at, each) for handlers, _, spared in _lists for at, each in enumerate(handlers)
              if _is_in(spared, each)]
    return (partial(deque, map(setitem, lists, repeat(slice(None)), without), 0),
            partial(deque, map(list.insert, *zip(*places)) if places else (), 0))
