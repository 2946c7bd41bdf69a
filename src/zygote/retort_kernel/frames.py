"""Cell frames as bytes: the kernel's side of src/wire/proto.h, frame.h and fields.h."""
from .pristine import __builtins__

from struct import Struct

RUN, PASS, CHECK, VARIABLES = 1, 2, 3, 4
FENCE, DISPLAY, ERROR, DONE, CHECKED = 16, 17, 18, 19, 20

UNDOABLE, KEEP_NOTHING, AT_ONCE, NEW_FILES = 1, 2, 4, 8  # of a RUN
SHOWN, RESULT = 0, 1
OK, FAILED, INTERRUPTED, EXIT = 0, 1, 2, 3
CHECK_STATES = {"complete": 0, "incomplete": 1, "invalid": 2}

HEADER = Struct("<II")
PAYLOAD_MAX = 32 << 20

_U32 = Struct("<I")
_FENCE = Struct("<III")
_DONE = Struct("<IIIBII")
STATE_IS_NEW = 0xFFFFFFFF  # of a DONE


def field(data):
    return _U32.pack(len(data)) + data


def frame(kind, *parts):
    body = b"".join(parts)
    return HEADER.pack(len(body), kind) + body


def fence(number):
    return _FENCE.pack(4, FENCE, number)


def done(n, status, code, same_as):
    return _DONE.pack(13, DONE, n, status, code & 0xFFFFFFFF, same_as)


def error(name, value, traceback):
    return frame(ERROR, field(name), field(value), field(traceback))


def checked(state, indent):
    return frame(CHECKED, bytes((CHECK_STATES[state],)), field(indent))


def display_size(metadata, parts):
    """How long the payload of this display would be."""
    size = 9 + len(metadata)
    for mime, data in parts:
        size += 8 + len(mime) + len(data)
    return size


def display(kind, metadata, parts):
    fields = [bytes((kind,)), field(metadata), _U32.pack(len(parts))]
    for mime, data in parts:
        fields.append(field(mime))
        fields.append(field(data))
    return frame(DISPLAY, *fields)


def read_run(body):
    """n and code of a RUN frame."""
    n, size = HEADER.unpack_from(body)
    return n, body[8:8 + size]


def read_flags(body):
    """Of a RUN frame. The zygote's own have none."""
    at = 8 + HEADER.unpack_from(body)[1]
    return body[at] if at < len(body) else 0


def read_pictures(body):
    """Of a RUN frame: how many pixels the longer side of a picture may have; 0: as many as it has."""
    at = 9 + HEADER.unpack_from(body)[1]
    return _U32.unpack_from(body, at)[0] if at + 4 <= len(body) else 0


def read_check(body):
    (size,) = _U32.unpack_from(body)
    return body[4:4 + size]


def read_pass(body):
    return _U32.unpack_from(body)[0]
