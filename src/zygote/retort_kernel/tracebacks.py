"""Tracebacks as IPython prints them in its Context mode, in bounded time and size.

IPython's own formatter parses every source file on the stack: the first KeyError of a DataFrame
takes half a second and tens of megabytes that each session would pay for again. This one reads a
few lines of each file. It also leaves out the runner's frames, and it expects exceptions to be
hostile: their class, their text and their links are the user's.
"""
from .pristine import __builtins__

import linecache
import os
import stat
from inspect import CO_VARARGS, CO_VARKEYWORDS
from itertools import islice

TEXT_MAX = 256 << 10  # of a whole traceback
VALUE_MAX = 64 << 10  # of str(exception)
NAME_MAX = 1 << 10
LINE_MAX = 500  # of a line of source
SOURCE_MAX = 16 << 20  # a larger file is not source
FRAMES_KEPT = 20  # at each end of a long stack
CHAIN_MAX = 10  # causes, and depth of groups
GROUP_MAX = 15
CONTEXT = 2  # lines of source before and after
RULE = 75
NUMBER_WIDTH = 7

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"

_type_name = type.__dict__["__name__"].__get__
_hidden = []  # directories whose frames are not the user's
_sources = {}  # lines of cells


def hide(directory):
    _hidden.append(os.path.join(directory, ""))


def keep_source(filename, text):
    """Of a cell; for Python's own linecache too, so that inspect and pdb find it."""
    lines = text.splitlines(True)
    _sources[filename] = lines
    try:
        # No time of change: linecache then does not look for a file of this name.
        linecache.cache[filename] = len(text), None, lines, filename
    except (AttributeError, TypeError):
        pass  # the user has broken it


def drop_source(filename):
    del _sources[filename], linecache.cache[filename]


def cut(text, limit):
    """At most `limit` characters: head and tail, and between them how much is missing."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out]\n{text[-half:]}"


def name_of(error):
    """The class's name, without asking its metaclass."""
    return cut(_type_name(type(error)), NAME_MAX)


def value_of(error):
    """str(error), whatever that does. An interrupt goes through: str() may be an endless loop."""
    try:
        return cut("".join([str(error)]), VALUE_MAX)  # join: a subclass of str becomes a plain one
    except KeyboardInterrupt:
        raise
    except BaseException as failure:
        return f"<str() of this exception failed with {name_of(failure)}>"


def render(error):
    """The traceback of an exception, with what caused it."""
    blocks, seen = [], set()
    while error is not None and len(blocks) < CHAIN_MAX:
        seen.add(id(error))
        blocks.append(_one(error, 0))
        link, error = _origin(error)
        if error is None or id(error) in seen:
            break
        blocks[-1] = f"{link}\n\n{blocks[-1]}"
    return cut("\n".join(reversed(blocks)), TEXT_MAX)


def _origin(error):
    cause, context = error.__cause__, error.__context__
    if cause is not None:
        return _CAUSE, cause
    if context is not None and not error.__suppress_context__:
        return _CONTEXT, context
    return None, None


def _one(error, depth):
    lines = []
    stack = _stack(error.__traceback__)
    name = name_of(error)
    is_syntax = isinstance(error, SyntaxError)
    if name == "UsageError":
        stack = []  # a magic that was called wrongly says so in its text
    elif stack or not is_syntax:
        lines.append("-" * RULE)
        lines.append(name + "Traceback (most recent call last)".rjust(RULE - len(name)))
    lines += _frames(stack)
    if is_syntax:
        lines += _syntax_place(error)
        value = error.msg if isinstance(error.msg, str) else value_of(error)
    else:
        value = value_of(error)
    lines.append(f"{name}: {value}" if value else name)
    lines += _notes(error)
    lines += _members(error, depth)
    return "\n".join(lines) + "\n"


def _notes(error):
    notes = getattr(error, "__notes__", None)
    if not isinstance(notes, (list, tuple)):
        return []
    return [cut(note, VALUE_MAX) for note in notes[:GROUP_MAX] if isinstance(note, str)]


def _members(error, depth):
    """The exceptions in an ExceptionGroup (Python 3.11), indented."""
    if _base_group is None or not isinstance(error, _base_group):
        return []
    if depth >= CHAIN_MAX:
        return ["  | ..."]
    lines = []
    for i, member in enumerate(error.exceptions[:GROUP_MAX], 1):
        lines.append(f"  +---------------- {i} ----------------")
        lines += ["  | " + line for line in _one(member, depth + 1).splitlines()]
    if len(error.exceptions) > GROUP_MAX:
        lines.append(f"  | and {len(error.exceptions) - GROUP_MAX} more")
    return lines


_base_group = __builtins__.get("BaseExceptionGroup")


# ---- the stack ----

def _is_cell(filename):
    return filename.startswith("<cell ")


