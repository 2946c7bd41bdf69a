"""The session's variables as a JSON array: name, type, shape or length, size, a short text.

The values are the user's: gigabytes, lists within themselves, objects whose __repr__ raises or never
ends. So nothing is asked for whole: what is long is cut before it becomes text, and values of builtin
types and known libraries are read by the methods of those, whatever a subclass has made of them. The
one thing of the user's that runs is a __repr__ of a class of his own: it is what he wants to see.
Where it fails the text is "<Name …>"; an endless one ends with the request's time limit.
"""
from .pristine import __builtins__

from array import array
from collections import deque
from itertools import islice
from json.encoder import encode_basestring as quote
from sys import getsizeof, modules
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType

from .tracebacks import parameters

MIME = b"application/vnd.retort.variables+json"
JSON_MAX = 1 << 20  # of the whole array: the owner parses it
COUNT_MAX = 1000
TEXT_MAX = 200  # characters of each string
ITEMS_MAX = 20  # of a container
DEPTH_MAX = 4
ROOM = TEXT_MAX - 10  # for what stands between brackets
BITS_MAX = 600  # of a number: digits take time that grows with their square
LONG = 1000  # a container that is longer is not given to a __repr__ of the user's
DIMENSIONS_MAX = 64
COLUMNS_MAX = 100  # of a table whose use is added up column by column, at 0.1 ms each
SIZE_MAX = (1 << 63) - 1

# Packages whose arrays and tables tell their shape and size without looking at the data.
LIBRARIES = frozenset(("numpy", "pandas", "polars", "pyarrow", "scipy", "torch", "xarray"))
BARE = frozenset((("numpy", "ndarray"), ("pandas", "DataFrame"), ("pandas", "Series")))

