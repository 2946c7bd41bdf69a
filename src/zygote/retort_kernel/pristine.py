"""Builtins as they were before any user code ran.

A module that says `from .pristine import __builtins__` as its first line gets functions that look
names up here, not in the `builtins` module that user code may empty or redefine. So `del
builtins.len` breaks the user's program, as it should, and not the loop that has to report it.
"""
import builtins

__builtins__ = vars(builtins).copy()
