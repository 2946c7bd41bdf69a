"""pip in a box: without an index, from the operator's folder of wheels where there is one, into the user's home.

The zygote sets it up once for all sessions. The interpreter finds what pip has put there at once, whoever started
pip: the place is among its paths from the beginning, with a finder that looks again when the directory changes.
(Python itself remembers of a directory that is not there only that.)
"""
from .pristine import __builtins__

import os
import re
import site
import sys
from importlib.machinery import (BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader,
                                 FileFinder, SourceFileLoader, SourcelessFileLoader)

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WHEELS = os.path.join(HOME, "wheels")
SETTINGS = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_INPUT": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_NO_COMPILE": "1",  # the home is memory of the session's
    "PIP_ONLY_BINARY": ":all:",  # to build from sources takes an index as well
    "PIP_BREAK_SYSTEM_PACKAGES": "1",  # which are read-only; Debian's pip refuses otherwise
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def prepare():
    """In the zygote."""
    settings = dict(SETTINGS)
    base = os.path.expanduser("~/.local")
    if os.path.isdir(WHEELS):
        settings["PIP_FIND_LINKS"] = WHEELS
    if site.ENABLE_USER_SITE:
        place = site.getusersitepackages()
        settings["PIP_USER"] = "1"
    else:  # a virtual environment without the system's packages has no user site either
        place = os.path.join(base, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
        settings["PIP_PREFIX"] = base
        settings["PYTHONPATH"] = place
    settings["PATH"] = _path(os.path.join(base, "bin"))
    os.environ.update(settings)
    _find_in(place)


def _path(scripts):
    """The environment's own commands first, as if it were activated; "python" and pip's scripts last."""
    path = os.environ.get("PATH", os.defpath).split(":")
    own = os.path.dirname(sys.executable)
    return ":".join(([] if own in path else [own]) + path + [os.path.join(HOME, "bin"), scripts])


def _find_in(place):
    if place in sys.path:
        return
    packages = [i for i, path in enumerate(sys.path) if path.endswith("-packages")]
    sys.path.insert(packages[0] if packages else len(sys.path), place)
    sys.path_importer_cache[place] = FileFinder(place, (ExtensionFileLoader, EXTENSION_SUFFIXES),
                                                (SourceFileLoader, SOURCE_SUFFIXES),
                                                (SourcelessFileLoader, BYTECODE_SUFFIXES))


def wheels():
    """What there is to install: normal names."""
    try:
        files = os.listdir(WHEELS)
    except OSError:
        return []
    return sorted({normal_name(file.partition("-")[0]) for file in files if file.endswith(".whl")})


def normal_name(name):
    """A name as PyPI compares them: scikit_learn is Scikit-Learn."""
    return re.sub(r"[-_.]+", "-", name).lower()