# The truth about a class, not what its metaclass says.
_mro = type.__dict__["__mro__"].__get__
_qualname_of = type.__dict__["__qualname__"].__get__
_module_of = type.__dict__["__module__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_controls = {code: " " for code in (*range(32), *range(127, 160))}
_nothing = object()


def as_json(names, hidden):
    """`names` is the namespace, `hidden` what IPython has put there."""
    chosen = [(name, value) for name, value in list(names.items()) if _is_users(name, value, hidden)]
    entries, size = [], 2
    for name, value in sorted(chosen, key=lambda pair: pair[0])[:COUNT_MAX]:
        entry = _entry(name, value).encode()
        size += len(entry) + 1
        if size > JSON_MAX:
            break
        entries.append(entry)
    return b"[%b]" % b",".join(entries)


def _is_users(name, value, hidden):
    """A variable that the user has made: neither IPython's nor imported."""
    if type(name) is not str or name[:1] == "_" or hidden.get(name, _nothing) is value:
        return False
    kind = type(value)
    if kind is FunctionType or kind is BuiltinFunctionType:
        module = value.__module__
        return type(module) is not str or module == "__main__"
    if _has_base(kind, type):
        return _module(value) == "__main__"
    return not _has_base(kind, ModuleType)


def _entry(name, value):
    kind = type(value)
    try:
        shape, length, size = _measure(value, kind)
    except KeyboardInterrupt:
        raise
    except BaseException:
        shape, length, size = None, None, _size(value, kind)
    extent = ""
    if shape is not None:
        extent = f'"shape":[{",".join(map(str, shape))}],'
    elif length is not None:
        extent = f'"length":{length},'
    return (f'{{"name":{_quote(name)},"type":{_quote(type_name(kind))},{extent}'
            f'"size":{max(0, min(size, SIZE_MAX))},"text":{_quote(text_of(value))}}}')


def _quote(text):
    """As a JSON string. Lone surrogates would make it invalid, and a repr may have line breaks."""
    text = text[:TEXT_MAX + 1].encode("utf-8", "backslashreplace").decode()
    return quote(_cut(text.translate(_controls), TEXT_MAX))


def _cut(text, limit):
    return text if len(text) <= limit else text[:max(0, limit - 1)] + "…"


# ---- types ----

def _module(kind):
    """Where a class says it is from; the user may have written anything there."""
    module = _module_of(kind)
    return module if type(module) is str else ""


def _qualname(kind):
    return str.__str__(_qualname_of(kind))  # a plain one, whatever it is


def _has_base(kind, base):
    """Without == of a metaclass."""
    return any(each is base for each in _mro(kind))


def type_name(kind):
    """As people write it: "int", "DataFrame", "collections.Counter"."""
    module, name = _module(kind), _qualname(kind)
    package = module.partition(".")[0]
    if module in ("", "builtins", "__main__") or (package, name) in BARE:
        return name
    top = modules.get(package)
    if type(top) is ModuleType and vars(top).get(name) is kind:
        return f"{package}.{name}"
    return f"{module}.{name}"


def _library_class(kind):
    """The first class of a known library among a class and its bases, or None. Of numpy only arrays:
    its numbers have a shape as well, and it says nothing."""
    for base in _mro(kind):
        package = _module(base).partition(".")[0]
        if package in LIBRARIES and (package != "numpy" or _qualname(base) == "ndarray"):
            return base
    return None


def _find(table, kind):
    """What a table, by id, has for a class or the first of its bases that is in it; with that base."""
    for base in _mro(kind):
        if id(base) in table:
            return base, table[id(base)]
    return None, None


# ---- shape, length, size ----

_LENGTHS = {id(kind): kind.__len__ for kind in (
    str, bytes, bytearray, list, tuple, dict, set, frozenset, range, deque, array)}


def _measure(value, kind):
    """shape or None, length or None, size."""
    _, length = _find(_LENGTHS, kind)
    if length is not None:
        return None, length(value), _size(value, kind)
    base = _library_class(kind)
    if base is None:
        return None, None, _size(value, kind)
    return _shape(_ask(base, "shape", value)), None, _bytes(base, value, kind)


def _ask(base, name, value):
    """An attribute as this class has it, and not a subclass; None where it has none."""
    found = getattr(base, name, None)
    return None if found is None else found.__get__(value, base)


def _shape(shape):
    if shape is None or not _has_base(type(shape), tuple):
        return None
    return [int(extent) for extent in islice(tuple.__iter__(shape), DIMENSIONS_MAX)]


def _bytes(base, value, kind):
    usage = _ask(base, "memory_usage", value)  # of pandas
    if usage is not None:
        kinds = _ask(base, "dtypes", value)
        if _qualname(base) == "DataFrame" and len(kinds) > COLUMNS_MAX:
            return sum(kind.itemsize for kind in kinds) * len(_ask(base, "index", value))
        usage = usage()
        return int(usage if type(usage) is int else usage.sum())
    size = _ask(base, "nbytes", value)
    return size if type(size) is int else _size(value, kind)


def _size(value, kind):
    """sys.getsizeof() calls a __sizeof__ of the user's: then the object's own size will do."""
    for base in _mro(kind):
        found = _namespace(base).get("__sizeof__")
        if found is not None:
            return getsizeof(value) if type(found) is MethodDescriptorType else object.__sizeof__(value)
    return 0


# ---- text ----

def text_of(value, room=ROOM, depth=0):
    """At most some `room` characters about a value."""
    kind = type(value)
    try:
        return _cut(_write(value, kind, room, depth), room + 4)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"<{_cut(type_name(kind), TEXT_MAX - 4)} …>"


def _write(value, kind, room, depth):
    base, writer = _find(_WRITERS, kind)
    if writer is not None and kind is base:
        return writer(value, room, depth)
    fields = _fields(value, kind)
    if fields is not None:
        return _list(f"{_qualname(kind)}(", fields, ")", room, depth, _write_field)
    if writer is not None and not _has_own_repr(value, kind):
        return f"{_qualname(kind)}({writer(value, room, depth)})"
    base = _library_class(kind)
    writer = _TABLES.get((_module(base).partition(".")[0], _qualname(base))) if base else None
    if writer is not None:
        return writer(base, value, room, depth)
    text = str.__getitem__(repr(value), slice(TEXT_MAX * 4))
    return " ".join(text.split())


def _has_own_repr(value, kind):
    """Of a builtin type's subclass: a class of the user's, and not too long for it. An enumeration has
    its names there."""
    _, length = _find(_LENGTHS, kind)
    if length is None:
        return int.bit_length(value) <= BITS_MAX if _has_base(kind, int) else True
    return _module(kind) == "__main__" and length(value) <= LONG


def _list(opening, values, closing, room, depth, write):
    """The first few, between brackets."""
    if depth >= DEPTH_MAX:
        return f"{opening}…{closing}"
    parts = []
    for value in islice(values, ITEMS_MAX + 1):
        if room <= 0 or len(parts) == ITEMS_MAX:
            parts.append("…")
            break
        parts.append(write(value, room, depth + 1))
        room -= len(parts[-1]) + 2
    return f"{opening}{', '.join(parts)}{closing}"


def _write_pair(pair, room, depth):
    key = text_of(pair[0], room, depth)
    return f"{key}: {text_of(pair[1], room - len(key), depth)}"


def _write_field(pair, room, depth):
    return f"{pair[0]}={text_of(pair[1], room - len(pair[0]), depth)}"


def _fields(value, kind):
    """The fields of a dataclass or a namedtuple that kept the __repr__ it was given. It would write them
    out whole."""
    namespace = _namespace(kind)
    written = namespace.get("__repr__")
    if type(written) is not FunctionType:
        return None
    if "__dataclass_fields__" in namespace and "__wrapped__" in vars(written):
        fields = namespace["__dataclass_fields__"].values()
        return ((field.name, object.__getattribute__(value, field.name))
                for field in fields if field.repr)
    if _has_base(kind, tuple) and written.__code__.co_filename.endswith("collections/__init__.py"):
        return zip(namespace["_fields"], tuple.__iter__(value))
    return None


def _write_number(value, room, depth):
    return repr(value)


def _write_int(value, room, depth):
    bits = int.bit_length(value)
    return int.__repr__(value) if bits <= BITS_MAX else f"<int of {bits} bits>"


def _of_string(kind):
    def write(value, room, depth):
        text = kind.__repr__(kind.__getitem__(value, slice(room)))
        return text if kind.__len__(value) <= room else f"{text[:room]}…{text[-1]}"
    return write


def _of_container(kind, opening, closing):
    def write(value, room, depth):
        return _list(opening, kind.__iter__(value), closing, room, depth, text_of)
    return write


def _write_tuple(value, room, depth):
    end = ",)" if tuple.__len__(value) == 1 else ")"
    return _list("(", tuple.__iter__(value), end, room, depth, text_of)


def _write_set(value, room, depth):
    return _list("{", set.__iter__(value), "}", room, depth, text_of) if set.__len__(value) else "set()"


def _write_dict(value, room, depth):
    return _list("{", dict.items(value), "}", room, depth, _write_pair)


def _write_function(value, room, depth):
    return f"{value.__name__}({parameters(value.__code__)})"


def _write_class(value, room, depth):
    return type.__repr__(value)


_KEYS, _VALUES, _ITEMS = type({}.keys()), type({}.values()), type({}.items())
_WRITERS = {id(kind): writer for kind, writer in (
    (bool, _write_number), (float, _write_number), (complex, _write_number), (int, _write_int),
    (str, _of_string(str)), (bytes, _of_string(bytes)), (bytearray, _of_string(bytearray)),
    (list, _of_container(list, "[", "]")), (tuple, _write_tuple), (dict, _write_dict), (set, _write_set),
    (frozenset, _of_container(frozenset, "frozenset({", "})")),
    (deque, _of_container(deque, "deque([", "])")), (array, _of_container(array, "array([", "])")),
    (_KEYS, _of_container(_KEYS, "dict_keys([", "])")),
    (_VALUES, _of_container(_VALUES, "dict_values([", "])")),
    (_ITEMS, _of_container(_ITEMS, "dict_items([", "])")),
    (FunctionType, _write_function), (type, _write_class))}


# ---- arrays and tables ----

def _write_array(base, value, room, depth):
    return _write_rows(base.view(value, base), room, depth)


def _write_rows(rows, room, depth):
    if rows.ndim:
        return _list("[", (rows[i, ...] for i in range(len(rows))), "]", room, depth, _write_rows)
    # str() of a number that is no double has the digits that it has, its Python number more.
    return text_of(rows.item(), room, depth) if rows.dtype.kind in "OSUV" else str(rows[()])


def _write_series(base, value, room, depth):
    head = _ask(base, "iloc", value)[:ITEMS_MAX + 1]
    return _list("[", iter(head), "]", room, depth, text_of)


def _write_frame(base, value, room, depth):
    columns = zip(_ask(base, "columns", value), _ask(base, "dtypes", value))
    return _list("", columns, "", room, depth, _write_column)


def _write_column(column, room, depth):
    name, kind = column
    return f"{name if type(name) is str else text_of(name, room, depth)}: {kind}"


_TABLES = {
    ("numpy", "ndarray"): _write_array,
    ("pandas", "DataFrame"): _write_frame,
    ("pandas", "Series"): _write_series,
}
