"""What a value looks like: IPython's formatters, turned into DISPLAY frames."""
from .pristine import __builtins__

import builtins
import json
import sys
from base64 import b64decode
from struct import Struct

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher

from . import frames, pictures

PLAIN = "text/plain"
MIME_MAX = 255
PARTS_MAX = 64
SPARE = 4096  # room for the sentence that says what was left out
JSON_MAX = 8 << 20  # of a chart or another thing that is data: who gets it parses it
ENDS_KEPT = 500  # characters of a text that is left out
PNG_SIZE, GIF_SIZE = Struct(">II"), Struct("<HH")
# Values of these classes, and not of their subclasses, have no representation but text, unless a
# formatter is registered for the class; and the text of the simple ones is their repr().
SIMPLE = frozenset((int, bool, str, bytes))
BUILTIN = SIMPLE | {float, complex, list, tuple, dict, set, frozenset, range, bytearray}
# So it is with numpy's numbers, which computations mostly come to. Each with the names that a formatter can be
# registered for: its own and its bases'.
NUMBERS = {}


def know_numbers(numpy):
    for kind in set(getattr(numpy, "sctypeDict", {}).values()):  # a user's own module may have that name
        if issubclass(kind, (numpy.number, numpy.bool_)):
            NUMBERS[kind] = tuple((base.__module__, base.__name__) for base in kind.__mro__)


def is_text(mime):
    return mime.startswith("text/") or mime.endswith(("+xml", "json", "javascript", "xml", "latex"))


class LeftOut(Exception):
    """A part that is not sent; args[0] says why."""


def encode_part(mime, value):
    """The bytes of one representation. Formatters hand binary data over as bytes or in base64."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        if len(value) > frames.PAYLOAD_MAX * (1 if is_text(mime) else 2):
            raise LeftOut(f"{len(value)} characters")  # not even copied
        if not is_text(mime):
            try:
                return b64decode("".join(value.split()), validate=True)
            except ValueError:
                raise LeftOut("neither bytes nor base64") from None
        return value.encode("utf-8", "backslashreplace")
    if mime.endswith("json"):
        return json.dumps(value, default=str).encode("utf-8", "backslashreplace")
    if not is_text(mime):
        raise LeftOut(f"of type {type(value).__name__}, not bytes")
    return encode_part(mime, str(value))


def encode_metadata(metadata):
    if not metadata:
        return b""
    try:
        return json.dumps(metadata, default=str, skipkeys=True).encode("utf-8", "backslashreplace")
    except (TypeError, ValueError, RecursionError):
        return b""


def encode_bundle(kind, bundle, metadata, side=0):
    """The frame of a display. What is too large, or is not what it says, is left out, and the text says so. With
    `side`, pictures are scaled down to that."""
    parts, dropped = [], []
    for mime, value in bundle.items():
        if value is None or not isinstance(mime, str) or len(parts) >= PARTS_MAX:
            continue
        name = mime.encode("ascii", "replace")[:MIME_MAX]
        try:
            data = encode_part(mime, value)
            if mime.endswith("json") and len(data) > JSON_MAX:
                raise LeftOut(f"{len(data)} bytes")
        except LeftOut as reason:
            dropped.append(f"{name.decode()} ({reason})")
            if mime == PLAIN:
                parts.append((name, _ends_of(value)))
            continue
        if side:
            data = pictures.fit(mime, data, side)
        parts.append((name, data))
        if name.startswith(b"image/"):
            metadata = _with_size(metadata, mime, data)
    extra = encode_metadata(metadata)
    if frames.display_size(extra, parts) > frames.PAYLOAD_MAX - SPARE:
        parts, extra = _shrink(parts, extra, dropped)
    if dropped:
        parts = _with_note(parts, dropped)
    return frames.display(kind, extra, parts)


def _ends_of(text):
    """The beginning and the end of a text that is too long to send."""
    return f"{text[:ENDS_KEPT]}\n…\n{text[-ENDS_KEPT:]}".encode("utf-8", "backslashreplace")


def _shrink(parts, extra, dropped):
    """The largest go first."""
    if len(extra) > frames.PAYLOAD_MAX // 2:
        dropped.append(f"metadata ({len(extra)} bytes)")
        extra = b""
    while parts and frames.display_size(extra, parts) > frames.PAYLOAD_MAX - SPARE:
        largest = max(parts, key=lambda part: len(part[1]))
        parts.remove(largest)
        dropped.append(f"{largest[0].decode()} ({len(largest[1])} bytes)")
        if largest[0] == PLAIN.encode():
            parts.append((largest[0], _ends_of(largest[1].decode())))
    return parts, extra


def _with_note(parts, dropped):
    note = f"[left out: {', '.join(dropped)}]"[:SPARE // 2].encode()
    plain = [data for mime, data in parts if mime == PLAIN.encode()]
    return [part for part in parts if part[0] != PLAIN.encode()] + [(PLAIN.encode(), b"\n".join(plain + [note]))]


def _with_size(metadata, mime, data):
    """Metadata that has a picture's width and height, unless somebody has said how large to show it."""
    size = picture_size(data)
    if size is None:
        return metadata
    metadata = dict(metadata or {})
    known = metadata.get(mime)
    if known is None or isinstance(known, dict):
        metadata[mime] = {"width": size[0], "height": size[1], **(known or {})}
    return metadata


def picture_size(data):
    """Width and height of a PNG or a GIF, which have them at their beginning; else None."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return PNG_SIZE.unpack_from(data, 16)
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return GIF_SIZE.unpack_from(data, 6)
    return None


class Hook(DisplayHook):
    """sys.displayhook: the value of a cell's last expression."""

    def __call__(self, result=None):
        # Not by the traits `shell` and `exec_result`, which every cell would pay for: see TRAITS.
        values = self._trait_values
        shell = values["shell"]
        if result is None or self.quiet():
            return
        bundle, metadata = shell.represent(result)
        self.remember(shell, result)
        if values.get("exec_result") is not None:
            values["exec_result"].result = result
        if bundle:
            shell.show(frames.RESULT, bundle, metadata)

    def quiet(self):
        """A cell that ends in a semicolon shows nothing. Only one that may do so is tokenised."""
        end = self._trait_values["shell"].source.rstrip()
        if not end.endswith(";") and "#" not in end[end.rfind("\n") + 1:]:
            return False
        return super().quiet()

    def remember(self, shell, result):
        """_, __, ___, _N and Out[N], as long as the user has not taken the names."""
        names, outputs = shell.user_ns, shell.outputs
        if result is outputs:
            return
        if "_" not in vars(builtins) and names.get("_", self._) is self._:
            names["___"], names["__"], names["_"] = self.__, self._, result
        self.___, self.__, self._ = self.__, self._, result
        n = shell.values["execution_count"]
        outputs[n] = names[f"_{n}"] = result
        if len(outputs) > self.cache_size:
            oldest = next(iter(outputs))
            del outputs[oldest]
            names.pop(f"_{oldest}", None)


class Publisher(DisplayPublisher):
    """display() and all that goes through it."""

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **_):
        metadata = dict(metadata or {})
        display_id = (transient or {}).get("display_id")
        if display_id is not None:
            metadata["display_id"] = display_id
            if update:
                metadata["update"] = True
                return self.shell.update(display_id, data, metadata)
        self.shell.show(frames.SHOWN, data, metadata)

    def clear_output(self, wait=False):
        """What was shown has left the box; there is nothing to clear."""


def show_page(shell, text, start=0, screen_lines=0):
    """In place of a pager (`name?`, %history): nobody could turn the pages."""
    if isinstance(text, dict):
        text = text.get(PLAIN, "")
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