def _is_hidden(filename):
    return filename.startswith("<decorator-gen") or any(map(filename.startswith, _hidden))


def _stack(tb):
    """(code, line) of the user's frames: from the first cell on, without the runner's and
    IPython's. Where no cell is on the stack (an error in a magic), all that is not hidden."""
    stack = []
    while tb is not None:
        stack.append((tb.tb_frame.f_code, tb.tb_lineno or 0))
        tb = tb.tb_next
    for i, (code, _) in enumerate(stack):
        if _is_cell(code.co_filename):
            del stack[:i]
            break
    return [entry for entry in stack if not _is_hidden(entry[0].co_filename)]


def _frames(stack):
    runs = []  # [code, line, times]: recursion shows the same place again and again
    for code, line in stack:
        if runs and runs[-1][0] is code and runs[-1][1] == line:
            runs[-1][2] += 1
        else:
            runs.append([code, line, 1])
    if len(runs) > 2 * FRAMES_KEPT:
        left_out = sum(times for _, _, times in runs[FRAMES_KEPT:-FRAMES_KEPT])
        runs[FRAMES_KEPT:-FRAMES_KEPT] = [[None, 0, left_out]]
    lines = []
    for code, line, times in runs:
        if code is None:
            lines += [f"    [... {times} frames left out]", ""]
            continue
        lines += _place(code, line) + _source(code, line) + [""]
        if times > 1:
            again = f"{_qualname(code)} at line {line} ({times - 1} more times)"
            lines += [f"    [... skipping similar frames: {again}]", ""]
    return lines


def _qualname(code):
    return cut(getattr(code, "co_qualname", code.co_name), NAME_MAX)


def _place(code, line):
    where = _file(code.co_filename, line)
    if code.co_name == "<module>":
        return [where]
    return [f"{where}, in {_qualname(code)}({parameters(code)})"]


def parameters(code):
    """The names of a function's parameters."""
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[:count])
    if code.co_flags & CO_VARARGS:
        names.insert(code.co_argcount, "*" + code.co_varnames[count])
        count += 1
    if code.co_flags & CO_VARKEYWORDS:
        names.append("**" + code.co_varnames[count])
    return cut(", ".join(names), LINE_MAX)


def _file(filename, line):
    if _is_cell(filename):
        return f"Cell In[{filename[6:-1]}], line {line}"
    return f"File {cut(filename, LINE_MAX)}:{line}"


def _source(code, line):
    """The lines around `line`, without their common indentation, the line itself with an arrow."""
    first = max(1, line - CONTEXT, code.co_firstlineno)
    last = line + CONTEXT
    if code.co_name != "<module>":  # not beyond the function's end
        last = min(last, max((n for _, _, n in code.co_lines() if n), default=line))
    texts = _read(code.co_filename, first, last)
    if len(texts) <= line - first:
        return []
    texts = [text.rstrip("\r\n").expandtabs()[:LINE_MAX] for text in texts]
    while texts and not texts[-1].strip():
        texts.pop()
    indent = min((len(t) - len(t.lstrip()) for t in texts if t.strip()), default=0)
    lines = []
    for number, text in enumerate(texts, first):
        if number == line:
            arrow = "-" * (NUMBER_WIDTH - 2 - len(str(number))) + ">"
            lines.append(f"{arrow} {number} {text[indent:]}")
        else:
            lines.append(f"{number:{NUMBER_WIDTH}} {text[indent:]}".rstrip())
    return lines


def _read(filename, first, last):
    if filename in _sources:
        return _sources[filename][first - 1:last]
    # The name is the code's own and may be a FIFO, a device, or nothing at all.
    try:
        status = os.stat(filename)
        if not stat.S_ISREG(status.st_mode) or status.st_size > SOURCE_MAX:
            return []
        with open(filename, encoding="utf-8", errors="replace") as file:
            return list(islice(file, first - 1, last))
    except (OSError, ValueError):
        return []


def _syntax_place(error):
    """Where a SyntaxError is. Its attributes may be anything."""
    filename, line, text = error.filename, error.lineno, error.text
    if not isinstance(filename, str) or not isinstance(line, int):
        return []
    lines = ["  " + _file(filename, line)]
    if isinstance(text, str):
        text = text.rstrip("\n")
        body = text.lstrip()
        lines.append("    " + body[:LINE_MAX])
        offset = error.offset
        if isinstance(offset, int):
            at = offset - 1 - (len(text) - len(body))
            if 0 <= at < LINE_MAX:
                lines.append("    " + " " * at + "^" * _caret_width(error, len(text)))
    return lines


def _caret_width(error, length):
    end = getattr(error, "end_offset", None)
    if isinstance(end, int) and getattr(error, "end_lineno", None) == error.lineno:
        return max(1, min(end, length + 1) - error.offset)
    return 1
