"""pandas' tables: text and HTML within bounds, and a preview for programs (docs/OUTPUTS.md).

A table may have ten million rows, or a hundred thousand columns, or gigabytes in one cell. So nothing is
asked of the whole: its ends are cut out first, which copies nothing. pandas' own text is short unless the
user has set its options otherwise ("display.max_rows", None), which is meant for tables of a screen or two.
"""
from .pristine import __builtins__

import datetime
import json
import sys
from contextlib import nullcontext
from math import isfinite

from . import variables

MIME = "application/vnd.retort.table+json"
HEAD, TAIL = 10, 5  # rows of the preview
# Columns, and characters of a text: tried in this order until the preview is within its bytes.
SIZES = ((50, 200), (50, 50), (20, 50), (8, 30))
BYTES_MAX = 64 << 10
# Of text and HTML, whatever the user's options say.
SHOWN = (("display.max_rows", 1000), ("display.max_columns", 200), ("display.max_colwidth", 10_000))
EXACT = 1 << 53  # whole numbers up to this are exact in every reader of JSON


def install(shell):
    formatters = shell.display_formatter.formatters
    bundles = shell.display_formatter.mimebundle_formatter
    for module, name in (("pandas.core.frame", "DataFrame"), ("pandas.core.series", "Series")):
        bundles.for_type_by_name(module, name, to_bundle)
        formatters["text/plain"].for_type_by_name(module, name, to_text)
        formatters["text/html"].for_type_by_name(module, name, to_html)
    bundles.for_type_by_name("pandas.io.formats.style", "Styler", styled_to_bundle)


# ---- for people ----

def to_text(value, printer, cycle):
    with _within_bounds():
        printer.text(repr(value))


def to_html(value):
    if not hasattr(value, "_repr_html_"):  # of a Series pandas has none
        value = value.to_frame("" if value.name is None else value.name)
    with _within_bounds():
        return value._repr_html_()


def _within_bounds():
    """pandas' options, where they would write out more than anybody reads."""
    pandas = sys.modules["pandas"]
    changed = []
    for name, most in SHOWN:
        value = pandas.get_option(name)
        if value is None or not 0 <= value <= most:
            changed += [name, most]
    return pandas.option_context(*changed) if changed else nullcontext()


# ---- for programs ----

def to_bundle(value):
    text = preview(value)
    return {} if text is None else {MIME: text}


def styled_to_bundle(styler):
    """What a table with colours shows beside its HTML; by itself it would say where it lies in memory."""
    with _within_bounds():
        return {"text/plain": repr(styler.data), **to_bundle(styler.data)}


def preview(value):
    """As JSON; None if this table cannot be read."""
    try:
        for columns, text in SIZES:
            found = json.dumps(_preview(value, columns, text), ensure_ascii=False, separators=(",", ":"))
            if len(found.encode()) <= BYTES_MAX:
                return found
    except Exception:
        pass  # a class of the user's that is a table in name only; its text is there
    return None


def _preview(value, width, room):
    is_frame = value.ndim == 2
    head, tail = _ends(value, width)
    if is_frame:
        columns = zip(head.columns, head.dtypes)
    else:
        columns = [("" if head.name is None else head.name, head.dtype)]
    found = {"columns": [_column(name, kind, room) for name, kind in columns],
             "column_count": value.shape[1] if is_frame else 1, "rows": len(value)}
    if _is_meaningful(value.index):
        found["index"] = _index(head.index, tail.index, width, room)
    found["head"], found["tail"] = _cells(head, room), _cells(tail, room)
    return found


def _ends(value, width):
    """The first and the last rows; all of a short table is its head. Rows are cut first: columns would be copied."""
    rows = len(value)
    head, tail = (rows, 0) if rows <= HEAD + TAIL else (HEAD, TAIL)
    ends = value.iloc[:head], value.iloc[rows - tail:]
    return [end.iloc[:, :width] for end in ends] if value.ndim == 2 else ends


def _column(name, kind, room):
    name = name if type(name) is str else variables.text_of(name)
    return {"name": _text(name, room), "type": _text(str(kind), room)}


def _cells(part, room):
    part = part.astype(object)
    values = part.values.tolist()
    return [[as_json(cell, room) for cell in (row if part.ndim == 2 else (row,))] for row in values]


def _is_meaningful(index):
    """One that only counts the rows says nothing."""
    return not (type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
                and index.name is None)


def _index(head, tail, width, room):
    levels = list(zip(head.names, getattr(head, "dtypes", [head.dtype])))[:width]
    found = {"columns": [_column("" if name is None else name, kind, room) for name, kind in levels]}
    for end, index in (("head", head), ("tail", tail)):
        rows = index.tolist() if index.nlevels > 1 else [(value,) for value in index.tolist()]
        found[end] = [[as_json(value, room) for value in row[:width]] for row in rows]
    return found


# ---- single values ----

def as_json(value, room=SIZES[0][1]):
    """A value as JSON has it: a number, a text of so many characters, or None."""
    kind = type(value)
    if kind is str:
        return _text(value, room)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -EXACT <= value <= EXACT else _text(variables.text_of(value), room)
    if kind is float:
        return value if isfinite(value) else None if value != value else str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return None if value != value else value.isoformat()  # NaT, which is none, is not itself
    module = kind.__module__.partition(".")[0]
    if module == "numpy" and hasattr(value, "item") and not getattr(value, "ndim", 1):
        return _from_numpy(value, room)
    if module == "pandas":
        return None if kind.__name__ in ("NaTType", "NAType") else _text(str(value), room)
    if isinstance(value, datetime.timedelta) or module == "decimal":
        return _text(str(value), room)
    return _text(variables.text_of(value), room)


def _from_numpy(value, room):
    if value.dtype.kind in "mM":  # times: as Python's numbers they would lose what they are
        text = str(value)
        return None if text == "NaT" else text.rstrip("0").rstrip(".") if "." in text else text
    if value.dtype.kind == "V":
        return _text(str(value), room)
    item = value.item()
    return as_json(item, room) if type(item) is not type(value) else _text(str(value), room)


def _text(text, room):
    """Whole characters only: half of one would not be JSON."""
    text = text if len(text) <= room else text[:room - 1] + "…"
    return text.encode("utf-8", "replace").decode()
