"""What there is in this environment, for people, clients and models: "retort env".

Imported by the one cell that asks for it, in a box of its own.
"""
import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata

from . import installs, libraries

TYPE = "application/vnd.retort.environment+json"
DEBIANS = "/usr/lib/python3/dist-packages"  # what else is there belongs to the system
OTHERS_MAX = 200
NAME_MAX = 100
PATIENCE = 20  # seconds for a command to tell its version
VERSION = re.compile(r"\d+(?:\.\d+)+\S*")
# What code must know the version of.
MAIN = {"numpy", "pandas", "matplotlib", "scipy", "scikit-learn", "sympy", "pillow", "plotly"}
TOLD_MAX = 80  # libraries that the paragraph names
TOOLS = {"pip", "ipython"}  # which it does not: models take them for granted


def show(brief=False):
    from IPython.display import display
    display({TYPE: json.dumps(collect(brief))}, raw=True)


def collect(brief):
    """`brief`: with those versions only that the paragraph tells, which is ten times as quick."""
    found = {"python": platform.python_version(), "libraries": _libraries(brief), "commands": _commands(brief),
             "wheels": installs.wheels()[:OTHERS_MAX]}
    return {**found, "description": describe(found)}


# ---- libraries ----

def _libraries(brief):
    found = []
    for entry in libraries.read():
        if isinstance(entry, libraries.Library) and libraries.is_there(entry.module):
            version = "" if brief and installs.normal_name(entry.name) not in MAIN else _version(entry)
            found.append(_library(entry.name, entry.module, version, entry.group, entry.words))
    return found + _others({installs.normal_name(each["name"]) for each in found})


def _library(name, module, version, group, words):
    return {"name": name, "import": module, "version": version, "group": group, "about": words}


def _version(entry):
    """As it was installed; a few do not say that, but know it themselves."""
    try:
        return metadata.version(entry.name)[:NAME_MAX]
    except metadata.PackageNotFoundError:
        pass
    try:
        module = importlib.import_module(entry.module)
    except Exception:
        return ""
    version = getattr(module, "__version__", getattr(module, "sqlite_version", ""))
    return str(version)[:NAME_MAX]


def _others(told):
    """What somebody has put there himself: in a virtual environment, a conda prefix, or /usr/local."""
    others = {}
    for each in metadata.distributions():
        name = str(each.metadata["Name"] or "")[:NAME_MAX]
        if name and installs.normal_name(name) not in told and not str(each.locate_file("")).startswith(DEBIANS):
            others[installs.normal_name(name)] = _library(name, _module(each, name), str(each.version)[:NAME_MAX], "other",
                                                     str(each.metadata["Summary"] or "")[:NAME_MAX])
    return [others[name] for name in sorted(others)[:OTHERS_MAX]]


def _module(distribution, name):
    tops = (distribution.read_text("top_level.txt") or "").split()
    return (tops[0] if tops else name.replace("-", "_"))[:NAME_MAX]


# ---- commands ----

def _commands(brief):
    """All are asked at once: the largest takes as long as the others together."""
    asked = [(entry, None if brief else _ask(entry)) for entry in libraries.read()
             if isinstance(entry, libraries.Command) and shutil.which(entry.name)]
    return [{"name": entry.name, "version": _answer(child), "group": entry.group, "about": entry.words}
            for entry, child in asked]


def _ask(entry):
    return subprocess.Popen([entry.name, entry.flag], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def _answer(child):
    if child is None:
        return ""
    try:
        text = child.communicate(timeout=PATIENCE)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        child.kill()
        return ""
    version = VERSION.search(text)
    return version.group()[:NAME_MAX] if version else ""


# ---- for models ----

def describe(found):
    """One paragraph for a model that is to write code for this environment."""
    names = [_told(each) for each in found["libraries"] if each["name"] not in TOOLS]
    text = (f"Python {found['python']} in an IPython shell on Linux, without network. "
            f"Files are in the current directory, /mnt/data. ")
    if names:
        more = f" and {len(names) - TOLD_MAX} more" if len(names) > TOLD_MAX else ""
        text += f"Libraries: {', '.join(names[:TOLD_MAX])}{more}. "
    if found["commands"]:
        text += f"Commands: {', '.join(each['name'] for each in found['commands'])}. "
    if found["wheels"]:
        return text + f"pip install works for these alone: {libraries.listed(found['wheels'])}."
    return text + "Nothing else can be installed."


def _told(library):
    if installs.normal_name(library["name"]) not in MAIN:
        return library["name"]
    return f"{library['name']} {'.'.join(library['version'].split('.')[:2])}"
