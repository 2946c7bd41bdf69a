"""Doing something about a library when it is imported, whenever that is: beforehand, by the user, or never.

Nothing here imports a library. What is done to one must not keep the user from having it: where it
fails, because the library is of another version than we know, a warning says so and the library is as it was.
"""
from .pristine import __builtins__

import sys
import warnings
from importlib.machinery import PathFinder

_hooks = {}  # module name: what to call with the module


def when_imported(name, hook):
    if name in sys.modules:
        hook(sys.modules[name])
        return
    if not _hooks:
        sys.meta_path.insert(0, Watch())
    _hooks[name] = hook


class Watch:
    """A finder that sees the modules of `_hooks` being imported, each once."""

    def find_spec(self, name, path=None, target=None):
        if name not in _hooks:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                self.attend(name, module)

            spec.loader.exec_module = exec_module
        return spec

    def attend(self, name, module):
        hook = _hooks.pop(name, None)
        if not _hooks and self in sys.meta_path:
            sys.meta_path.remove(self)
        if hook is None:
            return
        try:
            hook(module)
        except Exception as error:
            warnings.warn(f"{name} may not show its results here: {type(error).__name__}: {error}")
