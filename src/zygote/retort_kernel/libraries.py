"""The table of libraries (libraries.txt), and what to say where one of them is missing.

Asked after the user's code ran, which may have left anything behind: an exception that is hostile, an importlib
that is broken. Then there is no hint.
"""
from .pristine import __builtins__

import os
import re
import sys
from collections import namedtuple
from importlib.util import find_spec
from shutil import which
from socket import gaierror
from subprocess import CalledProcessError

from .installs import normal_name, wheels

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries.txt")
DEBIAN = "/usr"  # the prefix of the interpreter whose libraries are Debian's
QUOTED = re.compile(r"['\"`]([A-Za-z_][\w.]{0,80})['\"`]")
PIP_INSTALL = re.compile(r"(?:^|[\s/;&|'\"])pip3?['\"]?\s+(?:-\S+\s+)*install\s+([^;&|\n]*)")
REQUIREMENT = re.compile(r"['\"]?([\w.-]*)")
NAMES_MAX = 20  # that are listed in a sentence
TEXT_MAX = 2000  # of an exception's text, in which names are looked for
CHAIN_MAX = 10
NO_NETWORK = "There is no network here: work with the files in /mnt/data."

Library = namedtuple("Library", "name module package group words")
Command = namedtuple("Command", "name flag package group words")
Elsewhere = namedtuple("Elsewhere", "name module instead")
KINDS = {"library": Library, "command": Command, "elsewhere": Elsewhere}


def read():
    """The lines of the table, in its order."""
    with open(TABLE, encoding="utf-8") as file:
        words = (line.partition("#")[0].split(None, 1) for line in file)
        return [_entry(KINDS[line[0]], line[1]) for line in words if line]


def _entry(kind, text):
    fields = text.split(None, len(kind._fields) - 1)
    return kind(*fields[:-1], fields[-1].strip())


def is_there(module):
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


# ---- hints ----

def hint(error):
    """A sentence for who has met this exception, or None."""
    try:
        if type(error) is CalledProcessError:
            return _pip_words(" ".join(error.cmd) if isinstance(error.cmd, list) else error.cmd)
        if _wants_network(error):
            return NO_NETWORK
        if not isinstance(error, ImportError):
            return None
        table = read()
        for name in _missing(error):
            found = isinstance(name, str) and _about_module(table, name)
            if found:
                return found
    except Exception:
        pass
    return None


def _wants_network(error):
    """No name can be found; or requests has looked for certificates first, which are of no use here."""
    return any(type(each) is gaierror or (type(each) is OSError and "TLS CA certificate bundle" in str(each)[:TEXT_MAX])
               for each in _chain(error))


def _chain(error):
    for _ in range(CHAIN_MAX):
        yield error
        error = error.__cause__ or error.__context__
        if error is None:
            return


def _missing(error):
    """The modules that an exception, and what it comes from, did not find."""
    for each in _chain(error):
        if isinstance(each, ModuleNotFoundError):
            yield each.name
        elif isinstance(each, ImportError) and each.name is None:
            yield from QUOTED.findall(str(each)[:TEXT_MAX])  # as pandas says it


def _about_module(table, name):
    for entry in table:
        if not isinstance(entry, Command) and entry.module == name:
            return None if is_there(name) else advice(table, entry)
    for entry in table:
        if not isinstance(entry, Command) and normal_name(entry.name) == normal_name(name):
            if is_there(entry.module):
                return f"{entry.name} is here, under another name: import {entry.module}"
            return advice(table, entry)
    return None


def advice(table, entry):
    if normal_name(entry.name) in wheels():
        return f"{entry.name} is not installed yet: %pip install {entry.name} does it, without network"
    text = f"{entry.name} is not installed here, and there is no network to install it from."
    instead = _instead(table, entry)
    if instead:
        text += f" Instead use {instead}."
    if isinstance(entry, Library) and sys.prefix == DEBIAN:
        return f"{text} The operator of this machine can add it: make {entry.group} (Debian's {entry.package})"
    return f"{text} The operator of this machine can add it: see retort-environment(5)"


def _instead(table, entry):
    """Of what does the same, what there is."""
    if not isinstance(entry, Elsewhere) or entry.instead == "-":
        return ""
    return ", or ".join(each for each in entry.instead.split(", or ") if _can_be_used(table, each))


def _can_be_used(table, what):
    words = what.split()
    if words[:2] == ["the", "command"]:
        return which(words[2]) is not None
    module = re.match(r"\w*", what).group()
    return is_there(module) or all(module != each.module for each in table if isinstance(each, Library))


# ---- pip ----

def explain_pip(command, code):
    """pip's own words for a failure do not say that there is no network."""
    words = _pip_words(command) if code != 0 else None
    if words:
        sys.stderr.write(words + "\n")


def _pip_words(command):
    asked = PIP_INSTALL.search(command)
    if asked is None:
        return None
    there = wheels()
    if there:
        lines = [f"There is no network here: pip installs only what the operator has put there ({listed(there)})."]
    else:
        lines = ["There is no network here, so pip can install nothing that is not here already."]
    table = read()
    for word in asked.group(1).split()[:NAMES_MAX]:
        about = _about_requirement(table, REQUIREMENT.match(word).group(1))
        if about:
            lines.append(about)
    if len(lines) == 1:
        lines.append("The operator of this machine can add packages: see retort-environment(5)")
    return "\n".join(lines)


def _about_requirement(table, name):
    for entry in table:
        if not isinstance(entry, Command) and normal_name(name) in (normal_name(entry.name), normal_name(entry.module)):
            return None if is_there(entry.module) else advice(table, entry)
    return None


def listed(names):
    return ", ".join(names[:NAMES_MAX]) + (", …" if len(names) > NAMES_MAX else "")
