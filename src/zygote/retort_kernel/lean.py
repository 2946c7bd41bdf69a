"""Imports IPython without its terminal.

The package imports its own terminal (prompt_toolkit) and what completes names there (jedi): half of its
modules and half of the time, for what no session has. Who asks for them in a session gets them then.
"""
import sys
import types

EMBED = "IPython.terminal.embed"
COMPLETIONS = "jedi"  # IPython asks whether it is there, and does without


def import_ipython():
    stand_ins = {EMBED: types.ModuleType(EMBED), COMPLETIONS: None}  # None: it cannot be imported
    stand_ins[EMBED].embed = None
    stand_ins = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        import IPython, IPython.core.completer
    finally:
        for name in stand_ins:
            del sys.modules[name]
    if IPython.embed is None:
        del IPython.embed
        IPython.__getattr__ = _find


def _find(name):
    """What IPython itself does not have."""
    if name != "embed":
        raise AttributeError(f"module 'IPython' has no attribute {name!r}")
    import IPython
    from IPython.terminal.embed import embed
    IPython.embed = embed
    return embed

